"""The decision table of `sync/diff.py`, a test per line, and who gets which id. No disk, no index."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from notebook_sync.model import PARSER, UNSETTLED, Stamp, id_from_path
from notebook_sync.sync.diff import (
    Change,
    Delete,
    Known,
    Look,
    Projection,
    Put,
    Stale,
    Touch,
    Wait,
    contested,
    deletions,
    diff,
    fault_of,
)

THEN, NOW = Stamp(1, 1, 1, 1), Stamp(2, 2, 2, 2)
MTIME = datetime(2026, 3, 1, tzinfo=UTC)
BROKEN = (2, "the frontmatter is not read", True)


def look(path: str, text: str = "text", note_id: str = "", **more: Any) -> Look:
    document = {"wanted_id": note_id or id_from_path(path), "digest": digest(text), "problems": []}
    return Look(path, **{"stamp": NOW, "mtime": MTIME, "projection": Projection(document), **more})


def row(path: str, text: str = "text", note_id: str = "", has: str = "", **more: Any) -> Known:
    """A row of the note at `path`; `has` is the id it was given where that is another than it wants."""
    wanted = note_id or id_from_path(path)
    problems = [list(contested(wanted, "there.md"))] if has not in ("", wanted) else []
    return Known(has or wanted, path, wanted, digest(text), THEN, PARSER, "", problems, 5)._replace(**more)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def by_path(*rows: Known) -> dict[str, Known]:
    return {each.path: each for each in rows}


def only(changes: list[Change]) -> Put:
    (change,) = changes
    assert isinstance(change, Put)
    return change


def stored(changes: list[Change]) -> dict[str, str]:
    """Path → id of everything that is put."""
    return {change.look.path: change.id for change in changes if isinstance(change, Put)}


class TestDecisionTable:
    def test_nothing_on_disk_and_nothing_known_is_nothing(self) -> None:
        assert diff([Look("a.md")], {}) == []

    @pytest.mark.parametrize(("settled", "ends"), [({}, False), ({"a.md": NOW}, False), ({"a.md": None}, True)])
    def test_a_row_is_deleted_once_its_file_was_gone_a_settle_time_ago(self, settled: Any, ends: bool) -> None:
        gone = row("a.md")
        assert deletions([gone], settled) == [Delete(gone) if ends else Wait("a.md", None)]

    def test_a_row_that_lost_its_place_needs_no_wait(self) -> None:
        assert deletions([row("")], {}) == [Delete(row(""))]

    @pytest.mark.parametrize("known", [None, row("a.md")])
    def test_a_refused_file_is_stale(self, known: Known | None) -> None:
        rows = by_path(known) if known else {}
        assert diff([Look("a.md", fault="is a link")], rows) == [Stale("a.md", "is a link", known)]

    @pytest.mark.parametrize("settled", [{}, {"a.md": THEN}, {"a.md": None}, {"b.md": NOW}, {"a.md": UNSETTLED}])
    @pytest.mark.parametrize("rows", [{}, by_path(row("a.md"))])
    def test_an_unfinished_file_waits(self, settled: Any, rows: Any) -> None:
        assert diff([look("a.md", "", is_unfinished=True)], rows, settled=settled) == [Wait("a.md", NOW)]

    def test_a_file_that_stayed_unfinished_is_put(self) -> None:
        assert stored(diff([look("a.md", "", is_unfinished=True)], {}, settled={"a.md": NOW})) == {"a.md": "a"}

    def test_a_file_known_as_unfinished_is_kept(self) -> None:
        unfinished = look("a.md", "", is_unfinished=True, stamp=THEN)
        assert diff([unfinished], by_path(row("a.md", ""))) == []

    @pytest.mark.parametrize("force", [False, True])
    @pytest.mark.parametrize("known", [row("a.md"), row("a.md", has="x"), row("a.md", stale="was a link")])
    def test_a_damaged_file_leaves_its_good_row(self, known: Known, force: bool) -> None:
        known = known._replace(id="a", wanted_id="a", problems=[]) if not known.problems else known
        damaged = look("a.md", "other", fault="not UTF-8")
        assert diff([damaged], by_path(known), force=force) == [Stale("a.md", "not UTF-8", known)]

    def test_a_damaged_file_is_put_where_there_is_no_good_row(self) -> None:
        damaged = look("a.md", "other", fault="not UTF-8")
        assert stored(diff([damaged], by_path(row("a.md", problems=[BROKEN])))) == {"a.md": "a"}
        assert stored(diff([damaged], {})) == {"a.md": "a"}

    @pytest.mark.parametrize(("words", "is_damage"), [(5, True), (0, False)])
    def test_an_emptied_file_is_damage_where_it_held_words(self, words: int, is_damage: bool) -> None:
        (change,) = diff([look("a.md", "", is_emptied=True)], by_path(row("a.md", word_count=words)))
        assert isinstance(change, Stale) == is_damage

    @pytest.mark.parametrize("projection", [None, look("a.md").projection])
    def test_the_same_bytes_under_the_same_stamp_are_kept(self, projection: Any) -> None:
        assert diff([look("a.md", stamp=THEN, projection=projection)], by_path(row("a.md"))) == []

    @pytest.mark.parametrize("projection", [None, look("a.md").projection])
    @pytest.mark.parametrize("known", [row("a.md"), row("a.md", stamp=NOW, stale="was a link")])
    def test_another_stamp_and_the_end_of_a_fault_touch_the_row(self, projection: Any, known: Known) -> None:
        assert diff([look("a.md", projection=projection)], by_path(known)) == [Touch(known, NOW, MTIME)]

    def test_other_bytes_are_put_onto_the_row(self) -> None:
        change = only(diff([look("a.md", "other")], by_path(row("a.md"))))
        assert (change.id, change.onto, change.was, change.is_moved) == ("a", row("a.md"), None, False)

    def test_an_older_parsers_row_and_a_forced_look_are_put_again(self) -> None:
        assert stored(diff([look("a.md")], by_path(row("a.md", parser=PARSER - 1)))) == {"a.md": "a"}
        assert stored(diff([look("a.md")], by_path(row("a.md")), force=True)) == {"a.md": "a"}

    def test_a_new_note_is_put(self) -> None:
        assert only(diff([look("a.md")], {})).past is None

    def test_the_first_severe_problem_is_the_fault(self) -> None:
        assert fault_of([(1, "a warning", False), BROKEN]) == "line 2: the frontmatter is not read"
        assert fault_of([(1, "a warning", False)]) == ""


class TestMoves:
    def test_a_note_with_an_id_moves_and_keeps_its_row(self) -> None:
        gone = row("a.md", note_id="x")
        change = only(diff([look("b.md", "edited", "x")], {}, [gone], settled={"a.md": None}))
        assert (change.id, change.onto, change.was, change.is_moved) == ("x", gone, None, True)

    def test_a_note_without_an_id_moves_by_its_bytes_and_gets_a_new_id(self) -> None:
        gone = row("a.md")
        change = only(diff([look("b.md")], {}, [gone], settled={"a.md": None}))
        assert (change.id, change.onto, change.was, change.is_moved) == ("b", None, gone, True)

    @pytest.mark.parametrize("note_id", ["x", ""])
    def test_a_move_waits_until_the_old_place_is_surely_empty(self, note_id: str) -> None:
        assert diff([look("b.md", note_id=note_id)], {}, [row("a.md", note_id=note_id)]) == [Wait("b.md", NOW)]

    def test_a_rename_with_an_edit_is_a_new_note_without_an_id(self) -> None:
        change = only(diff([look("b.md", "edited")], {}, [row("a.md")], settled={"a.md": None}))
        assert change.past is None

    def test_the_bytes_of_a_note_with_an_id_do_not_make_another_note_it(self) -> None:
        settled = {"a.md": None}
        assert only(diff([look("b.md")], {}, [row("a.md", note_id="x")], settled=settled)).past is None
        assert only(diff([look("b.md", note_id="x")], {}, [row("a.md")], settled=settled)).past is None

    def test_of_several_with_the_same_bytes_the_namesake_moved(self) -> None:
        one, other = row("a.md"), row("d/b.md")
        change = only(diff([look("e/b.md")], {}, [one, other], settled={"a.md": None, "d/b.md": None}))
        assert change.was == other

    def test_one_vanished_note_is_found_only_once(self) -> None:
        changes = diff([look("b.md"), look("c.md")], {}, [row("a.md")], settled={"a.md": None})
        assert [isinstance(change, Put) and change.is_moved for change in changes] == [True, False]

    def test_a_note_that_ended_lately_is_found_after_those_that_vanish_now(self) -> None:
        ended, gone = row("", id="old", wanted_id="", parser=0), row("a.md")
        changes = diff([look("b.md"), look("c.md")], {}, [ended, gone], settled={"a.md": None})
        assert [change.was for change in changes if isinstance(change, Put)] == [gone, ended]

    def test_a_note_moved_onto_another_ends_that_one(self) -> None:
        gone, there = row("a.md", "one", "x"), row("b.md", "two", "y")
        change = only(diff([look("b.md", "one", "x")], by_path(there), [gone], settled={"a.md": None}))
        assert (change.id, change.onto, change.was) == ("x", gone, there)


class TestIds:
    def test_a_new_id_in_place_ends_the_old_row(self) -> None:
        known = row("a.md", note_id="x")
        change = only(diff([look("a.md", "id: y", "y")], by_path(known)))
        assert (change.id, change.onto, change.was, change.is_moved) == ("y", None, known, False)

    def test_of_two_new_files_the_shorter_path_then_the_first_has_the_id(self) -> None:
        looks = [look("b.md", note_id="x"), look("a.md", note_id="x"), look("long.md", note_id="x")]
        assert stored(diff(looks, {})) == {"a.md": "x", "b.md": "b", "long.md": "long"}

    def test_who_is_refused_an_id_says_who_has_it(self) -> None:
        changes = diff([look("a.md", note_id="x"), look("b.md", note_id="x")], {})
        problems = {each.look.path: each.projection.document["problems"] for each in changes if isinstance(each, Put)}
        assert problems == {"a.md": [], "b.md": [list(contested("x", "a.md"))]}

    def test_who_has_the_id_keeps_it(self) -> None:
        known = by_path(row("b.md", note_id="x", stamp=NOW))
        looks = [look("b.md", note_id="x"), look("a.md", note_id="x")]
        assert stored(diff(looks, known)) == {"a.md": "a"}
        assert stored(diff(looks[1:], {}, (), known.values())) == {"a.md": "a"}

    def test_the_path_of_a_refused_file_may_be_an_id_that_another_has(self) -> None:
        others = [row("far.md", note_id="x"), row("z.md", note_id="a")]
        assert stored(diff([look("a.md", note_id="x")], {}, (), others)) == {"a.md": "a.md"}
        others += [row("far.md", note_id="a.md")]  # which no file can name
        assert stored(diff([look("a.md", note_id="x")], {}, (), others)) == {"a.md": "a.md"}

    def test_a_free_id_goes_to_who_was_refused_it(self) -> None:
        refused = row("b.md", note_id="x", has="b")
        change = only(diff([look("b.md", note_id="x")], by_path(refused)))
        assert (change.id, change.was, change.projection.document["problems"]) == ("x", refused, [])

    def test_a_refused_file_is_kept_until_another_has_the_id(self) -> None:
        refused = by_path(row("b.md", note_id="x", has="b", stamp=NOW))
        assert diff([look("b.md", note_id="x")], refused, (), [row("there.md", note_id="x")]) == []
        changes = diff([look("b.md", note_id="x")], refused, (), [row("moved.md", note_id="x")])
        assert only(changes).projection.document["problems"] == [list(contested("x", "moved.md"))]

    def test_two_files_exchange_their_ids(self) -> None:
        known = by_path(row("a.md", "id: x", "x"), row("b.md", "id: y", "y"))
        changes = diff([look("a.md", "id: y", "y"), look("b.md", "id: x", "x")], known)
        assert stored(changes) == {"a.md": "y", "b.md": "x"}
        assert all(isinstance(change, Put) and change.was is None for change in changes)

    def test_two_files_without_ids_exchange_their_names(self) -> None:
        known = by_path(row("a.md", "one"), row("b.md", "two"))
        assert stored(diff([look("a.md", "two"), look("b.md", "one")], known)) == {"a.md": "a", "b.md": "b"}

    def test_the_note_that_vanished_with_the_same_bytes_has_the_id_before_a_shorter_path(self) -> None:
        gone = row("d/old.md", "same", "x")
        looks = [look("a.md", "other", "x"), look("d/new.md", "same", "x")]
        assert stored(diff(looks, {}, [gone], settled={"d/old.md": None})) == {"a.md": "a", "d/new.md": "x"}

    def test_a_look_changes_nothing_of_its_own(self) -> None:
        one = look("b.md", note_id="x")
        before = msgspec.structs.replace(one)
        diff([one], {}, (), [row("a.md", note_id="x")])
        assert one == before
