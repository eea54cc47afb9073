"""What every hot memory must do: each sentence of `refs/base.py` as a test.

A hot memory is tested by a subclass whose `open_refs` fixture returns a function that opens the one of this test,
once more for each call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from notebook_sync.files.note import Ref
from notebook_sync.refs.base import Refs, Swap
from tests.refs.contract_memory import MemoryContract, Opener, checkpoint, entry

T0 = datetime(2026, 3, 1, 9, 0, 0, 123000, tzinfo=UTC)
FIELDS = {
    *("type", "notebook_id", "title", "summary", "collection", "updated_at", "status", "version", "digest", "agent"),
    *("path", "provenance", "content", "source", "tags", "score", "timestamp"),
}
AWKWARD_IDS = ["a b", "x:y:z", "été/ü", "$where", "{tag}", "*", "[a]", "pages/🧑‍🚀", "a\nb", "a\0b", "%s", '"', "\\"]


def ref(note_id: str = "pages/plan", n: int = 0, **fields: Any) -> Ref:
    """A ref that was updated `n` seconds after the first one."""
    described: dict[str, Any] = {
        "title": "Plan",
        "summary": "First.",
        "collection": "pages",
        "updated_at": T0 + timedelta(seconds=n),
        "status": "draft",
        "version": 1,
        "digest": f"digest {n}",
        "agent": "owner",
        "path": f"{note_id}.md",
        "action": "created",
        "serial": 1,
        **fields,
    }
    return Ref(id=note_id, **described)


def gone(note_id: str = "pages/plan", action: str = "deleted") -> Ref:
    return ref(note_id, action=action, deleted=True)


class RefsContract(MemoryContract):
    @pytest.fixture
    def open_refs(self) -> Opener:
        raise NotImplementedError

    def test_a_ref_is_stored_as_text_fields(self, refs: Refs) -> None:
        refs.write([ref(title="Plan B", summary="Short.", version=3, status="complete", agent="agent:a")])
        stored = refs.get("pages/plan")
        assert stored is not None
        assert stored.keys() == FIELDS
        assert all(isinstance(value, str) for value in stored.values())
        expected = {
            "type": "notebook_ref",
            "notebook_id": "pages/plan",
            "title": "Plan B",
            "summary": "Short.",
            "collection": "pages",
            "status": "complete",
            "version": "3",
            "digest": "digest 0",
            "agent": "agent:a",
            "path": "pages/plan.md",
            "content": "[Plan B] Short.",
            "source": "notebook",
            "tags": "pages",
        }
        assert {key: stored[key] for key in expected} == expected
        assert datetime.fromisoformat(stored["updated_at"]) == T0
        assert float(stored["timestamp"]) == pytest.approx(T0.timestamp(), abs=0.001)

    def test_a_summary_is_cut_at_two_hundred_characters(self, refs: Refs) -> None:
        refs.write([ref(summary="é" * 900)])
        stored = refs.get("pages/plan")
        assert stored is not None
        assert stored["summary"] == "é" * 200
        assert stored["content"] == "[Plan] " + "é" * 200

    def test_a_later_ref_takes_the_place_of_the_earlier(self, refs: Refs) -> None:
        refs.write([ref()])
        refs.write([ref(n=5, title="Other", version=2, collection="facts")])
        stored = refs.get("pages/plan")
        assert stored is not None
        assert (stored["title"], stored["version"], stored["collection"]) == ("Other", "2", "facts")
        assert list(refs.digests()) == [("pages/plan", "digest 5", 2)]

    def test_the_last_ref_of_a_batch_counts(self, refs: Refs) -> None:
        refs.write([ref(), ref(n=1, version=2), ref(n=2, version=3)])
        assert list(refs.digests()) == [("pages/plan", "digest 2", 3)]

    def test_a_write_is_idempotent(self, refs: Refs) -> None:
        for _ in range(3):
            refs.write([ref(), ref("facts/a", n=1)])
        assert sorted(refs.digests()) == [("facts/a", "digest 1", 1), ("pages/plan", "digest 0", 1)]
        for _ in range(3):
            refs.write([gone()])
        assert list(refs.digests()) == [("facts/a", "digest 1", 1)]

    def test_nothing_to_write_is_nothing(self, refs: Refs) -> None:
        refs.write([])
        assert list(refs.digests()) == []

    def test_a_deleted_ref_is_removed(self, refs: Refs) -> None:
        refs.write([ref(), ref("pages/b", n=1)])
        refs.write([gone()])
        assert refs.get("pages/plan") is None
        assert list(refs.digests()) == [("pages/b", "digest 1", 1)]
        assert [entry["notebook_id"] for entry in refs.recent()] == ["pages/b"]

    def test_an_unknown_note_has_no_ref(self, refs: Refs) -> None:
        assert refs.get("nobody") is None
        assert refs.get("") is None

    @pytest.mark.parametrize("note_id", AWKWARD_IDS)
    def test_an_id_is_data(self, refs: Refs, note_id: str) -> None:
        refs.write([ref(note_id), ref("pages/other", n=1)])
        stored = refs.get(note_id)
        assert stored is not None
        assert stored["notebook_id"] == note_id
        assert note_id in {found for found, _, _ in refs.digests()}
        refs.write([gone(note_id)])
        assert refs.get(note_id) is None
        assert [found for found, _, _ in refs.digests()] == ["pages/other"]

    @pytest.mark.parametrize(
        "text", ["", "a\0b", "{{7*7}}", '"quoted" \\ back', "EVAL 'x'\r\nFLUSHALL\r\n", "naïve 🧑‍🚀"]
    )
    def test_text_is_data(self, refs: Refs, text: str) -> None:
        refs.write([ref(title=text, summary=text, agent=text)])
        stored = refs.get("pages/plan")
        assert stored is not None
        assert (stored["title"], stored["summary"], stored["agent"]) == (text, text, text)
        (entry,) = today(refs)
        assert entry["content"] == f"[{text}] {text}"

    def test_every_ref_is_listed_once(self, refs: Refs) -> None:
        refs.write([ref(f"pages/{n}", n=n) for n in range(1203)], announce=False)
        found = list(refs.digests())
        assert len(found) == 1203
        assert set(found) == {(f"pages/{n}", f"digest {n}", 1) for n in range(1203)}

    def test_refs_may_be_written_while_they_are_listed(self, refs: Refs) -> None:
        refs.write([ref(f"pages/{n}", n=n) for n in range(700)], announce=False)
        for note_id, _, _ in refs.digests():
            refs.write([gone(note_id)], announce=False)
        assert list(refs.digests()) == []

    def test_recent_is_newest_first_and_limited(self, refs: Refs) -> None:
        refs.write([ref(f"pages/{n}", n=n) for n in (3, 1, 4, 5, 2)])
        assert [entry["notebook_id"] for entry in refs.recent(3)] == ["pages/5", "pages/4", "pages/3"]
        assert refs.recent()[0] == refs.get("pages/5")
        assert len(refs.recent()) == 5
        assert refs.recent(0) == refs.recent(-1) == []

    def test_recent_follows_a_change(self, refs: Refs) -> None:
        refs.write([ref("pages/a", n=1), ref("pages/b", n=2)])
        refs.write([ref("pages/a", n=3, version=2, action="updated")])
        assert [(entry["notebook_id"], entry["version"]) for entry in refs.recent()] == [
            ("pages/a", "2"),
            ("pages/b", "1"),
        ]

    @pytest.mark.parametrize("action", ["created", "updated", "moved", "deleted"])
    def test_an_announced_action_is_an_entry_of_the_stream(self, refs: Refs, action: str) -> None:
        refs.write([ref(action=action, deleted=action == "deleted")])
        (entry,) = today(refs)
        assert entry.keys() == {"id", "content", "source", "tags", "score", "timestamp", "action", "ref"}
        assert (entry["action"], entry["content"], entry["source"]) == (action, "[Plan] First.", "notebook")
        assert entry["tags"] == ["pages"]
        assert isinstance(entry["score"], float)
        assert entry["ref"]["notebook_id"] == "pages/plan"
        assert datetime.fromisoformat(entry["timestamp"]).utcoffset() == timedelta(0)
        assert "First." not in json.dumps(entry["ref"])

    @pytest.mark.parametrize("action", ["", "touched"])
    def test_other_actions_are_not_announced(self, refs: Refs, action: str) -> None:
        refs.write([ref(action=action), gone("pages/b", action="")])
        assert today(refs) == []
        assert refs.get("pages/plan") is not None

    def test_nothing_is_announced_unless_asked_for(self, refs: Refs) -> None:
        refs.write([ref(), gone("pages/b")], announce=False)
        assert today(refs) == []

    def test_the_stream_is_oldest_first(self, refs: Refs) -> None:
        refs.write([ref()])
        refs.write([ref(version=2, action="updated"), ref("pages/b")])
        refs.write([gone()])
        assert [(entry["ref"]["notebook_id"], entry["action"]) for entry in today(refs)] == [
            ("pages/plan", "created"),
            ("pages/plan", "updated"),
            ("pages/b", "created"),
            ("pages/plan", "deleted"),
        ]

    def test_what_was_told_twice_is_read_once(self, refs: Refs) -> None:
        for _ in range(3):
            refs.write([ref(), ref("pages/b")])
        assert sorted(entry["ref"]["notebook_id"] for entry in today(refs)) == ["pages/b", "pages/plan"]

    def test_what_two_writers_told_of_one_change_is_read_once(self, refs: Refs) -> None:
        for serial in (1, 2):
            refs.write([ref(serial=serial, event=1)])
        assert len(today(refs)) == 1

    def test_a_note_that_goes_there_and_back_tells_of_every_move(self, refs: Refs) -> None:
        paths = ["pages/b.md", "pages/a.md", "pages/b.md", "pages/a.md"]
        for event, path in enumerate(paths):
            refs.write([ref(path=path, action="moved", event=event)])
        assert [entry["ref"]["path"] for entry in today(refs)] == paths

    def test_what_is_told_again_later_stands_where_it_was_told_first(self, refs: Refs) -> None:
        for event in (1, 2, 1):
            refs.write([ref(action="updated", version=event, event=event)])
        assert [entry["ref"]["version"] for entry in today(refs)] == ["1", "2"]

    def test_an_unknown_day_is_empty(self, refs: Refs) -> None:
        assert refs.day("1999-12-31") == []
        assert refs.day("*") == []

    def test_the_day_is_that_of_the_notebook(self, open_refs: Opener) -> None:
        east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
        for zone in (east, west):
            before = datetime.now(zone).date()
            refs = open_refs(timezone=zone)
            refs.write([ref(f"pages/{zone}")])
            after = datetime.now(zone).date()
            told = [entry["ref"]["notebook_id"] for day in {before, after} for entry in refs.day(day.isoformat())]
            assert f"pages/{zone}" in told
            refs.close()

    def test_a_new_memory_has_no_owner(self, refs: Refs) -> None:
        assert refs.owner() == ""
        refs.write([ref()])
        assert refs.owner() == ""

    def test_adopting_keeps_what_is_kept_and_removes_the_rest(self, refs: Refs) -> None:
        refs.write([ref(f"pages/{n}", n=n) for n in range(1203)], announce=False)
        keep = {f"pages/{n}" for n in range(0, 1203, 2)} | {"never heard of"}
        refs.adopt("store 1", iter(keep))
        assert refs.owner() == "store 1"
        assert {note_id for note_id, _, _ in refs.digests()} == keep - {"never heard of"}
        assert refs.get("pages/1") is None
        assert all(entry["notebook_id"] in keep for entry in refs.recent(2000))

    def test_adopting_reads_what_to_keep_after_it_listed_what_is_there(self, refs: Refs) -> None:
        refs.write([ref("pages/old")])

        def keep() -> Iterator[str]:
            refs.write([ref("pages/written meanwhile")])
            yield from []

        refs.adopt("store 1", keep())
        assert [note_id for note_id, _, _ in refs.digests()] == ["pages/written meanwhile"]

    def test_adopting_again_changes_the_owner(self, refs: Refs) -> None:
        refs.write([ref()])
        refs.adopt("store 1", ["pages/plan"])
        refs.adopt("store 2", ["pages/plan"])
        assert refs.owner() == "store 2"
        assert refs.get("pages/plan") is not None

    def test_adopting_leaves_the_stream_alone(self, refs: Refs) -> None:
        refs.write([ref()])
        refs.adopt("store 1", [])
        assert list(refs.digests()) == []
        assert len(today(refs)) == 1

    def test_one_memory_is_shared_by_its_instances(self, open_refs: Opener, refs: Refs) -> None:
        other = open_refs()
        refs.write([ref()])
        assert other.get("pages/plan") == refs.get("pages/plan")
        other.close()

    def test_several_threads_may_write(self, refs: Refs) -> None:
        def write(writer: int) -> None:
            for n in range(20):
                refs.write([ref(f"pages/{writer}/{n}", n=n)])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
        assert len(list(refs.digests())) == 80
        assert len(today(refs)) == 80

    def test_a_moved_ref_tells_its_new_path(self, refs: Refs) -> None:
        refs.write([ref()])
        refs.write([replace(ref(), path="facts/plan.md", collection="facts", action="moved")])
        stored = refs.get("pages/plan")
        assert stored is not None
        assert (stored["path"], stored["tags"]) == ("facts/plan.md", "facts")
        assert [entry["action"] for entry in today(refs)] == ["created", "moved"]

    def test_closing_twice_is_allowed(self, open_refs: Opener) -> None:
        refs = open_refs()
        refs.owner()
        refs.close()
        refs.close()


def today(refs: Refs) -> list[dict[str, Any]]:
    """The stream of the day, and of the day before in case it has just ended."""
    now = datetime.now(UTC)
    days = [(now - timedelta(days=1)).date(), now.date()]
    return [entry for day in days for entry in refs.day(day.isoformat())]


CALLS: dict[str, Callable[[Refs], object]] = {
    "write": lambda refs: refs.write([ref()]),
    "get": lambda refs: refs.get("pages/plan"),
    "get_many": lambda refs: refs.get_many(["pages/plan", "pages/b"]),
    "digests": lambda refs: list(refs.digests()),
    "recent": lambda refs: refs.recent(),
    "day": lambda refs: refs.day("2026-03-01"),
    "owner": lambda refs: refs.owner(),
    "adopt": lambda refs: refs.adopt("store", []),
    "note_loss": lambda refs: refs.note_loss(T0),
    "lost": lambda refs: refs.lost(),
    "log": lambda refs: refs.log(entry("a")),
    "keep": lambda refs: refs.keep(entry("a")),
    "days": lambda refs: refs.days(),
    "longterm": lambda refs: refs.longterm(),
    "restore": lambda refs: refs.restore({"2026-03-01": Swap([entry("a")])}, Swap([entry("b")], {"c"})),
    "recall": lambda refs: refs.recall("plan", tags=["pages"], since=T0, now=T0),
    "put_checkpoint": lambda refs: refs.put_checkpoint(checkpoint(1)),
    "checkpoints": lambda refs: refs.checkpoints(),
    "checkpoint": lambda refs: refs.checkpoint("checkpoint-001"),
}
