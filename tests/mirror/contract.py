"""What every content store must do: each sentence of `mirror/base.py` as a test.

A store is tested by a subclass whose `open_mirror` fixture returns a picklable function without arguments that
opens the store of this test: once more for each call, also in another process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.files.note import (
    COLLECTIONS,
    HISTORY_LIMIT,
    PARSER_REVISION,
    Note,
    Problem,
    Ref,
    Section,
    Seed,
    Stamp,
    collection_of,
    id_from_path,
)
from notebook_sync.mirror.base import Breadcrumb, Filter, MarkStale, Mirror, Name, Put, Remove, Touch, Write
from notebook_sync.mirror.document import canonical, moment
from tests.processes import PROCESSES

Opener = Callable[[], Mirror]

T0 = datetime(2026, 3, 1, 9, 0, 0, 123000, tzinfo=UTC)
LIGHT = {"id", "path", "collection", "title", "summary", "tags", "updated_at", "status", "created_by", "word_count"} | {
    "version"
}
AWKWARD_KEYS: Mapping[str, Any] = {
    "$ne": 1,
    "$ref": "x",
    "a.b": {"c.d": [{"$set": {"%24": 2}}]},
    "%00": "percent",
    "": "empty",
    "ключ": "значение",
    "null\0byte": "\0",
}


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def note(path: str = "pages/plan.md", content: str = "# Plan\n\nFirst.\n", **fields: Any) -> Note:
    own = "wants" in fields
    described = {"title": "Plan", "summary": "First.", "word_count": 2, "token_count": 5, **fields}
    described.setdefault("wants", id_from_path(path))
    described.setdefault("digest", digest_of(content))
    return Note(path=path, collection=collection_of(path), has_own_id=own, content=content, **described)


def stamp(n: int = 0) -> Stamp:
    """A file's stamp, `n` seconds after the first one."""
    time_ns = int(T0.timestamp()) * 10**9 + 123_456_789 + n * 10**9
    return Stamp(size=100 + n, mtime_ns=time_ns, ctime_ns=time_ns + 1, inode=4711)


def put(of: Note, base: str | None = None, *, note_id: str = "", n: int = 0, action: str = "", **more: Any) -> Put:
    action = action or ("created" if base is None else "updated")
    crumb = more.pop("breadcrumb", Breadcrumb(T0 + timedelta(seconds=n), f"Said {of.content[:20]!r}", "agent:scribe"))
    return Put(note_id or of.wants, of, stamp(n), base, action, crumb, **more)


def many(count: int, folder: str = "pages") -> list[Put]:
    return [put(note(f"{folder}/n{n:04}.md", f"text {n}"), n=n) for n in range(count)]


class MirrorContract:
    @pytest.fixture
    def open_mirror(self) -> Opener:
        raise NotImplementedError

    @pytest.fixture
    def mirror(self, open_mirror: Opener) -> Iterator[Mirror]:
        mirror = open_mirror()
        yield mirror
        mirror.close()


class DocumentContract(MirrorContract):
    """What a Put stores and the readers return."""

    def test_a_note_becomes_its_document(self, mirror: Mirror) -> None:
        content = "# Plan\n\nWords.\n\n## Détails\n\nMore.\n"
        told = note(
            content=content,
            sections=(Section("Plan", 1, "plan", 1, 0, 34, 9), Section("Détails", 2, "details", 5, 16, 34, 4)),
            tags=("auth", "été"),
            links=("other",),
            status="in_progress",
            created_by="agent:scribe",
            extra={"mood": "calm", "depth": {"list": [1, 2.5, None, True]}},
            problems=(Problem(3, "odd"),),
        )
        assert mirror.apply([put(told)]) == []
        assert mirror.get("pages/plan") == {
            "id": "pages/plan",
            "wants": "pages/plan",
            "path": "pages/plan.md",
            "collection": "pages",
            "title": "Plan",
            "summary": "First.",
            "content": content,
            "sections": [
                {
                    "heading": section.heading,
                    "level": section.level,
                    "anchor": section.anchor,
                    "line": section.line,
                    "start": section.start,
                    "end": section.end,
                    "token_count": section.token_count,
                    "content": content[section.start : section.end],
                }
                for section in told.sections
            ],
            "metadata": {
                "created_by": "agent:scribe",
                "created_at": T0,
                "created_from": "file",
                "updated_at": T0,
                "version": 1,
                "tags": ["auth", "été"],
                "status": "in_progress",
                "word_count": 2,
                "token_count": 5,
                "links": ["other"],
                "extra": {"mood": "calm", "depth": {"list": [1, 2.5, None, True]}},
                "provenance": None,
            },
            "history": [
                {
                    "version": 1,
                    "timestamp": T0,
                    "summary": f"Said {content[:20]!r}",
                    "changed_by": "agent:scribe",
                }
            ],
            "source": {
                "path": "pages/plan.md",
                "digest": digest_of(content),
                "size": 100,
                "mtime_ns": stamp().mtime_ns,
                "ctime_ns": stamp().ctime_ns,
                "inode": 4711,
                "revision": PARSER_REVISION,
                "has_own_id": False,
                "broken": False,
            },
            "problems": [{"line": 3, "message": "odd", "severe": False}],
            "stale": None,
        }

    @pytest.mark.parametrize(
        ("path", "fields"),
        [
            ("code_snippets/a.md", {"language": "python", "description": "d", "related_page": "pages/plan"}),
            ("code_snippets/b.md", {"language": "klingon"}),
            (
                "research_notes/a.md",
                {"source_url": "https://x.test/?a=$b", "key_findings": ["$one"], "confidence": 0.5},
            ),
            ("memories/decision/a.md", {"kind": "decision", "relations": [{"type": "causes", "to": "b", "$or": []}]}),
        ],
    )
    def test_the_fields_of_its_collection_are_kept(self, mirror: Mirror, path: str, fields: dict[str, Any]) -> None:
        mirror.apply([put(note(path, fields=fields, code="x = '$y'"))])
        document = mirror.get(id_from_path(path))
        assert document is not None
        assert {key: document[key] for key in fields} == fields
        assert document["code"] == "x = '$y'"
        assert document["collection"] == collection_of(path)

    def test_a_field_that_the_file_no_longer_has_is_gone(self, mirror: Mirror) -> None:
        told = note("code_snippets/a.md", fields={"language": "python", "description": "d"}, code="x")
        mirror.apply([put(told)])
        mirror.apply([put(note("code_snippets/a.md", "other", fields={"language": "go"}), told.digest)])
        document = mirror.get("code_snippets/a")
        assert document is not None
        assert document["language"] == "go"
        assert {"description", "code"}.isdisjoint(document)

    def test_awkward_frontmatter_comes_back_as_it_was(self, mirror: Mirror) -> None:
        when = datetime(1969, 7, 20, 20, 17, 40, 5000, tzinfo=UTC)
        extra = {**AWKWARD_KEYS, "when": when, "nested": {"when": [when]}, "big": 2**63 - 1, "small": -(2**63)}
        mirror.apply([put(note(extra=extra))])
        document = mirror.get("pages/plan")
        assert document is not None
        assert document["metadata"]["extra"] == extra
        assert document["metadata"]["extra"]["when"].tzinfo is not None

    @pytest.mark.parametrize(
        "text", ["$set", "{{7*7}}", "a\0b", "🧑‍🚀 naïve ﷽", "${x} $where: 1", "'; DROP TABLE note;--"]
    )
    def test_text_is_data(self, mirror: Mirror, text: str) -> None:
        mirror.apply([put(note(content=text, title=text, summary=text, tags=(text,)))])
        document = mirror.get("pages/plan")
        assert document is not None
        assert (document["content"], document["title"], document["summary"]) == (text, text, text)
        assert document["metadata"]["tags"] == [text]

    @pytest.mark.parametrize(
        "note_id", ["$where", "a b", "été/ü", "a.b", "x:y", "{'$ne': 1}", "%", "a\0b", "pages/🧑‍🚀"]
    )
    def test_an_id_is_data(self, mirror: Mirror, note_id: str) -> None:
        mirror.apply([put(note(wants=note_id)), put(note("pages/other.md", "other"))])
        document = mirror.get(note_id)
        assert document is not None
        assert document["id"] == note_id
        assert [known.id for known in mirror.claimants([note_id])] == [note_id]

    def test_an_unknown_id_has_no_document(self, mirror: Mirror) -> None:
        assert mirror.get("nobody") is None
        assert mirror.get("\ud800") is None
        assert mirror.get_many(["nobody", ""]) == {}

    def test_get_many_finds_those_that_are_there(self, mirror: Mirror) -> None:
        mirror.apply(many(3))
        found = mirror.get_many(["pages/n0002", "nobody", "pages/n0000"])
        assert {note_id: document["content"] for note_id, document in found.items()} == {
            "pages/n0000": "text 0",
            "pages/n0002": "text 2",
        }

    def test_documents_come_in_id_order_whatever_their_collection(self, mirror: Mirror) -> None:
        told = [put(note(f"{name}/{n}.md", f"{name} {n}")) for n in range(2) for name in reversed(COLLECTIONS)]
        mirror.apply([*told, put(note("pages/ü.md", "last"), note_id="ü")])
        ids = [document["id"] for document in mirror.documents()]
        assert ids == sorted(ids)
        assert len(ids) == 2 * len(COLLECTIONS) + 1

    def test_documents_of_more_than_a_page_come_once_each(self, mirror: Mirror) -> None:
        mirror.apply(many(1203))
        assert [document["id"] for document in mirror.documents()] == [f"pages/n{n:04}" for n in range(1203)]
        assert [ref.id for ref in mirror.refs()] == [f"pages/n{n:04}" for n in range(1203)]
        assert len(mirror.known()) == 1203

    def test_documents_may_be_written_while_they_are_streamed(self, mirror: Mirror) -> None:
        mirror.apply(many(3))
        for document in mirror.documents():
            mirror.apply([MarkStale(document["id"], document["source"]["digest"], "seen")])
        assert mirror.counts()["stale"] == 3

    def test_light_has_no_content_and_is_newest_first_then_by_id(self, mirror: Mirror) -> None:
        mirror.apply(
            [
                put(note("pages/old.md", "old"), n=1),
                put(note("facts/b.md", "b"), n=5),
                put(note("pages/a.md", "a", status="complete", tags=("x",)), n=5),
                put(note("runtime/reminders.md", "r"), n=9),
            ]
        )
        found = mirror.light()
        assert [entry["id"] for entry in found] == ["runtime/reminders", "facts/b", "pages/a", "pages/old"]
        assert all(entry.keys() == LIGHT for entry in found)
        assert found[2] == {
            "id": "pages/a",
            "path": "pages/a.md",
            "collection": "pages",
            "title": "Plan",
            "summary": "First.",
            "tags": ["x"],
            "updated_at": T0 + timedelta(seconds=5),
            "status": "complete",
            "created_by": "owner",
            "word_count": 2,
            "version": 1,
        }

    def test_what_somebody_else_wrote_is_marked(self, mirror: Mirror) -> None:
        mirror.apply([put(note(provenance="external"))])
        (listed,) = mirror.light()
        assert listed == {**dict.fromkeys(LIGHT), **listed, "provenance": "external"}
        document = mirror.get("pages/plan")
        assert document is not None
        assert document["metadata"]["provenance"] == "external"

    def test_the_mark_goes_when_the_file_has_it_no_longer(self, mirror: Mirror) -> None:
        mirror.apply([put(note(provenance="external"))])
        mirror.apply([put(note(content="# Plan\n\nMine.\n"), note().digest)])
        assert [row.get("provenance") for row in mirror.light()] == [None]

    def test_light_is_narrowed_by_collection_and_status_and_limited_as_a_whole(self, mirror: Mirror) -> None:
        mirror.apply([*many(3), *many(2, "facts"), put(note("pages/done.md", "done", status="complete"), n=50)])
        assert [entry["id"] for entry in mirror.light(limit=3)] == ["pages/done", "pages/n0002", "facts/n0001"]
        assert {entry["collection"] for entry in mirror.light(Filter(collections=("facts",)))} == {"facts"}
        assert [entry["id"] for entry in mirror.light(Filter(status="complete"))] == ["pages/done"]
        assert mirror.light(Filter(collections=("facts",), status="complete")) == []
        assert mirror.light(Filter(collections=("no such collection",))) == []

    @pytest.mark.parametrize("limit", [0, -1])
    def test_light_of_none_is_empty(self, mirror: Mirror, limit: int) -> None:
        mirror.apply(many(3))
        assert mirror.light(limit=limit) == []

    def test_light_fields_of_many_are_had_by_id(self, mirror: Mirror) -> None:
        mirror.apply([*many(3), put(note("facts/plan.md", tags=("harbour",))), *many(1, "facts")])
        rows = {row["id"]: row for row in mirror.light()}
        assert mirror.light_many(list(rows)) == rows
        asked = ["facts/plan", "pages/n0001", "no such note", "$ne", "\ud800", "", "facts/plan"]
        assert mirror.light_many(asked) == {of: rows[of] for of in ("facts/plan", "pages/n0001")}
        assert mirror.light_many(asked, Filter(tags=("harbour",))) == {"facts/plan": rows["facts/plan"]}
        assert mirror.light_many(asked, Filter(collections=("channels",))) == {}
        assert mirror.light_many([]) == {}

    def test_light_fields_of_many_are_those_of_no_note_that_is_gone(self, mirror: Mirror) -> None:
        puts = many(1_100)
        mirror.apply(puts)
        mirror.apply([Remove(puts[0].id, puts[0].note.digest)])
        assert set(mirror.light_many([of.id for of in puts])) == {of.id for of in puts[1:]}

    def test_times_are_utc_to_the_millisecond(self, mirror: Mirror) -> None:
        elsewhere = datetime.fromisoformat("2026-02-03T04:05:06.789999+05:30")
        crumb = Breadcrumb(elsewhere, "Created")
        mirror.apply([put(note(created_at=elsewhere), breadcrumb=crumb)])
        document = mirror.get("pages/plan")
        assert document is not None
        expected = datetime(2026, 2, 2, 22, 35, 6, 789000, tzinfo=UTC)
        assert document["metadata"]["created_at"] == expected
        assert document["history"][0]["timestamp"] == expected
        assert document["metadata"]["updated_at"] == T0
        for when in (document["metadata"]["updated_at"], document["history"][0]["timestamp"]):
            assert when.utcoffset() == timedelta(0)

    def test_the_largest_numbers_of_a_stamp_come_back(self, mirror: Mirror) -> None:
        extreme = Stamp(size=2**40, mtime_ns=-1, ctime_ns=2**62, inode=2**64 - 1)
        mirror.apply([replace(put(note()), stamp=extreme)])
        assert [known.stamp for known in mirror.known()] == [extreme]
        document = mirror.get("pages/plan")
        assert document is not None
        assert document["source"]["inode"] == 2**64 - 1


class WriteContract(MirrorContract):
    """Who wins, who loses, and what a write leaves behind."""

    def test_a_new_row_starts_at_version_one(self, mirror: Mirror) -> None:
        assert mirror.apply([put(note())]) == []
        assert version(mirror) == 1
        assert summaries(mirror) == ["Said '# Plan\\n\\nFirst.\\n'"]

    def test_a_change_adds_a_version_and_a_breadcrumb(self, mirror: Mirror) -> None:
        first, second = note(), note(content="Second.")
        mirror.apply([put(first)])
        assert mirror.apply([put(second, first.digest, n=1)]) == []
        document = mirror.get("pages/plan")
        assert document is not None
        assert document["content"] == "Second."
        assert [entry["version"] for entry in document["history"]] == [1, 2]
        assert document["metadata"]["version"] == 2

    def test_the_same_digest_again_adds_neither(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        assert mirror.apply([put(note(title="Parsed anew"), note().digest, n=3)]) == []
        document = mirror.get("pages/plan")
        assert document is not None
        assert (document["title"], document["metadata"]["version"], len(document["history"])) == ("Parsed anew", 1, 1)
        assert document["source"]["mtime_ns"] == stamp(3).mtime_ns

    def test_a_write_is_idempotent(self, mirror: Mirror) -> None:
        first, second = note(), note(content="Second.")
        mirror.apply([put(first)])
        for _ in range(3):
            assert mirror.apply([put(second, first.digest)]) == []
        assert version(mirror) == 2
        for _ in range(3):
            assert mirror.apply([Remove("pages/plan", second.digest)]) == []
        assert mirror.known() == []

    def test_a_put_whose_base_is_no_longer_true_loses_and_changes_nothing(self, mirror: Mirror) -> None:
        first, second, third = note(), note(content="Second."), note(content="Third.")
        mirror.apply([put(first)])
        mirror.apply([put(second, first.digest)])
        before = mirror.get("pages/plan")
        late = put(third, first.digest)
        assert mirror.apply([late]) == [late]
        assert mirror.get("pages/plan") == before

    def test_a_put_loses_to_a_row_that_came_back_to_its_base(self, mirror: Mirror) -> None:
        draft, done, late = (note("pages/plan.md", text) for text in ("draft", "done", "late"))
        mirror.apply([put(draft)])
        mirror.apply([put(done, draft.digest, n=1)])
        mirror.apply([put(draft, done.digest, n=2)])
        after_the_first = put(late, draft.digest, n=3, base_version=1)
        assert mirror.apply([after_the_first]) == [after_the_first]
        assert mirror.apply([put(late, draft.digest, n=3, base_version=3)]) == []
        assert [crumb["version"] for crumb in (mirror.get("pages/plan") or {})["history"]] == [1, 2, 3, 4]

    def test_a_put_that_expects_no_row_loses_to_another_file_with_its_id(self, mirror: Mirror) -> None:
        mirror.apply([put(note(wants="mine"))])
        other = put(note("pages/other.md", "other", wants="mine"))
        assert mirror.apply([other]) == [other]
        twin = put(note("pages/twin.md", wants="mine"))
        assert mirror.apply([twin]) == [twin]
        document = mirror.get("mine")
        assert document is not None
        assert document["path"] == "pages/plan.md"

    def test_only_the_losers_are_returned(self, mirror: Mirror) -> None:
        mirror.apply(many(3))
        late: list[Write] = [
            MarkStale("pages/n0001", "not this", "late"),
            Touch("nobody", "x", stamp()),
            Remove("pages/n0002", "x"),
        ]
        won: list[Write] = [Touch("pages/n0000", digest_of("text 0"), stamp(7)), put(note("pages/new.md", "new"))]
        assert mirror.apply([late[0], won[0], late[1], won[1], late[2]]) == late
        assert len(mirror.known()) == 4

    def test_a_batch_sees_its_own_earlier_writes(self, mirror: Mirror) -> None:
        first, second = note(), note(content="Second.")
        writes = [put(first), put(second, first.digest), Touch("pages/plan", second.digest, stamp(9))]
        assert mirror.apply(writes) == []
        assert version(mirror) == 2
        assert mirror.known()[0].stamp == stamp(9)

    def test_no_writes_lose_nothing(self, mirror: Mirror) -> None:
        assert mirror.apply([]) == []

    def test_a_touch_changes_the_stamp_and_clears_stale(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        mirror.apply([MarkStale("pages/plan", note().digest, "not UTF-8")])
        assert mirror.apply([Touch("pages/plan", note().digest, stamp(8))]) == []
        document = mirror.get("pages/plan")
        assert document is not None
        assert (document["stale"], document["metadata"]["version"]) == (None, 1)
        assert document["metadata"]["updated_at"] == moment(stamp(8).mtime_ns)
        assert mirror.known()[0].stamp == stamp(8)

    def test_a_touched_row_is_what_a_rebuild_would_make(self, open_mirror: Opener, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        mirror.apply([Touch("pages/plan", note().digest, stamp(8))])
        touched = mirror.get("pages/plan")
        mirror.apply([put(note(), note().digest, n=8)])
        rewritten = mirror.get("pages/plan")
        assert touched is not None
        assert rewritten is not None
        assert canonical(touched) == canonical(rewritten)

    def test_stale_keeps_the_last_good_note(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        assert mirror.apply([MarkStale("pages/plan", note().digest, "not UTF-8: \udce9")]) == []
        document = mirror.get("pages/plan")
        assert document is not None
        assert document["content"] == note().content
        assert document["stale"].startswith("not UTF-8: ")
        assert mirror.known()[0].stale == document["stale"]
        assert mirror.known()[0].digest == note().digest

    def test_a_put_clears_stale(self, mirror: Mirror) -> None:
        mirror.apply([put(note()), MarkStale("pages/plan", note().digest, "bad")])
        mirror.apply([put(note(content="good"), note().digest)])
        assert mirror.known()[0].stale == ""

    def test_history_keeps_the_last_entries(self, mirror: Mirror) -> None:
        base = None
        for n in range(HISTORY_LIMIT + 5):
            told = note(content=f"text {n}")
            assert mirror.apply([put(told, base, n=n)]) == []
            base = told.digest
        document = mirror.get("pages/plan")
        assert document is not None
        versions = [entry["version"] for entry in document["history"]]
        assert versions == list(range(6, HISTORY_LIMIT + 6))
        assert document["history"][-1]["summary"] == f"Said 'text {HISTORY_LIMIT + 4}'"

    def test_created_at_is_kept_unless_frontmatter_names_it(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        mirror.apply([put(note(content="later"), note().digest, n=500)])
        assert created(mirror) == (T0, "file")
        named = datetime(2020, 1, 1, tzinfo=UTC)
        mirror.apply([put(note(content="named", created_at=named), digest_of("later"), n=600)])
        assert created(mirror) == (named, "frontmatter")

    def test_a_seed_gives_a_new_row_its_past(self, mirror: Mirror) -> None:
        past = tuple(
            {"version": n, "timestamp": T0 - timedelta(days=9 - n), "summary": f"commit {n}", "changed_by": "owner"}
            for n in range(1, 4)
        )
        seed = Seed(version=3, created_at=T0 - timedelta(days=8), history=past)
        mirror.apply([put(note(), seed=seed)])
        assert (version(mirror), summaries(mirror)) == (3, ["commit 1", "commit 2", "commit 3"])
        assert created(mirror) == (T0 - timedelta(days=8), "git")
        mirror.apply([put(note(content="next"), note().digest)])
        assert (version(mirror), summaries(mirror)[-1]) == (4, "Said 'next'")
        assert created(mirror) == (T0 - timedelta(days=8), "git")

    def test_a_seed_is_for_rows_the_store_never_held(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        seed = Seed(version=30, created_at=T0 - timedelta(days=8), history=())
        mirror.apply([put(note(content="next"), note().digest, seed=seed)])
        assert version(mirror) == 2

    def test_another_path_in_the_same_collection_keeps_the_row(self, mirror: Mirror) -> None:
        mirror.apply([put(note(wants="mine"))])
        mirror.apply([put(note("pages/deep/plan.md", wants="mine"), note().digest, action="moved")])
        assert [(known.id, known.path, known.version) for known in mirror.known()] == [
            ("mine", "pages/deep/plan.md", 1)
        ]

    def test_another_collection_keeps_what_is_operational(self, mirror: Mirror) -> None:
        first, second = note(wants="mine"), note("facts/plan.md", "Second.", wants="mine")
        mirror.apply([put(first)])
        assert mirror.apply([put(second, first.digest, action="moved", n=5)]) == []
        document = mirror.get("mine")
        assert document is not None
        assert (document["collection"], document["content"]) == ("facts", "Second.")
        assert [entry["version"] for entry in document["history"]] == [1, 2]
        assert document["metadata"]["created_at"] == T0
        assert [known.path for known in mirror.known()] == ["facts/plan.md"]
        assert [document["id"] for document in mirror.documents()] == ["mine"]
        assert [(ref.collection, ref.deleted) for ref in mirror.pending()] == [("facts", False)]
        counts = mirror.counts()
        assert (counts["notes"], counts["collection:pages"], counts["collection:facts"]) == (1, 0, 1)

    def test_there_and_back_again(self, mirror: Mirror) -> None:
        home, away = note(wants="mine"), note("facts/plan.md", wants="mine")
        mirror.apply([put(home)])
        for _ in range(3):
            assert mirror.apply([put(away, home.digest, action="moved")]) == []
            assert mirror.apply([put(home, home.digest, action="moved")]) == []
        assert [(known.path, known.version) for known in mirror.known()] == [("pages/plan.md", 1)]

    def test_two_notes_may_swap_their_names(self, mirror: Mirror) -> None:
        one, two = note("pages/1.md", "one", wants="one"), note("pages/2.md", "two", wants="two")
        mirror.apply([put(one), put(two)])
        swapped = [
            put(note("pages/2.md", "one", wants="one"), one.digest, action="moved"),
            put(note("pages/1.md", "two", wants="two"), two.digest, action="moved"),
        ]
        assert mirror.apply(swapped) == []
        assert sorted((known.id, known.path) for known in mirror.known()) == [
            ("one", "pages/2.md"),
            ("two", "pages/1.md"),
        ]

    def test_a_path_that_another_note_holds_is_not_taken_from_it(self, mirror: Mirror) -> None:
        mirror.apply([put(note(wants="one"))])
        intruder = put(note(content="other", wants="two"))
        assert mirror.apply([intruder]) == [intruder]
        assert [known.id for known in mirror.known()] == ["one"]

    def test_a_row_that_lost_its_place_has_an_empty_path_wherever_it_is_read(self, mirror: Mirror) -> None:
        one, two = note("pages/1.md", "one", wants="one"), note("pages/2.md", "two", wants="two")
        mirror.apply([put(one), put(two)])
        late = put(note("pages/3.md", "newer", wants="one"), digest_of("another"), action="moved")
        assert mirror.apply([late, put(note("pages/1.md", "two", wants="two"), two.digest, action="moved")]) == [late]
        document = mirror.get("one")
        assert document is not None
        assert (document["path"], document["source"]["path"]) == ("", "pages/1.md")
        assert {light["id"]: light["path"] for light in mirror.light()} == {"one": "", "two": "pages/1.md"}
        assert list(mirror.paths()) == ["pages/1.md"]
        assert [name.path for name in mirror.names()] == ["pages/1.md"]
        assert {known.id: known.path for known in mirror.known()} == {"one": "", "two": "pages/1.md"}
        assert {ref.id: ref.path for ref in mirror.refs()} == {"one": "pages/1.md", "two": "pages/1.md"}
        mirror.apply([Remove("one", one.digest)])
        assert [ref.path for ref in mirror.pending(["one"])] == ["pages/1.md"]

    def test_a_path_is_free_once_its_note_is_removed(self, mirror: Mirror) -> None:
        mirror.apply([put(note(wants="one"))])
        assert mirror.apply([Remove("one", note().digest), put(note(content="other", wants="two"))]) == []
        assert [(known.id, known.path) for known in mirror.known()] == [("two", "pages/plan.md")]

    def test_one_store_is_shared_by_its_instances(self, open_mirror: Opener, mirror: Mirror) -> None:
        other = open_mirror()
        try:
            mirror.apply([put(note())])
            assert other.get("pages/plan") == mirror.get("pages/plan")
            assert other.store_id() == mirror.store_id()
        finally:
            other.close()

    def test_closing_twice_is_allowed(self, open_mirror: Opener) -> None:
        mirror = open_mirror()
        mirror.known()
        mirror.close()
        mirror.close()


class TombstoneContract(MirrorContract):
    """Notes that are gone while their refs are not, and notes that replace others."""

    def test_its_path_and_its_names_are_told_no_more(self, mirror: Mirror) -> None:
        mirror.apply([put(note("pages/a.md", "a")), put(note("facts/b.md", "b", wants="bee"))])
        assert sorted(mirror.paths()) == ["facts/b.md", "pages/a.md"]
        assert sorted(name.wants for name in mirror.names()) == ["bee", "pages/a"]
        mirror.apply([Remove("pages/a", digest_of("a"))])
        assert list(mirror.paths()) == ["facts/b.md"]
        assert list(mirror.names()) == [Name("facts/b.md", note().title, "bee")]

    def test_readers_do_not_see_a_tombstone(self, mirror: Mirror) -> None:
        mirror.apply([put(note()), put(note("pages/b.md", "b"))])
        assert mirror.apply([Remove("pages/plan", note().digest)]) == []
        assert [known.id for known in mirror.known()] == ["pages/b"]
        assert [known.id for known in mirror.known(["pages"])] == ["pages/b"]
        assert mirror.claimants(["pages/plan"]) == []
        assert mirror.get("pages/plan") is None
        assert mirror.get_many(["pages/plan"]) == {}
        assert [document["id"] for document in mirror.documents()] == ["pages/b"]
        assert [ref.id for ref in mirror.refs()] == ["pages/b"]
        assert [entry["id"] for entry in mirror.light()] == ["pages/b"]
        assert (mirror.counts()["notes"], mirror.counts()["collection:pages"]) == (1, 1)

    def test_it_asks_for_its_ref_to_be_removed_until_that_is_done(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        mirror.refs_written(mirror.pending())
        mirror.apply([Remove("pages/plan", note().digest)])
        (ref,) = mirror.pending()
        assert (ref.id, ref.deleted, ref.action, ref.title) == ("pages/plan", True, "deleted", "Plan")
        assert mirror.pending(["pages/plan"]) == [ref]
        assert mirror.counts()["pending"] == 1
        mirror.refs_written([ref])
        assert mirror.pending() == []
        assert mirror.counts()["pending"] == 0

    def test_a_put_revives_it_and_its_past(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        mirror.apply([put(note(content="Second."), note().digest)])
        mirror.apply([Remove("pages/plan", digest_of("Second."))])
        assert mirror.apply([put(note(content="Third."), n=99)]) == []
        assert (version(mirror), len(summaries(mirror))) == (3, 3)
        assert created(mirror) == (T0, "file")
        (ref,) = mirror.pending()
        assert (ref.action, ref.deleted) == ("created", False)

    def test_it_is_revived_in_another_collection(self, mirror: Mirror) -> None:
        mirror.apply([put(note(wants="mine"))])
        mirror.apply([Remove("mine", note().digest)])
        assert mirror.apply([put(note("facts/plan.md", "Second.", wants="mine"))]) == []
        assert [(known.id, known.path, known.version) for known in mirror.known()] == [("mine", "facts/plan.md", 2)]
        assert [(ref.id, ref.deleted) for ref in mirror.pending()] == [("mine", False)]

    def test_the_removal_of_its_ref_comes_too_late_for_a_revived_note(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        mirror.apply([Remove("pages/plan", note().digest)])
        late = mirror.pending()
        mirror.apply([put(note())])
        mirror.refs_written(late)
        assert mirror.get("pages/plan") is not None
        assert [ref.deleted for ref in mirror.pending()] == [False]

    def test_a_buried_note_may_begin_anew(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        first = mirror.pending()
        mirror.apply([Remove("pages/plan", note().digest)])
        mirror.refs_written(mirror.pending())
        mirror.apply([put(note())])
        assert version(mirror) == 1
        assert [ref.action for ref in mirror.pending()] == ["created"]
        assert first[0].deleted is False

    def test_touch_and_stale_lose_to_a_tombstone(self, mirror: Mirror) -> None:
        mirror.apply([put(note()), Remove("pages/plan", note().digest)])
        late: list[Write] = [
            Touch("pages/plan", note().digest, stamp(1)),
            MarkStale("pages/plan", note().digest, "late"),
        ]
        assert mirror.apply(late) == late
        assert mirror.known() == []

    def test_a_replacement_carries_the_past_to_its_new_id(self, mirror: Mirror) -> None:
        old, new = note("pages/old.md"), note("pages/new.md")
        mirror.apply([put(old)])
        assert mirror.apply([put(new, replaces="pages/old", action="moved", n=400)]) == []
        document = mirror.get("pages/new")
        assert document is not None
        assert (document["metadata"]["version"], document["metadata"]["created_at"]) == (1, T0)
        assert summaries(mirror, "pages/new") == ["Said '# Plan\\n\\nFirst.\\n'"]
        assert [known.id for known in mirror.known()] == ["pages/new"]

    def test_a_replacement_with_other_text_is_one_version_more(self, mirror: Mirror) -> None:
        mirror.apply([put(note("pages/old.md"))])
        mirror.apply([put(note("facts/new.md", "Other."), replaces="pages/old", action="moved")])
        assert (version(mirror, "facts/new"), len(summaries(mirror, "facts/new"))) == (2, 2)

    def test_a_replaced_ref_is_removed_without_an_announcement(self, mirror: Mirror) -> None:
        mirror.apply([put(note("pages/old.md"))])
        mirror.refs_written(mirror.pending())
        mirror.apply([put(note("pages/new.md"), replaces="pages/old", action="moved")])
        assert [(ref.id, ref.action, ref.deleted) for ref in mirror.pending()] == [
            ("pages/new", "moved", False),
            ("pages/old", "", True),
        ]
        mirror.refs_written(mirror.pending())
        assert mirror.pending() == []
        assert mirror.get("pages/new") is not None

    def test_a_file_may_get_another_id_where_it_is(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        assert mirror.apply([put(note(content="id: mine", wants="mine"), replaces="pages/plan")]) == []
        assert [(known.id, known.path, known.version) for known in mirror.known()] == [("mine", "pages/plan.md", 2)]

    def test_a_replacement_is_idempotent(self, mirror: Mirror) -> None:
        mirror.apply([put(note("pages/old.md"))])
        for _ in range(3):
            mirror.apply([put(note("pages/new.md", "Other."), replaces="pages/old", action="moved")])
        assert [(known.id, known.version) for known in mirror.known()] == [("pages/new", 2)]

    def test_what_is_replaced_only_ends_where_the_row_is_known_already(self, mirror: Mirror) -> None:
        mirror.apply([put(note("pages/old.md", "old")), put(note("pages/new.md", "new"))])
        mirror.apply([put(note("pages/new.md", "newer"), digest_of("new"), replaces="pages/old")])
        assert [(known.id, known.version) for known in mirror.known()] == [("pages/new", 2)]
        assert summaries(mirror, "pages/new") == ["Said 'new'", "Said 'newer'"]

    def test_a_replacement_that_another_process_made_and_went_on_from_keeps_its_own_past(self, mirror: Mirror) -> None:
        new = note("pages/new.md", "new")
        mirror.apply([put(note("pages/old.md", "old")), put(new)])
        mirror.apply([put(new, replaces="pages/old", action="moved")])
        assert [(known.id, known.version) for known in mirror.known()] == [("pages/new", 1)]
        assert summaries(mirror, "pages/new") == ["Said 'new'"]

    def test_two_notes_that_swap_names_one_after_the_other_keep_each_its_own_past(self, mirror: Mirror) -> None:
        mirror.apply([put(note("pages/1.md", "one", wants="one")), put(note("pages/2.md", "two", wants="two"))])
        mirror.apply([put(note("pages/1.md", "two"), replaces="one", action="moved")])
        mirror.apply([put(note("pages/2.md", "one", wants="one"), replaces="two", action="moved")])
        mirror.apply([put(note("pages/1.md", "two", wants="two"), replaces="pages/1", action="moved")])
        assert [(known.id, known.version) for known in sorted(mirror.known())] == [("one", 1), ("two", 1)]
        assert (summaries(mirror, "one"), summaries(mirror, "two")) == (["Said 'one'"], ["Said 'two'"])


class PendingContract(MirrorContract):
    """What hot memory has still to be told."""

    def test_a_ref_tells_what_the_row_is(self, mirror: Mirror) -> None:
        mirror.apply([put(note(summary="Short.", status="complete", created_by="agent:a"))])
        (ref,) = mirror.pending()
        assert replace(ref, serial=0, event=0) == Ref(
            id="pages/plan",
            title="Plan",
            summary="Short.",
            collection="pages",
            updated_at=T0,
            status="complete",
            version=1,
            digest=note().digest,
            agent="agent:a",
            path="pages/plan.md",
            action="created",
        )

    def test_it_is_cleared_once_it_is_written_and_the_row_stays(self, mirror: Mirror) -> None:
        mirror.apply(many(3))
        refs = mirror.pending()
        assert [ref.id for ref in refs] == ["pages/n0000", "pages/n0001", "pages/n0002"]
        mirror.refs_written(refs[:2])
        assert [ref.id for ref in mirror.pending()] == ["pages/n0002"]
        assert [known.pending for known in sorted(mirror.known(), key=lambda known: known.id)] == ["", "", "created"]
        assert next((ref.id, ref.action) for ref in mirror.refs()) == ("pages/n0000", "")
        assert len(list(mirror.refs())) == 3

    def test_it_can_be_asked_for_some_ids(self, mirror: Mirror) -> None:
        mirror.apply(many(3))
        assert [ref.id for ref in mirror.pending(["pages/n0001", "nobody", "\ud800"])] == ["pages/n0001"]
        assert mirror.pending([]) == []

    def test_a_row_whose_serial_moved_on_is_left_alone(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        late = mirror.pending()
        mirror.apply([put(note(content="Second."), note().digest)])
        mirror.refs_written(late)
        assert [ref.version for ref in mirror.pending()] == [2]

    def test_who_was_late_learns_what_hot_memory_should_have_been_told(self, mirror: Mirror) -> None:
        mirror.apply([*many(2), put(note())])
        late = mirror.pending()
        second = note(content="Second.")
        mirror.apply([put(second, note().digest), Remove("pages/n0000", digest_of("text 0"))])
        mirror.refs_written(mirror.pending())
        told = mirror.refs_written(late)
        assert sorted((ref.id, ref.digest, ref.deleted) for ref in told) == [
            ("pages/n0000", digest_of("text 0"), True),
            ("pages/plan", second.digest, False),
        ]

    def test_who_was_in_time_learns_nothing(self, mirror: Mirror) -> None:
        mirror.apply([*many(2), put(note())])
        mirror.apply([Remove("pages/plan", note().digest)])
        assert mirror.refs_written(mirror.pending()) == []
        assert mirror.refs_written([]) == []

    def test_the_serial_grows_with_every_write(self, mirror: Mirror) -> None:
        mirror.apply([put(note(wants="mine"))])
        serials = [mirror.pending()[0].serial]
        for write in (
            Touch("mine", note().digest, stamp(1)),
            MarkStale("mine", note().digest, "bad"),
            put(note(wants="mine"), note().digest),
            put(note("facts/plan.md", wants="mine"), note().digest, action="moved"),
            Remove("mine", note().digest),
            put(note(wants="mine")),
        ):
            mirror.apply([write])
            serials.append(mirror.pending()[0].serial)
        assert serials == sorted(set(serials))

    def test_who_writes_the_same_once_more_tells_of_no_other_event(self, mirror: Mirror) -> None:
        created = put(note(wants="mine"))
        changed = put(note(content="x", wants="mine"), note().digest)
        events: list[set[int]] = []
        for write in (
            created,
            changed,
            put(note("facts/plan.md", "x", wants="mine"), digest_of("x"), action="moved"),
            put(note("pages/plan.md", "x", wants="mine"), digest_of("x"), action="moved"),
            Remove("mine", digest_of("x")),
            changed,
        ):
            seen = set()
            for again in (write, write, Touch("mine", digest_of("x"), stamp(1))):
                mirror.apply([again])
                seen.add(mirror.pending()[0].event)
            events.append(seen)
        assert [len(seen) for seen in events] == [1] * len(events)
        assert sorted(events, key=min) == events
        assert len(set.union(*events)) == len(events)

    def test_who_comes_late_with_what_a_row_says_already_tells_nothing(self, mirror: Mirror) -> None:
        mirror.apply([put(note("pages/b.md", "x"), action="moved")])
        late = put(note("pages/b.md", "x"))
        mirror.apply([late])
        assert [ref.action for ref in mirror.pending()] == ["moved"]
        mirror.refs_written(mirror.pending())
        mirror.apply([late])
        assert [ref.action for ref in mirror.pending()] == ["touched"]

    def test_a_note_that_is_made_anew_is_another_event(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        (before,) = mirror.pending()
        mirror.apply([Remove("pages/plan", note().digest)])
        mirror.refs_written(mirror.pending())
        mirror.apply([put(note())])
        (after,) = mirror.pending()
        assert (after.action, after.version, after.digest) == (before.action, before.version, before.digest)
        assert after.event > before.event

    @pytest.mark.parametrize(
        ("earlier", "later", "told"),
        [("created", "updated", "created"), ("updated", "moved", "moved"), ("moved", "touched", "moved")],
    )
    def test_an_action_that_was_not_told_is_not_forgotten(
        self, mirror: Mirror, earlier: str, later: str, told: str
    ) -> None:
        mirror.apply([put(note(), action=earlier)])
        if later == "touched":
            mirror.apply([Touch("pages/plan", note().digest, stamp(1))])
        else:
            mirror.apply([put(note(content="x"), note().digest, action=later)])
        assert [ref.action for ref in mirror.pending()] == [told]

    def test_put_touch_and_remove_set_it_and_stale_does_not(self, mirror: Mirror) -> None:
        seen: list[list[str]] = []
        for write in (
            put(note()),
            Touch("pages/plan", note().digest, stamp(1)),
            MarkStale("pages/plan", note().digest, "bad"),
            put(note(content="x"), note().digest),
            Remove("pages/plan", digest_of("x")),
        ):
            mirror.apply([write])
            refs = mirror.pending()
            seen.append([ref.action for ref in refs])
            mirror.refs_written(refs)
        assert seen == [["created"], ["touched"], [], ["updated"], ["deleted"]]

    def test_counts(self, mirror: Mirror) -> None:
        empty = {
            "notes": 0,
            "stale": 0,
            "problems": 0,
            "pending": 0,
            **{f"collection:{name}": 0 for name in COLLECTIONS},
        }
        assert mirror.counts() == empty
        odd = note("facts/a.md", "a", problems=(Problem(0, "x"), Problem(3, "y")))
        mirror.apply([*many(3), put(odd)])
        mirror.refs_written(mirror.pending(["pages/n0000"]))
        mirror.apply([MarkStale("pages/n0001", digest_of("text 1"), "bad"), Remove("pages/n0002", digest_of("text 2"))])
        assert mirror.note_count() == mirror.counts()["notes"]
        assert mirror.counts() == {
            **empty,
            "notes": 3,
            "stale": 1,
            "problems": 1,
            "pending": 3,
            "collection:pages": 2,
            "collection:facts": 1,
        }

    def test_the_store_has_one_id(self, mirror: Mirror) -> None:
        assert mirror.store_id()
        assert mirror.store_id() == mirror.store_id()


class KnownContract(MirrorContract):
    """What is known of files, and which rows claim an id."""

    def test_a_row_tells_what_it_knows_of_its_file(self, mirror: Mirror) -> None:
        odd = note(wants="mine", problems=(Problem(1, "a", severe=True), Problem(2, "b")))
        mirror.apply([put(odd)])
        (known,) = mirror.known()
        assert (known.id, known.wants, known.has_own_id, known.path) == ("mine", "mine", True, "pages/plan.md")
        assert (known.digest, known.stamp, known.revision) == (odd.digest, stamp(), PARSER_REVISION)
        assert (known.version, known.stale, known.problems, known.broken, known.pending) == (1, "", 2, True, "created")

    @pytest.mark.parametrize(
        ("places", "found"),
        [
            (["a"], ["a/b.md", "a/c/d.md"]),
            (["a/c"], ["a/c/d.md"]),
            (["a.md"], ["a.md"]),
            (["ab", "a.md"], ["a.md", "ab/x.md"]),
            (["a/b.md", "a"], ["a/b.md", "a/c/d.md"]),
            (["a/"], []),
            (["A", "b", "a/b", "%", "_b", "*", ".*", "$"], []),
            ([""], ["a-b.md", "a.md", "a/b.md", "a/c/d.md", "a0.md", "ab.md", "ab/x.md"]),
            ([], []),
        ],
    )
    def test_a_place_is_a_path_or_a_folder(self, mirror: Mirror, places: list[str], found: list[str]) -> None:
        paths = ["a.md", "ab.md", "ab/x.md", "a/b.md", "a/c/d.md", "a-b.md", "a0.md"]
        mirror.apply([put(note(path, path)) for path in paths])
        assert sorted(known.path for known in mirror.known(places)) == found

    def test_places_that_no_row_can_have_are_empty(self, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        assert mirror.known(["caf\udce9.md", "pages/\ud800"]) == []

    def test_claimants_have_the_id_or_want_it(self, mirror: Mirror) -> None:
        mirror.apply(
            [
                put(note("pages/a.md", "a", wants="mine")),
                put(note("pages/b.md", "b", wants="mine"), note_id="pages/b"),
                put(note("pages/c.md", "c")),
            ]
        )
        assert sorted(known.id for known in mirror.claimants(["mine"])) == ["mine", "pages/b"]
        assert [known.id for known in mirror.claimants(["pages/b"])] == ["pages/b"]
        assert len(mirror.claimants(["mine", "pages/c", "pages/b", "nobody", "\ud800"])) == 3
        assert mirror.claimants([]) == []

    def test_thousands_of_ids_may_be_asked_for_at_once(self, mirror: Mirror) -> None:
        mirror.apply(many(3))
        ids = [f"pages/n{n:04}" for n in range(2500)]
        assert len(mirror.claimants(ids)) == 3
        assert len(mirror.get_many(ids)) == 3
        assert len(mirror.known([f"{note_id}.md" for note_id in ids])) == 3
        assert len(mirror.pending(ids)) == 3


class SearchContract(MirrorContract):
    """Words are found, marks are data."""

    def test_words_are_found_in_title_summary_content_and_code(self, mirror: Mirror) -> None:
        mirror.apply(
            [
                put(note("pages/a.md", "a", title="Quokka census")),
                put(note("pages/b.md", "b", summary="On wombats.")),
                put(note("facts/c.md", "The numbat sleeps.")),
                put(note("code_snippets/d.md", "d", code="def bilby(): ...", fields={"language": "python"})),
            ]
        )
        for word, note_id in {
            "quokka": "pages/a",
            "WOMBAT": "pages/b",
            "numbat": "facts/c",
            "bilby": "code_snippets/d",
        }.items():
            (hit,) = mirror.search(word)
            assert hit["id"] == note_id
            assert hit.keys() - {"language"} == LIGHT | {"score"}
            assert hit["score"] > 0

    def test_what_somebody_else_wrote_is_marked_where_it_is_found(self, mirror: Mirror) -> None:
        mirror.apply([put(note(provenance="external"))])
        (hit,) = mirror.search("plan")
        assert (hit["provenance"], hit.keys()) == ("external", LIGHT | {"provenance", "score"})

    def test_the_best_come_first_and_the_limit_is_for_the_whole(self, mirror: Mirror) -> None:
        filler = "some other words about nothing in particular " * 5
        mirror.apply(
            [
                put(note("pages/mentions.md", f"{filler} race {filler}", title="Notes", summary="")),
                put(note("facts/about.md", f"race condition: {filler}", title="Race condition", summary="")),
                put(note("pages/unrelated.md", filler, title="Else", summary="")),
            ]
        )
        hits = mirror.search("race condition")
        assert [hit["id"] for hit in hits] == ["facts/about", "pages/mentions"]
        assert hits[0]["score"] > hits[1]["score"]
        assert [hit["id"] for hit in mirror.search("race condition", limit=1)] == ["facts/about"]

    @pytest.mark.parametrize("folder", ["pages", "channels/scribe/global"])
    @pytest.mark.parametrize(
        "wanted",
        [
            Filter(status="complete"),
            Filter(tags=("winter", "ice")),
            Filter(tags=("winter",), created_by="agent:scribe"),
            Filter(of_channels=("channels/pilot", "channels/scribe/global/a"), tags=("winter",)),
        ],
        ids=["status", "tags", "tags and author", "tags and channels"],
    )
    def test_a_search_finds_only_what_its_filter_admits(self, mirror: Mirror, folder: str, wanted: Filter) -> None:
        fields: dict[str, Any] = {"status": "complete", "tags": ("winter",), "created_by": "agent:scribe"}
        mirror.apply([put(note(f"{folder}/a/admitted.md", "A halyard.\n", **fields))])
        mirror.apply([put(note(f"{folder}/b/other.md", "A halyard, and a halyard.\n", tags=("summer",)))])
        assert [row["id"] for row in mirror.search("halyard", 10, wanted)] == [f"{folder}/a/admitted"]

    @pytest.mark.parametrize(
        ("title", "queries"),
        [
            ("IT budget", ["IT", "it"]),
            ("To be or not to be", ["to be or not to be", "not", "OR"]),
            ("Don't panic", ["don't", "panic"]),
            ("Who is on", ["the who", "who", "on"]),
            ("def parse_config_file", ["config", "parse", "parse_config_file"]),
            ("Résumé", ["resume", "résumé"]),
            ("O'Brien and l'eau", ["brien", "eau", "O'Brien"]),
        ],
        ids=lambda given: given if isinstance(given, str) else "",
    )
    def test_every_word_is_found(self, mirror: Mirror, title: str, queries: list[str]) -> None:
        mirror.apply([put(note("pages/this.md", "quokka", title=title, summary="")), put(note("pages/x.md", "numbat"))])
        assert {query: [hit["id"] for hit in mirror.search(query)] for query in queries} == {
            query: ["pages/this"] for query in queries
        }

    def test_common_words_count_for_nothing_beside_others(self, mirror: Mirror) -> None:
        others = [put(note(f"pages/{number}.md", "the crossing of the day", title="The day")) for number in range(9)]
        mirror.apply([put(note("pages/tides.md", "tides")), *others])
        assert mirror.search("the tides of winter")[0]["id"] == "pages/tides"

    @pytest.mark.parametrize("limit", [0, -1])
    def test_a_search_for_none_is_empty(self, mirror: Mirror, limit: int) -> None:
        mirror.apply(many(3))
        assert mirror.search("text", limit) == []

    def test_changed_words_are_found_and_former_ones_are_not(self, mirror: Mirror) -> None:
        mirror.apply([put(note(content="numbat"))])
        mirror.apply([put(note(content="quokka"), digest_of("numbat"))])
        assert mirror.search("numbat") == []
        assert len(mirror.search("quokka")) == 1

    def test_a_tombstone_is_not_found(self, mirror: Mirror) -> None:
        mirror.apply([put(note(content="numbat", title="Numbat"))])
        mirror.apply([Remove("pages/plan", digest_of("numbat"))])
        assert mirror.search("numbat") == []

    @pytest.mark.parametrize("query", ["", " ", '"', "-", "*", "()", "\0", "\ud800", "' OR 1=1", '"unclosed', "-x -y"])
    def test_marks_without_words_find_nothing(self, mirror: Mirror, query: str) -> None:
        mirror.apply([put(note(content="numbat"))])
        assert mirror.search(query) == []

    @pytest.mark.parametrize(
        "query",
        [
            "numbat's",
            "C++ numbat",
            "a-numbat",
            '"numbat',
            'numbat"',
            "-numbat",
            "numbat -quokka",
            "quokka-numbat",
            "$text numbat",
            "numbat*",
            "title:numbat",
            "(numbat",
            "NEAR(numbat)",
            "numbat AND",
            "NOT numbat",
            '-"numbat quokka"',
            "^numbat",
            "{numbat}",
            "numbat\\",
        ],
    )
    def test_no_mark_is_an_operator(self, mirror: Mirror, query: str) -> None:
        mirror.apply([put(note(content="The numbat and the quokka."))])
        assert [hit["id"] for hit in mirror.search(query)] == ["pages/plan"]

    def test_any_mark_may_stand_around_a_word(self, mirror: Mirror) -> None:
        mirror.apply([put(note(content="The numbat sleeps."))])

        @settings(max_examples=60)
        @given(
            before=st.text(st.sampled_from("\"'-$*():^~{}[]<>|&!?.,;/\\@#%+= "), max_size=8), after=st.text(max_size=8)
        )
        def is_found(before: str, after: str) -> None:
            assert len(mirror.search(f"{before} numbat {after}")) == 1

        is_found()


class RaceContract(MirrorContract):
    """Several writers at once: versions without a gap and without a twin."""

    def test_of_two_with_one_base_one_wins(self, open_mirror: Opener, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        rivals = [put(note(content=f"rival {n}"), note().digest) for n in range(6)]
        with ThreadPoolExecutor(len(rivals)) as pool:
            lost = list(pool.map(lambda rival: mirror.apply([rival]), rivals))
        assert sum(not each for each in lost) == 1
        (winner,) = [rival for rival, each in zip(rivals, lost, strict=True) if not each]
        document = mirror.get("pages/plan")
        assert document is not None
        assert document["content"] == winner.note.content
        assert document["metadata"]["version"] == 2

    def test_the_same_change_by_many_is_one_version(self, open_mirror: Opener, mirror: Mirror) -> None:
        mirror.apply(many(20))
        changes = [put(note(f"pages/n{n:04}.md", f"new {n}"), digest_of(f"text {n}"), n=n) for n in range(20)]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda _: mirror.apply(changes), range(8))) == [[]] * 8
        assert {known.version for known in mirror.known()} == {2}
        assert {len(document["history"]) for document in mirror.documents()} == {2}

    def test_many_create_the_same_notes_at_once(self, mirror: Mirror) -> None:
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda _: mirror.apply(many(20)), range(4))) == [[]] * 4
        assert sorted(known.id for known in mirror.known()) == [f"pages/n{n:04}" for n in range(20)]
        assert {known.version for known in mirror.known()} == {1}

    def test_threads_that_retry_make_versions_without_gap_or_twin(self, open_mirror: Opener, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda writer: write_until_won(mirror, writer, 5), range(4)))
        self.assert_versions(mirror, 21)

    def test_processes_that_retry_make_versions_without_gap_or_twin(self, open_mirror: Opener, mirror: Mirror) -> None:
        mirror.apply([put(note())])
        with ProcessPoolExecutor(3, mp_context=PROCESSES) as pool:
            jobs = [pool.submit(write_in_process, open_mirror, writer, 5) for writer in range(3)]
            for job in jobs:
                job.result()
        self.assert_versions(mirror, 16)

    def test_a_note_that_many_move_at_once_is_in_one_place(self, mirror: Mirror) -> None:
        folders = ["facts", "memories", "channels", "research_notes"]
        for turn in range(5):
            home = note(f"pages/{turn}.md", wants=f"note {turn}")
            mirror.apply([put(home)])
            moves = [
                put(note(f"{folder}/{turn}.md", wants=home.wants), home.digest, action="moved") for folder in folders
            ]
            with ThreadPoolExecutor(len(moves)) as pool:
                list(pool.map(lambda move: mirror.apply([move]), moves))
            (known,) = mirror.claimants([home.wants])
            assert known.version == 1
            assert known.path.split("/")[0] in folders
            assert [document["id"] for document in mirror.documents()].count(home.wants) == 1

    @staticmethod
    def assert_versions(mirror: Mirror, expected: int) -> None:
        document = mirror.get("pages/plan")
        assert document is not None
        assert document["metadata"]["version"] == expected
        assert [entry["version"] for entry in document["history"]] == list(range(1, expected + 1))
        assert len({entry["summary"] for entry in document["history"]}) == expected


def version(mirror: Mirror, note_id: str = "pages/plan") -> int:
    document = mirror.get(note_id)
    assert document is not None
    return int(document["metadata"]["version"])


def summaries(mirror: Mirror, note_id: str = "pages/plan") -> list[str]:
    document = mirror.get(note_id)
    assert document is not None
    return [entry["summary"] for entry in document["history"]]


def created(mirror: Mirror) -> tuple[datetime, str]:
    document = mirror.get("pages/plan")
    assert document is not None
    return document["metadata"]["created_at"], document["metadata"]["created_from"]


def write_until_won(mirror: Mirror, writer: int, times: int) -> None:
    """Change the note `times` times, each time from what it then is."""
    for turn in range(times):
        changed = note(content=f"writer {writer} turn {turn}")
        while True:
            (known,) = mirror.known(["pages/plan.md"])
            if not mirror.apply([put(changed, known.digest)]):
                break


def write_in_process(open_mirror: Opener, writer: int, times: int) -> None:
    mirror = open_mirror()
    try:
        write_until_won(mirror, writer, times)
    finally:
        mirror.close()


class WholeMirrorContract(
    DocumentContract, WriteContract, TombstoneContract, PendingContract, KnownContract, SearchContract, RaceContract
):
    """All of it."""
