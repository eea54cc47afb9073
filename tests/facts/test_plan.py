"""What happened to facts, row by row of the table, and which new wording goes on with which old one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.files.facts import ARCHIVE, CORE, facts_in, id_of
from notebook_sync.mirror.facts import Change, Fact, Place
from notebook_sync.sync.fact_plan import Planned, plan, touched
from notebook_sync.sync.fact_wording import Worded, reworded

NOTES, PEOPLE = "facts/notes.md", "facts/people.md"
NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
FERRY, BERTH = "Odile runs the ferry on Sundays in winter", "Ines keeps the berths"
Files = Mapping[str, str]


def bullets(*contents: str, section: str = "Key Topics") -> str:
    return f"## {section}\n\n" + "".join(f"- {content}\n" for content in contents)


def planned(before: Files, after: Files, gone: Sequence[str] = (), doubted: Sequence[str] = ()) -> Planned:
    """What is planned where the files said `before` when they were read, and of them these say something else now."""
    known = [
        Place(fact.note_id, path, fact.section, fact.line, fact.importance)
        for path, text in before.items()
        for fact in {fact.note_id: fact for fact in reversed(facts_in(path, text))}.values()
    ]
    read = {path: facts_in(path, text) for path, text in after.items()}
    there = {fact.note_id: fact.content for path, text in before.items() for fact in facts_in(path, text)}
    there |= {id_of(content): content for content in gone}
    among = touched(known, read, doubted)
    rows = {note_id: Fact(note_id, content, NOW, NOW) for note_id, content in there.items() if note_id in among}
    return plan(known, read, among, rows, NOW)


def told(of: Planned) -> list[tuple[str, str]]:
    return [(change.action, change.content) for change in of.changes]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {NOTES: bullets(FERRY)}, [("added", FERRY)], id="nowhere, somewhere"),
        pytest.param({NOTES: bullets(FERRY)}, {NOTES: ""}, [("gone", FERRY)], id="somewhere, nowhere"),
        pytest.param(
            {NOTES: bullets(FERRY)}, {NOTES: bullets(FERRY + "s")}, [("reworded", FERRY + "s")], id="nearly the same"
        ),
        pytest.param(
            {NOTES: bullets(FERRY)},
            {NOTES: "", ARCHIVE: bullets(FERRY)},
            [("archived", FERRY)],
            id="a live file, archive.md",
        ),
        pytest.param(
            {ARCHIVE: bullets(FERRY)},
            {NOTES: bullets(FERRY), ARCHIVE: ""},
            [("restored", FERRY)],
            id="archive.md, live",
        ),
        pytest.param(
            {ARCHIVE: bullets(FERRY)}, {CORE: bullets(FERRY), ARCHIVE: ""}, [("restored", FERRY)], id="archive.md, core"
        ),
        pytest.param(
            {NOTES: bullets(FERRY)}, {CORE: bullets(FERRY), NOTES: ""}, [("promoted", FERRY)], id="a live file, core.md"
        ),
        pytest.param(
            {CORE: bullets(FERRY)}, {CORE: "", NOTES: bullets(FERRY)}, [("demoted", FERRY)], id="core.md, a live file"
        ),
        pytest.param(
            {NOTES: bullets(FERRY)}, {NOTES: "", PEOPLE: bullets(FERRY)}, [("moved", FERRY)], id="another file"
        ),
        pytest.param(
            {NOTES: bullets(FERRY)}, {NOTES: bullets(FERRY, section="Winter")}, [("moved", FERRY)], id="another section"
        ),
        pytest.param(
            {NOTES: bullets(FERRY)},
            {NOTES: bullets(f"{FERRY} <!-- importance: 0.9 -->")},
            [("pinned", FERRY)],
            id="with a pin",
        ),
        pytest.param(
            {NOTES: bullets(f"{FERRY} <!-- importance: 0.9 -->")},
            {NOTES: bullets(FERRY)},
            [("unpinned", FERRY)],
            id="without the pin",
        ),
        pytest.param({NOTES: bullets(FERRY)}, {NOTES: bullets(BERTH, FERRY)}, [("added", BERTH)], id="another line"),
        pytest.param({NOTES: bullets(FERRY)}, {NOTES: bullets(FERRY, FERRY)}, [], id="said twice in a file"),
        pytest.param({NOTES: bullets(FERRY, FERRY)}, {NOTES: bullets(FERRY)}, [], id="said once again"),
        pytest.param({NOTES: bullets(FERRY)}, {ARCHIVE: bullets(FERRY)}, [], id="said in archive.md too"),
        pytest.param({NOTES: bullets(FERRY)}, {CORE: bullets(FERRY)}, [("promoted", FERRY)], id="said in core.md too"),
        pytest.param(
            {NOTES: bullets(FERRY), PEOPLE: bullets(FERRY)}, {NOTES: ""}, [("moved", FERRY)], id="said elsewhere still"
        ),
    ],
)
def test_each_change_of_files_is_a_change_of_facts(
    before: Files, after: Files, expected: list[tuple[str, str]]
) -> None:
    assert told(planned(before, after)) == expected


def test_a_fact_whose_row_is_there_comes_back() -> None:
    assert told(planned({}, {NOTES: bullets(FERRY)}, gone=[FERRY])) == [("returned", FERRY)]


def test_a_fact_comes_back_rather_than_being_a_rewording() -> None:
    changes = planned({NOTES: bullets(FERRY)}, {NOTES: bullets(FERRY + "s")}, gone=[FERRY + "s"])
    assert told(changes) == [("gone", FERRY), ("returned", FERRY + "s")]


def test_a_fact_that_still_stands_elsewhere_was_not_reworded() -> None:
    changes = planned({NOTES: bullets(FERRY), PEOPLE: bullets(FERRY)}, {NOTES: bullets(FERRY + "s")})
    assert told(changes) == [("added", FERRY + "s"), ("moved", FERRY)]


def test_of_a_file_in_doubt_every_fact_is_looked_at() -> None:
    text = bullets(FERRY, BERTH)
    known = [Place(fact.note_id, NOTES, fact.section, fact.line) for fact in facts_in(NOTES, text)]
    read = {NOTES: facts_in(NOTES, text)}
    among = touched(known, read, {NOTES})
    assert among == {id_of(FERRY), id_of(BERTH)}
    assert touched(known, read, ()) == set()
    rows = {id_of(FERRY): Fact(id_of(FERRY), FERRY, NOW, NOW)}
    assert told(plan(known, read, among, rows, NOW)) == [("added", BERTH)]


def test_a_new_fact_begins_where_it_stands() -> None:
    archived = f"{BERTH} <!-- archived: 2026-01-05; reason: faded -->"
    changes = planned({}, {NOTES: bullets("a"), CORE: bullets("b"), ARCHIVE: bullets(archived)}).changes
    begun = {change.content: (change.importance, change.created_at) for change in changes}
    assert begun == {"a": (0.5, NOW), "b": (1.0, NOW), BERTH: (0.5, datetime(2026, 1, 5, tzinfo=UTC))}


# Wordings.


def worded(*contents: str, section: str = "A") -> list[Worded]:
    return [Worded(Place(id_of(content), NOTES, section, line), content) for line, content in enumerate(contents)]


@pytest.mark.parametrize(
    ("old", "new", "is_same"),
    [
        ("Odile runs the ferry", "Odile runs the ferry.", True),
        ("[ ] call Ines", "[x] call Ines", True),
        ("odile  runs the ferry", "Odile runs\nthe ferry", True),
        ("a" * 18, "a" * 18 + "bcde", True),  # 2 · 18 / (18 + 22) = .9
        ("a" * 18, "a" * 18 + "bcdef", False),  # 2 · 18 / (18 + 23) = .88
        ("Odile runs the ferry", "Ines keeps the berths", False),
        ("", "", True),
    ],
)
def test_two_wordings_are_one_fact_from_nine_tenths_on(old: str, new: str, is_same: bool) -> None:
    found = reworded([Worded(Place("old", NOTES, "A", 1), old)], [Worded(Place("new", NOTES, "A", 9), new)])
    assert found == ({"new": "old"} if is_same else {})


def test_a_wording_goes_on_with_one_in_its_own_section_alone() -> None:
    assert reworded(worded(FERRY, section="A"), worded(FERRY + "s", section="B")) == {}


def test_of_several_the_most_alike_goes_on_and_then_the_nearest() -> None:
    old = worded("the ferry of Odile leaves at 8", "the ferry of Odile leaves at 9")
    new = worded("the ferry of Odile leaves at 9!", "the ferry of Odile leaves at 8!")
    assert reworded(old, new) == {
        id_of(n): id_of(o) for n, o in ((new[0].content, old[1].content), (new[1].content, old[0].content))
    }
    alike = [Worded(Place(f"old {n}", NOTES, "A", n), "the very same words") for n in (1, 5, 9)]
    assert reworded(alike, [Worded(Place("new", NOTES, "A", 6), "the very same words!")]) == {"new": "old 5"}


@pytest.mark.parametrize("count", [40, 400])
def test_of_many_wordings_each_goes_on_with_the_most_alike_and_nearest(count: int) -> None:
    old = [Worded(Place(f"old {n}", NOTES, "A", n), "the very same words") for n in range(count)]
    new = [Worded(Place(f"new {n}", NOTES, "A", n), "the very same words!") for n in range(0, count, 2)]
    assert reworded(old, new) == {f"new {n}": f"old {n}" for n in range(0, count, 2)}


def test_thousands_that_are_all_reworded_go_on_each_with_its_own() -> None:
    old = [
        Worded(Place(f"old {n}", NOTES, "A", n), f"berth {n * 7919 % 10_000:05} is kept by Odile") for n in range(3_000)
    ]
    new = [
        Worded(Place(f"new {n}", NOTES, "A", n), one.content.replace("Odile", "Odilie")) for n, one in enumerate(old)
    ]
    assert reworded(old, new) == {f"new {n}": f"old {n}" for n in range(3_000)}


_TEXTS = st.lists(st.text("abc ", min_size=8, max_size=14), max_size=6)


@given(_TEXTS, _TEXTS)
def test_each_wording_goes_on_once(old: list[str], new: list[str]) -> None:
    before = [Worded(Place(f"old {n}", NOTES, "A", n), text) for n, text in enumerate(old)]
    after = [Worded(Place(f"new {n}", NOTES, "A", n), text) for n, text in enumerate(new)]
    found = reworded(before, after)
    assert len(set(found.values())) == len(found) <= min(len(old), len(new))


_FILES = st.dictionaries(
    st.sampled_from([NOTES, CORE, ARCHIVE, PEOPLE]), st.lists(st.sampled_from([FERRY, BERTH, FERRY + "s"]), max_size=3)
)


@settings(max_examples=50)
@given(_FILES, _FILES)
def test_whatever_the_files_say_each_fact_changes_once_and_ends_where_it_stands(
    before: dict[str, list[str]], after: dict[str, list[str]]
) -> None:
    texts = {path: bullets(*contents) for path, contents in before.items()}
    now = texts | {path: bullets(*contents) for path, contents in after.items()}
    changes: Sequence[Change] = planned(texts, {path: now[path] for path in after}).changes
    assert len({change.note_id for change in changes}) == len(changes)
    standing = {fact.note_id for path, text in now.items() for fact in facts_in(path, text)}
    stood = {fact.note_id for path, text in texts.items() for fact in facts_in(path, text)}
    ended = {change.note_id for change in changes if change.action == "gone"} | {c.was for c in changes if c.was}
    begun = {change.note_id for change in changes if change.action in ("added", "reworded")}
    assert (stood - ended) | begun == standing
