"""What every store of facts must do: each sentence of `mirror/facts.py` as a test.

A store is tested by a subclass whose `open_facts` fixture returns a picklable function that opens the store of this
test: once more for each call, also in another process. It takes an embedder, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from notebook_sync.errors import BackendDown, UsageError
from notebook_sync.files.facts import ARCHIVE, CORE, id_of
from notebook_sync.mirror.facts import HISTORY_LIMIT, Action, Change, Fact, FactRows, Place, Scope, Source
from tests.facts.hashing import Hashing
from tests.facts.users import TIMES, use
from tests.processes import PROCESSES

Opener = Callable[[Hashing | None], FactRows]

NOTES = "facts/notes.md"
T0 = datetime(2026, 3, 1, 9, 0, 0, 123000, tzinfo=UTC)
DAY = timedelta(days=1)
FERRY, BERTH, PIER = "Odile runs the ferry", "Ines keeps the berths", "The old pier is closed"
WORKERS = 4


def fact(content: str = FERRY, **fields: object) -> Fact:
    made = {"created_at": T0, "updated_at": T0, **fields}
    return replace(Fact(id_of(content), content, T0, T0), **made)  # type: ignore[arg-type]


def place(
    content: str, path: str = NOTES, section: str = "Key Topics", line: int = 3, pin: float | None = None
) -> Place:
    return Place(id_of(content), path, section, line, pin)


def change(action: Action, content: str, at: Place | None = None, when: datetime = T0, **more: object) -> Change:
    return Change(action, id_of(content), content, at or place(content), when, **more)  # type: ignore[arg-type]


def put(
    rows: FactRows, path: str, *contents: str, base: str = "", digest: str = "d1", section: str = "Key Topics"
) -> None:
    """Make a file of new facts known."""
    places = [place(content, path, section, line) for line, content in enumerate(contents, 3)]
    changes = [change("added", content, at) for content, at in zip(contents, places, strict=True)]
    assert rows.apply([Source(path, base, digest, tuple(places))], changes)


def contents(facts: Sequence[Fact]) -> list[str]:
    return [each.content for each in facts]


def _merge(open_facts: Opener, keep: str, drop: str) -> bool:
    rows = open_facts(None)
    try:
        return rows.merge_notes(keep, drop) is not None
    finally:
        rows.close()


def _make_known(open_facts: Opener, digest: str) -> bool:
    rows = open_facts(None)
    try:
        content = f"said by {digest}"
        return rows.apply([Source(NOTES, "", digest, (place(content),))], [change("added", content)])
    finally:
        rows.close()


class FactRowsContract:
    @pytest.fixture
    def open_facts(self) -> Opener:
        raise NotImplementedError

    @pytest.fixture
    def rows(self, open_facts: Opener) -> Iterator[FactRows]:
        store = open_facts(None)
        yield store
        store.close()

    # What stands where.

    def test_facts_stand_where_their_files_say(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH)
        found = rows.all()
        assert [(f.content, f.path, f.section, f.line) for f in found] == [
            (FERRY, NOTES, "Key Topics", 3),
            (BERTH, NOTES, "Key Topics", 4),
        ]
        assert rows.sources() == {NOTES: "d1"}
        assert sorted(rows.places()) == sorted([place(FERRY, line=3), place(BERTH, line=4)])

    def test_a_new_fact_begins_with_what_it_is_given_and_its_first_event(self, rows: FactRows) -> None:
        made = change("added", FERRY, importance=1.0, created_at=T0 - DAY)
        assert rows.apply([Source(NOTES, "", "d1", (place(FERRY),))], [made])
        assert rows.get_note(id_of(FERRY)) == fact(
            section="Key Topics",
            path=NOTES,
            line=3,
            importance=1.0,
            unpinned=1.0,
            created_at=T0 - DAY,
            source_history=({"at": T0, "action": "added", "importance": 1.0, "path": NOTES, "section": "Key Topics"},),
        )

    def test_a_write_on_another_base_is_lost_and_makes_nothing_known(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY)
        for base in ("", "d0"):
            assert not rows.apply([Source(NOTES, base, "d2", (place(BERTH),))], [change("added", BERTH)])
        assert not rows.apply([Source(CORE, "d0", "d2", (place(BERTH, CORE),))], [change("added", BERTH)])
        assert not rows.apply([Source(NOTES, "d0", "")], [change("gone", FERRY)])
        assert (contents(rows.all()), contents(rows.all("core")), rows.sources()) == ([FERRY], [], {NOTES: "d1"})

    def test_of_several_places_core_counts_then_the_path_and_the_archive_last(self, rows: FactRows) -> None:
        at = {path: place(FERRY, path, section=path, line=7) for path in (ARCHIVE, "facts/b.md", "facts/a.md", CORE)}
        for path, standing in at.items():
            assert rows.apply([Source(path, "", "d1", (standing,))], [])
            if path == ARCHIVE:
                assert rows.apply([Source("facts/z.md", "", "d1", ())], [change("added", FERRY, standing)])
            one = rows.get_note(id_of(FERRY))
            assert one is not None
            assert (one.path, one.section, one.line) == (path, path, 7)
        assert [contents(rows.all(scope)) for scope in ("notes", "core", "archive", "all")] == [
            [],
            [FERRY],
            [],
            [FERRY],
        ]

    def test_a_fact_that_stands_nowhere_is_gone_and_keeps_its_usage(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH)
        rows.increment_access(id_of(FERRY), at=T0)
        known = (place(BERTH, line=4),)
        assert rows.apply([Source(NOTES, "d1", "d2", known)], [change("gone", FERRY, when=T0 + DAY)])
        assert contents(rows.all("all")) == [BERTH]
        assert contents(rows.get_recent_notes()) == [BERTH]
        gone = rows.get_note(id_of(FERRY))
        assert gone is not None
        assert (gone.gone_at, gone.access_count, gone.path, gone.section) == (T0 + DAY, 1, NOTES, "Key Topics")
        both = (*known, place(FERRY))
        assert rows.apply([Source(NOTES, "d2", "d3", both)], [change("returned", FERRY, when=T0 + 2 * DAY)])
        back = rows.get_note(id_of(FERRY))
        assert back is not None
        assert (back.gone_at, back.access_count) == (None, 1)
        assert [event["action"] for event in back.source_history] == ["added", "gone", "returned"]

    def test_a_reworded_fact_goes_on_with_the_usage_and_without_the_vector(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY)
        rows.increment_access(id_of(FERRY), at=T0)
        rows.update_importance(id_of(FERRY), 0.7, at=T0)
        rows.put_vectors("hashing-8", {id_of(FERRY): np.ones(8, np.float32)})
        new = FERRY + " alone"
        reworded = change("reworded", new, when=T0 + DAY, was=id_of(FERRY))
        assert rows.apply([Source(NOTES, "d1", "d2", (place(new),))], [reworded])
        one = rows.get_note(id_of(new))
        assert one is not None
        assert (one.content, one.access_count, one.importance, one.created_at) == (new, 1, 0.7, T0)
        assert one.source_history[-1]["was"] == id_of(FERRY)
        assert rows.get_note(id_of(FERRY)) is None
        assert rows.vectors("hashing-8") == {}

    def test_what_somebody_brought_back_while_a_rewording_was_planned_keeps_its_row(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY)
        rows.increment_access(id_of(FERRY), at=T0)
        rows.put_vectors("hashing-8", {id_of(FERRY): np.ones(8, np.float32)})
        new, again = FERRY + " alone", place(FERRY, "facts/other.md")
        assert rows.apply([Source("facts/other.md", "", "d1", (again,))], [])
        reworded = change("reworded", new, when=T0 + DAY, was=id_of(FERRY))
        assert rows.apply([Source(NOTES, "d1", "d2", (place(new),))], [reworded])
        assert [(f.content, f.path, f.access_count) for f in rows.all()] == [
            (new, NOTES, 1),
            (FERRY, "facts/other.md", 1),
        ]
        assert list(rows.vectors("hashing-8")) == [id_of(FERRY)]

    def test_a_file_that_is_gone_is_no_source(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY)
        assert rows.apply([Source(NOTES, "d1", "")], [change("gone", FERRY)])
        assert (rows.sources(), rows.places(), rows.all("all")) == ({}, [], [])
        put(rows, NOTES, BERTH)
        assert contents(rows.all()) == [BERTH]

    def test_a_pin_is_in_force_while_it_stands(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY)
        assert rows.apply([Source(NOTES, "d1", "d2", (place(FERRY, pin=0.9),))], [change("pinned", FERRY)])
        pinned = rows.update_importance(id_of(FERRY), by=0.1)
        assert pinned is not None
        assert (pinned.importance, pinned.pinned, pinned.unpinned) == (0.9, True, 0.6)
        assert rows.upsert_note(pinned) == pinned
        assert rows.apply([Source(NOTES, "d2", "d3", (place(FERRY),))], [change("unpinned", FERRY)])
        unpinned = rows.get_note(id_of(FERRY))
        assert unpinned is not None
        assert (unpinned.importance, unpinned.pinned) == (0.6, False)

    def test_what_is_restored_counts_for_more_unless_it_is_pinned(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH, PIER)
        rows.update_importance(id_of(BERTH), 0.95, at=T0)
        places = (place(FERRY), place(BERTH), place(PIER, pin=0.2))
        restored = [
            change("restored", content, where, T0 + DAY)
            for content, where in zip((FERRY, BERTH, PIER), places, strict=True)
        ]
        assert rows.apply([Source(NOTES, "d1", "d2", places)], restored)
        known = rows.get_many([id_of(FERRY), id_of(BERTH), id_of(PIER)])
        assert [known[id_of(content)].unpinned for content in (FERRY, BERTH, PIER)] == [0.6, 1.0, 0.5]
        for one in known.values():
            event = one.source_history[-1]
            assert (event["action"], event["at"], event["path"]) == ("restored", T0 + DAY, NOTES)
            assert (event["section"], event["importance"]) == (one.section, one.unpinned)
            assert (one.updated_at, one.access_count) == (T0 + DAY, 0)

    def test_a_history_keeps_the_last_events(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY)
        told = tuple({"at": T0, "action": f"weighed {n}", "importance": 0.5} for n in range(HISTORY_LIMIT))
        rows.upsert_note(fact(source_history=told))
        rows.update_importance(id_of(FERRY), 0.5, action="praised", at=T0)
        assert rows.apply([Source(NOTES, "d1", "d2", (place(FERRY),))], [change("moved", FERRY)])
        one = rows.get_note(id_of(FERRY))
        assert one is not None
        assert len(one.source_history) == HISTORY_LIMIT
        assert [event["action"] for event in one.source_history[-2:]] == ["praised", "moved"]
        assert one.source_history[0]["action"] == "weighed 2"

    def test_what_was_gone_for_long_is_forgotten_and_nothing_that_stands(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH, PIER)
        left = (place(PIER, line=5),)
        gone = [change("gone", FERRY, when=T0), change("gone", BERTH, when=T0 + 2 * DAY)]
        assert rows.apply([Source(NOTES, "d1", "d2", left)], gone)
        assert rows.prune(T0 + DAY) == 1
        assert set(rows.get_many([id_of(FERRY), id_of(BERTH), id_of(PIER)])) == {id_of(BERTH), id_of(PIER)}
        assert rows.prune(T0 + 3 * DAY) == 1
        assert contents(rows.all("all")) == [PIER]

    def test_of_writers_on_one_base_one_wins(self, open_facts: Opener, rows: FactRows) -> None:
        digests = [f"d{n}" for n in range(WORKERS)]
        with ThreadPoolExecutor(WORKERS) as pool:
            won = list(pool.map(_make_known, [open_facts] * WORKERS, digests))
        assert sum(won) == 1
        digest = digests[won.index(True)]
        assert (rows.sources(), contents(rows.all())) == ({NOTES: digest}, [f"said by {digest}"])

    def test_thousands_of_facts_become_known_at_once(self, rows: FactRows) -> None:
        many = [f"fact {n}" for n in range(1_200)]
        put(rows, NOTES, *many)
        assert contents(rows.all()) == many
        assert len(rows.get_many([id_of(each) for each in many])) == 1_200

    # Questions.

    def test_facts_are_found_by_scope_and_section(self, rows: FactRows) -> None:
        put(rows, CORE, FERRY, section="Identity")
        put(rows, NOTES, BERTH)
        put(rows, ARCHIVE, PIER)
        found: dict[Scope, list[str]] = {"notes": [BERTH], "core": [FERRY], "archive": [PIER]}
        for scope, expected in found.items():
            assert contents(rows.all(scope)) == expected
        assert contents(rows.all("all")) == [FERRY, BERTH, PIER]
        assert contents(rows.all("all", "identity")) == [FERRY]
        with pytest.raises(UsageError, match="notes, core, archive, all"):
            rows.all("everything")  # type: ignore[arg-type]

    def test_recent_facts_are_those_made_or_changed_last(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH, PIER)
        rows.update_importance(id_of(BERTH), 0.6, at=T0 + DAY)
        assert contents(rows.get_recent_notes(1)) == [BERTH]
        assert len(rows.get_recent_notes()) == 3
        assert rows.get_recent_notes(0) == rows.get_recent_notes(-1) == rows.get_recent_notes(section="Berths") == []

    def test_facts_are_found_by_importance(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH, PIER)
        assert rows.bulk_update_importance({id_of(FERRY): 0.2, id_of(BERTH): 0.8, "unknown": 0.5}, at=T0) == 2
        assert contents(rows.get_by_importance_range()) == [BERTH, PIER, FERRY]
        assert contents(rows.get_by_importance_range(0.5, 0.8)) == [BERTH, PIER]
        assert contents(rows.get_by_importance_range(limit=1)) == [BERTH]

    def test_stale_facts_are_those_that_nobody_used(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH, PIER)
        rows.increment_access(id_of(BERTH), at=T0 + 20 * DAY)
        assert contents(rows.get_stale_notes(now=T0 + 30 * DAY)) == [FERRY, PIER]
        assert contents(rows.get_stale_notes(now=T0 + 50 * DAY, limit=3)) == [FERRY, PIER, BERTH]
        assert rows.get_stale_notes(now=T0 + 29 * DAY) == []
        assert rows.get_stale_notes(now=T0 + 30 * DAY, scope="core") == []

    def test_unknown_ids_are_nobody(self, rows: FactRows) -> None:
        for note_id in ("", "unknown", "a\0b", "a\ud800b", "$ne", "x" * 10_000):
            assert rows.get_note(note_id) is None
            assert rows.get_many([note_id]) == {}
            assert rows.increment_access(note_id) == 0
            assert rows.update_importance(note_id, 0.5) is None
            assert rows.merge_notes(note_id, "other") is None
            assert not rows.delete_note(note_id)
        assert rows.get_many([]) == {}
        assert rows.increment_access() == 0

    # Usage.

    def test_a_row_is_kept_whole(self, rows: FactRows) -> None:
        awkward = {"$ne": 1, "a.b": {"c": [T0, None, True]}, "\0": "\0", "%00": 0.5}
        whole = fact(
            importance=0.3,
            unpinned=0.3,
            decay_rate=0.25,
            access_count=3,
            last_accessed=T0 + DAY,
            metadata=awkward,
            source_history=({"at": T0, "action": "told", "importance": 0.3, "by": "Ines"},),
        )
        assert rows.upsert_note(whole) == whole
        assert rows.get_note(whole.note_id) == whole
        assert contents(rows.all()) == [FERRY]
        changed = replace(whole, metadata={}, access_count=0, last_accessed=None)
        assert rows.upsert_note(changed) == changed

    def test_a_row_keeps_where_it_stands_whatever_is_put_there(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY)
        put_there = rows.upsert_note(fact(path=CORE, section="Identity", access_count=4, gone_at=T0))
        assert (put_there.path, put_there.section, put_there.access_count, put_there.gone_at) == (
            NOTES,
            "Key Topics",
            4,
            None,
        )

    @pytest.mark.parametrize(
        "wrong",
        [
            fact(note_id="0123456789abcdef"),
            fact(importance=1.5),
            fact(importance=float("nan")),
            fact(access_count=-1),
            fact(decay_rate=float("inf")),
            fact(" "),
        ],
    )
    def test_a_row_that_is_none_is_refused(self, rows: FactRows, wrong: Fact) -> None:
        with pytest.raises(UsageError):
            rows.upsert_note(wrong)
        assert rows.all("all") == []

    def test_each_use_is_counted_and_the_last_one_kept(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH)
        assert rows.increment_access(id_of(FERRY), id_of(BERTH), "unknown", id_of(FERRY), at=T0 + DAY) == 2
        assert rows.increment_access(id_of(FERRY), at=T0) == 1
        one = rows.get_note(id_of(FERRY))
        assert one is not None
        assert (one.access_count, one.last_accessed, one.updated_at) == (2, T0 + DAY, T0)

    def test_importance_is_set_or_changed_and_stays_within_its_bounds(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY)
        asked = [((0.9,), {}, 0.9), ((), {"by": 0.3}, 1.0), ((), {"by": -2.0}, 0.0), ((0.5,), {"by": 0.1}, 0.6)]
        for arguments, more, expected in asked:
            one = rows.update_importance(id_of(FERRY), *arguments, **more, action="reinforced", at=T0 + DAY)
            assert one is not None
            assert one.importance == pytest.approx(expected)
            assert one.source_history[-1] == {"at": T0 + DAY, "action": "reinforced", "importance": one.importance}

    @pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -0.1, 1.1, True, "0.5"])
    def test_what_is_no_importance_changes_nothing(self, rows: FactRows, wrong: float) -> None:
        put(rows, NOTES, FERRY, BERTH)
        with pytest.raises(UsageError, match="from 0 to 1"):
            rows.update_importance(id_of(FERRY), wrong)
        with pytest.raises(UsageError, match="from 0 to 1"):
            rows.bulk_update_importance({id_of(BERTH): 0.9, id_of(FERRY): wrong})
        with pytest.raises(UsageError, match="changes by a number"):
            rows.update_importance(id_of(FERRY), by=float("nan"))
        assert [each.importance for each in rows.all()] == [0.5, 0.5]

    def test_no_use_is_lost_between_processes(self, open_facts: Opener, rows: FactRows) -> None:
        put(rows, NOTES, FERRY)
        rows.update_importance(id_of(FERRY), 0.1)
        with ProcessPoolExecutor(WORKERS, PROCESSES) as pool:
            list(pool.map(use, [open_facts] * WORKERS, [id_of(FERRY)] * WORKERS))
        one = rows.get_note(id_of(FERRY))
        assert one is not None
        assert one.access_count == WORKERS * TIMES
        assert one.importance == pytest.approx(0.1 + 0.001 * WORKERS * TIMES)

    def test_merged_facts_share_their_usage(self, rows: FactRows) -> None:
        other = FERRY + " alone"
        for content, made, used, importance in ((FERRY, T0 + DAY, T0 + 2 * DAY, 0.5), (other, T0, T0 + 3 * DAY, 0.7)):
            rows.upsert_note(
                fact(
                    content,
                    created_at=made,
                    last_accessed=used,
                    access_count=2,
                    importance=importance,
                    metadata={"by": content},
                    source_history=({"at": made, "action": "added", "importance": importance},),
                )
            )
        merged = rows.merge_notes(id_of(FERRY), id_of(other), at=T0 + 4 * DAY)
        assert merged is not None
        assert (merged.content, merged.created_at, merged.last_accessed, merged.access_count) == (
            FERRY,
            T0,
            T0 + 3 * DAY,
            4,
        )
        assert merged.importance == pytest.approx(0.75)
        assert merged.metadata == {"by": FERRY}
        assert [event["action"] for event in merged.source_history] == ["added", "added", "merged"]
        assert merged.source_history[-1]["was"] == id_of(other)
        assert rows.get_note(id_of(other)) is None
        assert rows.merge_notes(id_of(FERRY), id_of(other)) is None
        assert rows.merge_notes(id_of(FERRY), id_of(FERRY)) is None
        assert rows.get_note(id_of(FERRY)) == merged

    def test_a_fact_is_merged_once_by_whoever_does_it(self, open_facts: Opener, rows: FactRows) -> None:
        rows.upsert_note(fact(FERRY, access_count=1))
        rows.upsert_note(fact(BERTH, access_count=5))
        with ThreadPoolExecutor(WORKERS) as pool:
            done = list(pool.map(_merge, *zip(*[(open_facts, id_of(FERRY), id_of(BERTH))] * WORKERS, strict=True)))
        one = rows.get_note(id_of(FERRY))
        assert one is not None
        assert (sum(done), one.access_count) == (1, 6)

    def test_a_row_that_is_deleted_is_to_be_read_again_where_it_stands(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH)
        put(rows, CORE, PIER)
        assert rows.delete_note(id_of(FERRY))
        assert not rows.delete_note(id_of(FERRY))
        assert rows.sources() == {NOTES: "", CORE: "d1"}
        assert contents(rows.all()) == [BERTH]
        put(rows, NOTES, FERRY, BERTH, digest="d1")
        assert contents(rows.all()) == [FERRY, BERTH]

    def test_all_that_is_known_can_be_forgotten(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH)
        assert rows.clear_all() == 2
        assert (rows.sources(), rows.places(), rows.all("all"), rows.get_many([id_of(FERRY)])) == ({}, [], [], {})

    # Likeness.

    def test_without_an_embedder_facts_are_alike_by_their_words(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH, PIER)
        found = rows.search_similar("who runs the FERRY?", limit=2)
        assert (found[0].fact.content, found[0].by) == (FERRY, "words")
        assert 0 < found[1].similarity < found[0].similarity <= 1
        assert rows.search_similar("ferry", limit=0) == rows.search_similar("", section="Berths") == []

    def test_facts_are_alike_by_meaning_and_those_without_a_vector_by_words(self, open_facts: Opener) -> None:
        embedder = Hashing()
        rows = open_facts(embedder)
        put(rows, NOTES, FERRY, BERTH, PIER)
        rows.put_vectors(
            embedder.model, dict(zip(map(id_of, (FERRY, BERTH)), embedder.embed([FERRY, BERTH]), strict=True))
        )
        found = {one.fact.content: one for one in rows.search_similar(FERRY)}
        assert found[FERRY].similarity == pytest.approx(1.0)
        assert {content: one.by for content, one in found.items()} == {
            FERRY: "meaning",
            BERTH: "meaning",
            PIER: "words",
        }
        assert contents([one.fact for one in rows.search_similar(embedder.embed([BERTH])[0], 1)]) == [BERTH]
        rows.close()

    def test_a_dead_embedder_leaves_the_words(self, open_facts: Opener) -> None:
        embedder = Hashing()
        rows = open_facts(embedder)
        put(rows, NOTES, FERRY)
        rows.put_vectors(embedder.model, {id_of(FERRY): embedder.embed([FERRY])[0]})
        dead = open_facts(Hashing(dead=True))
        assert [(one.fact.content, one.by) for one in dead.search_similar("ferry")] == [(FERRY, "words")]
        for store in (rows, dead):
            store.close()

    @pytest.mark.parametrize("value", [1.0, 0.0, float("nan"), float("inf")])
    def test_no_vector_is_compared_with_one_of_another_size(self, rows: FactRows, value: float) -> None:
        put(rows, NOTES, FERRY, BERTH, PIER)
        zero, ones, longer = np.zeros(8, np.float32), np.ones(8, np.float32), np.ones(9, np.float32)
        rows.put_vectors("a", {id_of(FERRY): zero, id_of(BERTH): ones, id_of(PIER): longer})
        for size, like in ((0, 0), (7, 0), (8, 2), (9, 1), (10, 0)):
            found = rows.search_similar([value] * size)
            assert len(found) == like
            assert all(-1 <= one.similarity <= 1 for one in found)

    def test_a_vector_without_direction_is_like_nothing(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH)
        rows.put_vectors("a", {id_of(FERRY): np.zeros(8, np.float32), id_of(BERTH): np.ones(8, np.float32)})
        assert [(one.fact.content, round(one.similarity, 6)) for one in rows.search_similar([2.0] * 8)] == [
            (BERTH, 1.0),
            (FERRY, 0.0),
        ]
        assert {one.similarity for one in rows.search_similar([0.0] * 8)} == {0.0}

    def test_what_the_embedder_refuses_is_not_behind_and_found_by_its_words(self, open_facts: Opener) -> None:
        embedder = Hashing()
        rows = open_facts(embedder)
        put(rows, NOTES, FERRY, BERTH, PIER)
        given = {id_of(FERRY): embedder.embed([FERRY])[0], id_of(BERTH): np.zeros(embedder.dimensions, np.float32)}
        rows.put_vectors(embedder.model, given)
        assert rows.lacking(embedder.model) == rows.lacking(embedder.model, dimensions=64) == (1, 1)
        assert (rows.lacking(embedder.model, dimensions=8), rows.lacking("another")) == ((3, 0), (3, 0))
        found = {one.fact.content: one.by for one in rows.search_similar(BERTH)}
        assert found == {FERRY: "meaning", BERTH: "words", PIER: "words"}
        assert rows.apply([Source(NOTES, "d1", "d2")], [change("gone", each) for each in (FERRY, BERTH, PIER)])
        assert rows.lacking(embedder.model) == (0, 0)
        rows.close()

    def test_a_fact_has_the_vector_of_one_model_as_it_was_given(self, rows: FactRows) -> None:
        put(rows, NOTES, FERRY, BERTH)
        vector = np.array([0.25, -1.5, 3e-8, 0.0], np.float32)
        rows.put_vectors("a", {id_of(FERRY): vector, "unknown": vector})
        assert rows.vectors("a")[id_of(FERRY)].tolist() == vector.tolist()
        assert contents(rows.without_vector("a")) == [BERTH]
        assert len(rows.without_vector("a", dimensions=8)) == 2
        assert contents(rows.without_vector("b", 1)) == contents(sorted(rows.all(), key=lambda f: f.note_id))[:1]
        rows.put_vectors("b", {id_of(FERRY): vector})
        assert (rows.vectors("a"), list(rows.vectors("b")), list(rows.vectors(""))) == (
            {},
            [id_of(FERRY)],
            [id_of(FERRY)],
        )

    def test_a_closed_store_is_down_or_opens_again_and_never_lets_a_drivers_error_out(self, rows: FactRows) -> None:
        rows.close()
        rows.close()
        with pytest.raises(BackendDown):
            rows.all()
