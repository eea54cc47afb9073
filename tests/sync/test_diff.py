"""The decision table of `sync/diff.py`, a test per line, and who gets which id. No disk, no index."""

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


def put(path: str, id: str, onto: Known | None = None, was: Known | None = None, *, is_moved: bool = False) -> object:
    """What `decided` makes of a `Put`."""
    return path, id, onto, was, is_moved


def decided(changes: list[Change]) -> list[object]:
    return [
        put(each.look.path, each.id, each.onto, each.was, is_moved=each.is_moved) if isinstance(each, Put) else each
        for each in changes
    ]


def only(changes: list[Change]) -> Put:
    (change,) = changes
    assert isinstance(change, Put)
    return change


def stored(changes: list[Change]) -> dict[str, str]:
    """Path → id of everything that is put."""
    return {change.look.path: change.id for change in changes if isinstance(change, Put)}


# The table.

A, A_WITH_ID = row("a.md"), row("a.md", note_id="x")
UNFINISHED = look("a.md", "", is_unfinished=True)
DAMAGED = look("a.md", "other", fault="not UTF-8")
FAULTY = row("a.md", problems=[BROKEN])
OLDER = row("a.md", parser=PARSER - 1)

# By what is shown: the looks, the rows at their paths, and what is decided.
TABLE: dict[str, tuple[Look, Known | None, list[object]]] = {
    "nothing on disk and nothing known is nothing": (Look("a.md"), None, []),
    "a refused file is stale": (Look("a.md", fault="is a link"), A, [Stale("a.md", "is a link", A)]),
    "a refused new file is stale": (Look("a.md", fault="is a link"), None, [Stale("a.md", "is a link", None)]),
    "a file known as unfinished is kept": (
        look("a.md", "", is_unfinished=True, stamp=THEN), row("a.md", ""), [],
    ),
    "a damaged file is put where its row is not good": (DAMAGED, FAULTY, [put("a.md", "a", FAULTY)]),
    "a damaged file is put where there is no row": (DAMAGED, None, [put("a.md", "a")]),
    "the same bytes under the same stamp are kept": (look("a.md", stamp=THEN), A, []),
    "and need no parser": (look("a.md", stamp=THEN, projection=None), A, []),
    "other bytes are put onto the row": (look("a.md", "other"), A, [put("a.md", "a", A)]),
    "the row of an older parser is put again": (look("a.md"), OLDER, [put("a.md", "a", OLDER)]),
    "a new note is put": (look("a.md"), None, [put("a.md", "a")]),
    "a new id in place ends the old row": (
        look("a.md", "id: y", "y"), A_WITH_ID, [put("a.md", "y", None, A_WITH_ID)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("one", "known", "expected"), TABLE.values(), ids=TABLE)
def test_one_file_is_decided_by_its_row(one: Look, known: Known | None, expected: list[object]) -> None:
    assert decided(diff([one], by_path(known) if known else {})) == expected


@pytest.mark.parametrize(("settled", "ends"), [({}, False), ({"a.md": NOW}, False), ({"a.md": None}, True)])
def test_a_row_is_deleted_once_its_file_was_gone_a_settle_time_ago(settled: Any, ends: bool) -> None:
    assert deletions([A], settled) == [Delete(A) if ends else Wait("a.md", None)]


def test_a_row_that_lost_its_place_needs_no_wait() -> None:
    assert deletions([row("")], {}) == [Delete(row(""))]


@pytest.mark.parametrize("settled", [{}, {"a.md": THEN}, {"a.md": None}, {"b.md": NOW}, {"a.md": UNSETTLED}])
@pytest.mark.parametrize("rows", [{}, by_path(A)])
def test_an_unfinished_file_waits(settled: Any, rows: Any) -> None:
    assert diff([UNFINISHED], rows, settled=settled) == [Wait("a.md", NOW)]


def test_a_file_that_stayed_unfinished_is_put() -> None:
    assert decided(diff([UNFINISHED], {}, settled={"a.md": NOW})) == [put("a.md", "a")]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("known", [row("a.md"), row("a.md", has="x"), row("a.md", stale="was a link")])
def test_a_damaged_file_leaves_its_good_row(known: Known, force: bool) -> None:
    known = known._replace(id="a", wanted_id="a", problems=[]) if not known.problems else known
    assert diff([DAMAGED], by_path(known), force=force) == [Stale("a.md", "not UTF-8", known)]


@pytest.mark.parametrize(("words", "is_damage"), [(5, True), (0, False)])
def test_an_emptied_file_is_damage_where_it_held_words(words: int, is_damage: bool) -> None:
    (change,) = diff([look("a.md", "", is_emptied=True)], by_path(row("a.md", word_count=words)))
    assert isinstance(change, Stale) == is_damage


@pytest.mark.parametrize("projection", [None, look("a.md").projection])
@pytest.mark.parametrize("known", [row("a.md"), row("a.md", stamp=NOW, stale="was a link")])
def test_another_stamp_and_the_end_of_a_fault_touch_the_row(projection: Any, known: Known) -> None:
    assert diff([look("a.md", projection=projection)], by_path(known)) == [Touch(known, NOW, MTIME)]


def test_a_forced_look_is_put_again() -> None:
    assert decided(diff([look("a.md")], by_path(A), force=True)) == [put("a.md", "a", A)]


def test_the_first_severe_problem_is_the_fault() -> None:
    assert fault_of([(1, "a warning", False), BROKEN]) == "line 2: the frontmatter is not read"
    assert fault_of([(1, "a warning", False)]) == ""


# Moves.

NAMESAKE, ENDED, THERE = row("d/b.md"), row("", id="old", wanted_id="", parser=0), row("b.md", "two", "y")
# By what is shown: new files, what vanished surely, and what is decided.
MOVES: dict[str, tuple[list[Look], list[Known], list[object]]] = {
    "a note with an id moves and keeps its row": (
        [look("b.md", "edited", "x")], [A_WITH_ID], [put("b.md", "x", A_WITH_ID, is_moved=True)],
    ),
    "a note without an id moves by its bytes and gets a new id": (
        [look("b.md")], [A], [put("b.md", "b", None, A, is_moved=True)],
    ),
    "a rename with an edit is a new note without an id": ([look("b.md", "edited")], [A], [put("b.md", "b")]),
    "the bytes of a note with an id do not make another note it": ([look("b.md")], [A_WITH_ID], [put("b.md", "b")]),
    "the bytes of a note without an id do not make one with an id it": (
        [look("b.md", note_id="x")], [A], [put("b.md", "x")],
    ),
    "of several with the same bytes the namesake moved": (
        [look("e/b.md")], [A, NAMESAKE], [put("e/b.md", "e/b", None, NAMESAKE, is_moved=True)],
    ),
    "one vanished note is found only once": (
        [look("b.md"), look("c.md")], [A], [put("b.md", "b", None, A, is_moved=True), put("c.md", "c")],
    ),
    "a note that ended lately is found after those that vanish now": (
        [look("b.md"), look("c.md")],
        [ENDED, A],
        [put("b.md", "b", None, A, is_moved=True), put("c.md", "c", None, ENDED, is_moved=True)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("looks", "vanished", "expected"), MOVES.values(), ids=MOVES)
def test_a_vanished_note_is_found_again(looks: list[Look], vanished: list[Known], expected: list[object]) -> None:
    assert decided(diff(looks, {}, vanished, settled={each.path: None for each in vanished})) == expected


@pytest.mark.parametrize("note_id", ["x", ""])
def test_a_move_waits_until_the_old_place_is_surely_empty(note_id: str) -> None:
    assert diff([look("b.md", note_id=note_id)], {}, [row("a.md", note_id=note_id)]) == [Wait("b.md", NOW)]


def test_a_note_moved_onto_another_ends_that_one() -> None:
    changes = diff([look("b.md", "text", "x")], by_path(THERE), [A_WITH_ID], settled={"a.md": None})
    assert decided(changes) == [put("b.md", "x", A_WITH_ID, THERE, is_moved=True)]


# Ids.

X_AT_A, X_AT_B, LONG = look("a.md", note_id="x"), look("b.md", note_id="x"), look("long.md", note_id="x")
FAR, PATH_AS_ID = row("far.md", note_id="x"), row("z.md", note_id="a")
REFUSED, SEEN = row("b.md", note_id="x", has="b"), row("b.md", note_id="x", stamp=NOW)
# By what is shown: the looks, the rows at their paths, what vanished surely, the other rows, and who gets which id.
IDS: dict[str, tuple[list[Look], list[Known], list[Known], list[Known], dict[str, str]]] = {
    "of new files the shorter path, then the first has the id": (
        [X_AT_B, X_AT_A, LONG], [], [], [], {"a.md": "x", "b.md": "b", "long.md": "long"},
    ),
    "who has the id keeps it": ([X_AT_B, X_AT_A], [SEEN], [], [], {"a.md": "a"}),
    "who has the id keeps it unseen": ([X_AT_A], [], [], [SEEN], {"a.md": "a"}),
    "the path of a refused file may be an id that another has": (
        [X_AT_A], [], [], [FAR, PATH_AS_ID], {"a.md": "a.md"},
    ),
    "and one that no file can name": (
        [X_AT_A], [], [], [FAR, PATH_AS_ID, row("far.md", note_id="a.md")], {"a.md": "a.md"},
    ),
    "two files exchange their names": (
        [look("a.md", "two"), look("b.md", "one")], [row("a.md", "one"), row("b.md", "two")], [], [],
        {"a.md": "a", "b.md": "b"},
    ),
    "the note that vanished with the same bytes has the id before a shorter path": (
        [look("a.md", "other", "x"), look("d/new.md", "same", "x")], [], [row("d/old.md", "same", "x")], [],
        {"a.md": "a", "d/new.md": "x"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("looks", "rows", "vanished", "others", "expected"), IDS.values(), ids=IDS)
def test_every_file_gets_an_id(
    looks: list[Look], rows: list[Known], vanished: list[Known], others: list[Known], expected: dict[str, str]
) -> None:
    settled = {each.path: None for each in vanished}
    assert stored(diff(looks, by_path(*rows), vanished, others, settled=settled)) == expected


def test_who_is_refused_an_id_says_who_has_it() -> None:
    changes = diff([X_AT_A, X_AT_B], {})
    problems = {each.look.path: each.projection.document["problems"] for each in changes if isinstance(each, Put)}
    assert problems == {"a.md": [], "b.md": [list(contested("x", "a.md"))]}


def test_a_free_id_goes_to_who_was_refused_it() -> None:
    change = only(diff([X_AT_B], by_path(REFUSED)))
    assert (change.id, change.was, change.projection.document["problems"]) == ("x", REFUSED, [])


def test_a_refused_file_is_kept_until_another_has_the_id() -> None:
    refused = by_path(REFUSED._replace(stamp=NOW))
    assert diff([X_AT_B], refused, (), [row("there.md", note_id="x")]) == []
    changes = diff([X_AT_B], refused, (), [row("moved.md", note_id="x")])
    assert only(changes).projection.document["problems"] == [list(contested("x", "moved.md"))]


def test_two_files_exchange_their_ids() -> None:
    known = by_path(row("a.md", "id: x", "x"), row("b.md", "id: y", "y"))
    changes = diff([look("a.md", "id: y", "y"), look("b.md", "id: x", "x")], known)
    assert stored(changes) == {"a.md": "y", "b.md": "x"}
    assert all(isinstance(change, Put) and change.was is None for change in changes)


def test_a_look_changes_nothing_of_its_own() -> None:
    before = msgspec.structs.replace(X_AT_B)
    diff([X_AT_B], {}, (), [row("a.md", note_id="x")])
    assert before == X_AT_B
