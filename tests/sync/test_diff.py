"""The decision table of `sync/diff.py`, a test per row, and who gets which id. No disk, no store."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import pytest

from notebook_sync.files.note import PARSER_REVISION, Note, Problem, Stamp, id_from_path
from notebook_sync.mirror.base import Known
from notebook_sync.sync.diff import (
    Change,
    Delete,
    Fail,
    Keep,
    Look,
    Refresh,
    Store,
    Vanished,
    Wait,
    deletions,
    diff,
    must_read,
)

THEN, NOW = Stamp(1, 1, 1, 1), Stamp(2, 2, 2, 2)
BROKEN = Problem(2, "frontmatter is ignored", severe=True)


def note(path: str, text: str = "text", note_id: str = "") -> Note:
    return Note(
        path=path,
        collection="pages",
        wants=note_id or id_from_path(path),
        has_own_id=bool(note_id),
        digest=sha256(text.encode()).hexdigest(),
        title="T",
        summary="",
        content=text,
    )


def look(path: str, text: str = "text", note_id: str = "", stamp: Stamp = NOW) -> Look:
    return Look(path, stamp, note(path, text, note_id))


def row(path: str, text: str = "text", note_id: str = "", has: str = "", stamp: Stamp = THEN) -> Known:
    """A row of the note at `path`; `has` is the id it was given where that is another than it wants."""
    wanted = note_id or id_from_path(path)
    digest = sha256(text.encode()).hexdigest()
    contended = bool(has) and has != wanted
    return Known(
        id=has or wanted,
        wants=wanted,
        has_own_id=bool(note_id),
        path=path,
        digest=digest,
        stamp=stamp,
        revision=PARSER_REVISION,
        version=1,
        problems=int(contended),
        broken=contended,
    )


def by_path(*rows: Known) -> dict[str, Known]:
    return {each.path: each for each in rows}


def only(changes: list[Change]) -> Change:
    (change,) = changes
    return change


def stored(changes: list[Change]) -> dict[str, str]:
    """Path → id of everything that is stored."""
    return {change.note.path: change.id for change in changes if isinstance(change, Store)}


class TestDecisionTable:
    def test_nothing_on_disk_and_nothing_known_is_nothing(self) -> None:
        assert diff([Look("a.md")], {}, Vanished()) == [Keep("a.md")]

    def test_a_row_without_its_file_waits(self) -> None:
        assert deletions(Vanished([row("a.md")]), {}) == [Wait("a.md", None)]

    def test_a_row_whose_file_was_gone_a_settle_time_ago_is_deleted(self) -> None:
        gone = row("a.md")
        assert deletions(Vanished([gone]), {"a.md": None}) == [Delete(gone)]

    def test_a_row_whose_file_was_there_a_settle_time_ago_waits(self) -> None:
        assert deletions(Vanished([row("a.md")]), {"a.md": NOW}) == [Wait("a.md", None)]

    def test_a_row_that_lost_its_place_needs_no_wait(self) -> None:
        homeless = row("a.md")._replace(path="")
        assert deletions(Vanished([homeless]), {}) == [Delete(homeless)]

    def test_a_refused_file_fails(self) -> None:
        assert diff([Look("a.md", refusal="a link")], {}, Vanished()) == [Fail("a.md", "a link", None)]

    def test_a_refused_file_leaves_its_row_which_is_named(self) -> None:
        known = row("a.md")
        assert diff([Look("a.md", refusal="a link")], by_path(known), Vanished()) == [Fail("a.md", "a link", known)]

    @pytest.mark.parametrize("settled", [{}, {"a.md": THEN}, {"a.md": None}, {"b.md": NOW}])
    def test_an_unfinished_file_waits(self, settled: dict[str, Stamp | None]) -> None:
        unfinished = replace(look("a.md", ""), unfinished=True)
        for known in ({}, by_path(row("a.md"))):
            assert diff([unfinished], known, Vanished(), settled=settled) == [Wait("a.md", NOW)]

    def test_a_file_that_stayed_unfinished_is_stored(self) -> None:
        unfinished = replace(look("a.md", ""), unfinished=True)
        assert stored(diff([unfinished], {}, Vanished(), settled={"a.md": NOW})) == {"a.md": "a"}

    def test_a_file_known_as_unfinished_is_kept(self) -> None:
        unfinished = replace(look("a.md", "", stamp=THEN), unfinished=True)
        assert diff([unfinished], by_path(row("a.md", "")), Vanished()) == [Keep("a.md")]

    def test_a_broken_file_leaves_its_good_row(self) -> None:
        known = row("a.md")
        broken = Look("a.md", NOW, replace(note("a.md", "other"), problems=(BROKEN,)))
        assert diff([broken], by_path(known), Vanished()) == [Fail("a.md", str(BROKEN), known)]

    def test_a_broken_file_replaces_a_broken_row_and_is_stored_where_there_is_none(self) -> None:
        broken = Look("a.md", NOW, replace(note("a.md", "other"), problems=(BROKEN,)))
        known = row("a.md")._replace(broken=True)
        assert stored(diff([broken], by_path(known), Vanished())) == {"a.md": "a"}
        assert stored(diff([broken], {}, Vanished())) == {"a.md": "a"}

    def test_a_rebuild_keeps_the_last_good_row_of_a_broken_file_too(self) -> None:
        broken = Look("a.md", NOW, replace(note("a.md", "other"), problems=(BROKEN,)))
        known = row("a.md")
        assert diff([broken], by_path(known), Vanished(), force=True) == [Fail("a.md", str(BROKEN), known)]

    def test_the_same_bytes_under_the_same_stamp_are_kept(self) -> None:
        known = by_path(row("a.md"))
        assert diff([look("a.md", stamp=THEN)], known, Vanished()) == [Keep("a.md")]
        assert diff([Look("a.md", THEN)], known, Vanished()) == [Keep("a.md")]

    def test_the_same_bytes_under_another_stamp_refresh_it(self) -> None:
        known = row("a.md")
        assert diff([look("a.md")], by_path(known), Vanished()) == [Refresh(known, NOW)]
        assert diff([Look("a.md", NOW)], by_path(known), Vanished()) == [Refresh(known, NOW)]

    def test_a_stale_row_whose_file_is_good_again_is_refreshed(self) -> None:
        known = row("a.md")._replace(stale="was a link")
        assert diff([look("a.md", stamp=THEN)], by_path(known), Vanished()) == [Refresh(known, THEN)]

    def test_other_bytes_are_stored_onto_the_row(self) -> None:
        known = row("a.md")
        changed = look("a.md", "other")
        assert changed.note is not None
        assert diff([changed], by_path(known), Vanished()) == [Store("a", changed.note, NOW, onto=known)]

    def test_an_older_parsers_row_is_stored_again(self) -> None:
        known = row("a.md")._replace(revision=PARSER_REVISION - 1)
        assert stored(diff([look("a.md")], by_path(known), Vanished())) == {"a.md": "a"}

    def test_force_stores_equal_rows(self) -> None:
        assert stored(diff([look("a.md")], by_path(row("a.md")), Vanished(), force=True)) == {"a.md": "a"}

    def test_a_new_note_is_stored(self) -> None:
        new = look("a.md")
        assert new.note is not None
        assert diff([new], {}, Vanished()) == [Store("a", new.note, NOW)]


class TestMustRead:
    def test_only_an_unchanged_stamp_vouches_for_a_row(self) -> None:
        known = row("a.md")
        assert not must_read("a.md", THEN, by_path(known))
        assert must_read("a.md", NOW, by_path(known))
        assert must_read("b.md", THEN, by_path(known))
        assert must_read("a.md", THEN, by_path(known._replace(stale="was a link")))
        assert must_read("a.md", THEN, by_path(known._replace(revision=PARSER_REVISION - 1)))


class TestMoves:
    def test_a_note_with_an_id_moves_and_keeps_its_row(self) -> None:
        gone = row("a.md", note_id="x")
        vanished = Vanished([gone])
        change = only(diff([look("b.md", note_id="x")], {}, vanished, settled={"a.md": None}))
        assert isinstance(change, Store)
        assert (change.id, change.onto, change.was, change.moved) == ("x", gone, None, True)
        assert list(vanished) == []

    def test_a_note_without_an_id_moves_by_its_bytes_and_gets_a_new_id(self) -> None:
        gone = row("a.md")
        change = only(diff([look("b.md")], {}, Vanished([gone]), settled={"a.md": None}))
        assert isinstance(change, Store)
        assert (change.id, change.onto, change.was, change.moved) == ("b", None, gone, True)

    def test_a_move_waits_until_the_old_place_is_surely_empty(self) -> None:
        vanished = Vanished([row("a.md", note_id="x")])
        assert diff([look("b.md", note_id="x")], {}, vanished) == [Wait("b.md", NOW)]
        assert deletions(vanished, {}) == [Wait("a.md", None)]

    def test_a_rename_with_an_edit_is_a_move_for_a_note_with_an_id(self) -> None:
        gone = row("a.md", note_id="x")
        change = only(diff([look("b.md", "edited", "x")], {}, Vanished([gone]), settled={"a.md": None}))
        assert isinstance(change, Store)
        assert (change.onto, change.moved) == (gone, True)

    def test_a_rename_with_an_edit_is_a_new_note_without_an_id(self) -> None:
        vanished = Vanished([row("a.md")])
        change = only(diff([look("b.md", "edited")], {}, vanished, settled={"a.md": None}))
        assert isinstance(change, Store)
        assert (change.onto, change.was, change.moved) == (None, None, False)
        assert len(list(vanished)) == 1

    def test_of_several_with_the_same_bytes_the_namesake_moved(self) -> None:
        one, other = row("a.md"), row("d/b.md")
        change = only(diff([look("e/b.md")], {}, Vanished([one, other]), settled={"a.md": None, "d/b.md": None}))
        assert isinstance(change, Store)
        assert change.was == other

    def test_one_vanished_note_is_found_only_once(self) -> None:
        changes = diff([look("b.md"), look("c.md")], {}, Vanished([row("a.md")]), settled={"a.md": None})
        assert sum(isinstance(change, Store) and change.moved for change in changes) == 1

    def test_a_note_moved_onto_another_ends_that_one(self) -> None:
        gone, there = row("a.md", "one", "x"), row("b.md", "two", "y")
        change = only(diff([look("b.md", "one", "x")], by_path(there), Vanished([gone]), settled={"a.md": None}))
        assert isinstance(change, Store)
        assert (change.id, change.onto, change.was) == ("x", gone, there)


class TestIds:
    def test_a_new_id_in_place_ends_the_old_row(self) -> None:
        known = row("a.md", note_id="x")
        change = only(diff([look("a.md", "id: y", "y")], by_path(known), Vanished()))
        assert isinstance(change, Store)
        assert (change.id, change.onto, change.was, change.moved) == ("y", None, known, False)

    def test_of_two_new_files_the_shorter_path_then_the_first_has_the_id(self) -> None:
        looks = [look("b.md", note_id="x"), look("a.md", note_id="x"), look("long.md", note_id="x")]
        changes = diff(looks, {}, Vanished())
        assert stored(changes) == {"a.md": "x", "b.md": "b", "long.md": "long"}

    def test_who_is_refused_an_id_is_told(self) -> None:
        changes = diff([look("a.md", note_id="x"), look("b.md", note_id="x")], {}, Vanished())
        problems = {change.note.path: change.note.problems for change in changes if isinstance(change, Store)}
        assert problems["a.md"] == ()
        assert ["another file" in problem.message for problem in problems["b.md"]] == [True]

    def test_who_has_the_id_keeps_it(self) -> None:
        known = by_path(row("b.md", note_id="x", stamp=NOW))
        changes = diff([look("b.md", note_id="x"), look("a.md", note_id="x")], known, Vanished())
        assert stored(changes) == {"a.md": "a"}

    def test_who_has_the_id_elsewhere_keeps_it(self) -> None:
        changes = diff([look("a.md", note_id="x")], {}, Vanished(), [row("far.md", note_id="x")])
        assert stored(changes) == {"a.md": "a"}

    def test_the_path_of_a_refused_file_may_be_an_id_that_another_has(self) -> None:
        outside = [row("far.md", note_id="x"), row("z.md", note_id="a")]
        assert stored(diff([look("a.md", note_id="x")], {}, Vanished(), outside)) == {"a.md": "a.md"}

    def test_when_every_path_id_is_taken_a_number_is_added(self) -> None:
        outside = [row("1.md", note_id="x"), row("2.md", note_id="a"), row("3.md", note_id="a.md")]
        assert stored(diff([look("a.md", note_id="x")], {}, Vanished(), outside)) == {"a.md": "a.md#2"}

    def test_a_free_id_goes_to_who_was_refused_it(self) -> None:
        refused = row("b.md", note_id="x", has="b")
        change = only(diff([look("b.md", note_id="x")], by_path(refused), Vanished()))
        assert isinstance(change, Store)
        assert (change.id, change.was) == ("x", refused)
        assert change.note.problems == ()

    def test_a_refused_file_that_is_still_refused_is_kept(self) -> None:
        refused = row("b.md", note_id="x", has="b", stamp=NOW)
        changes = diff([look("b.md", note_id="x")], by_path(refused), Vanished(), [row("a.md", note_id="x")])
        assert changes == [Keep("b.md")]

    def test_two_files_swap_their_ids(self) -> None:
        known = by_path(row("a.md", "id: x", "x"), row("b.md", "id: y", "y"))
        changes = diff([look("a.md", "id: y", "y"), look("b.md", "id: x", "x")], known, Vanished())
        assert stored(changes) == {"a.md": "y", "b.md": "x"}
        assert all(isinstance(change, Store) and change.was is None for change in changes)

    def test_two_files_without_ids_swap_their_names(self) -> None:
        known = by_path(row("a.md", "one"), row("b.md", "two"))
        changes = diff([look("a.md", "two"), look("b.md", "one")], known, Vanished())
        assert stored(changes) == {"a.md": "a", "b.md": "b"}

    def test_the_note_that_vanished_with_the_same_bytes_has_the_id_before_a_shorter_path(self) -> None:
        gone = row("d/old.md", "same", "x")
        looks = [look("a.md", "other", "x"), look("d/new.md", "same", "x")]
        changes = diff(looks, {}, Vanished([gone]), settled={"d/old.md": None})
        assert stored(changes) == {"a.md": "a", "d/new.md": "x"}
