"""Facts taken out of a file and put into one: exactly these, and every other line as it was."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_facts import source_of, with_facts, without_facts
from notebook_sync.files.edit_shape import shape_of
from notebook_sync.files.fact_comment import Archived, Told
from notebook_sync.files.facts import facts_in
from prompt.outline import Outline

PATH = "facts/notes.md"
PIECES = [
    "## Key Topics",
    "### Quay",
    "Tides\n-----",
    "",
    "- the lamp is lit at six",
    "- the ferry leaves at nine <!-- importance: 0.9 -->",
    "* ropes hang in the shed",
    "- the toll\n  is twelve crowns\n\n  - more on Sundays\n  - less at night",
    "3. the third buoy is red",
    "- [ ] grease the winch",
    "  - indented by two",
    "- ```\n  code\n  ```",
    "Some words between.",
    "> - quoted",
    "<!-- a comment -->",
    "---",
]


def texts() -> st.SearchStrategy[str]:
    lines = st.lists(st.sampled_from(PIECES), max_size=12)
    return st.builds(
        lambda pieces, eol, end: "\n".join(pieces).replace("\n", eol) + end * eol,
        lines,
        st.sampled_from(["\n", "\r\n"]),
        st.booleans(),
    )


def contents(text: str) -> list[tuple[str, str]]:
    return [(fact.section, fact.content) for fact in facts_in(PATH, text)]


@settings(max_examples=60)
@given(texts(), st.data())
def test_what_is_taken_out_is_gone_and_all_else_reads_as_before(text: str, data: st.DataObject) -> None:
    facts = facts_in(PATH, text)
    gone = data.draw(st.lists(st.sampled_from(facts), unique=True)) if facts else []
    try:
        after = without_facts(text, gone, PATH)
    except EditFailed:
        assert gone
        return
    kept = [fact for fact in facts if fact not in gone]
    assert contents(after) == [(fact.section, fact.content) for fact in kept]
    assert set(after.splitlines(keepends=True)) - {"\n", "\r\n"} <= {*text.splitlines(keepends=True), *_last_of(text)}
    others = [form for form in shape_of(Outline(text)) if form.depth == 0]
    assert [form for form in shape_of(Outline(after)) if form.depth == 0] == others


def _last_of(text: str) -> set[str]:
    """A last line, whose end may go."""
    return {line.rstrip("\r\n") for line in text.splitlines()}


@settings(max_examples=60)
@given(texts(), st.sampled_from(["Quay", "tides", "Key Topics", "", "New"]))
def test_what_is_put_in_is_the_last_of_its_section_and_all_else_stays_to_the_byte(text: str, section: str) -> None:
    source = "- the new one\n  in two lines"
    try:
        after = with_facts(text, section, [source, "- and another"], PATH)
    except EditFailed:
        return
    before = facts_in(PATH, text)
    found = [fact for fact in facts_in(PATH, after) if (fact.section, fact.content) not in contents(text)]
    assert [fact.content for fact in found] == ["the new one\nin two lines", "and another"]
    assert {fact.section.casefold() for fact in found} == {section.casefold()}
    assert len(facts_in(PATH, after)) == len(before) + 2
    assert _is_subsequence(text.rstrip("\r\n"), after)


def _is_subsequence(short: str, long: str) -> bool:
    rest = iter(long)
    return all(letter in rest for letter in short)


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_a_file_keeps_its_mark_its_gaps_and_its_end(eol: str) -> None:
    text = "## Quay\n\n* one\n\n* two\n\n* three".replace("\n", eol)
    assert with_facts(text, "quay", ["- four"], PATH) == f"{text}\n\n* four".replace("\r\n", "\n").replace("\n", eol)
    for first, after, left in ((1, 3, "\n\n* one"), (0, 3, ""), (0, 1, "\n\n* two\n\n* three")):
        assert without_facts(text, facts_in(PATH, text)[first:after], PATH) == f"## Quay{left}".replace("\n", eol)


@pytest.mark.parametrize(
    "source", ["- one", "1. one\n   two", "* one\n\n  - nested", "- ```\n  code\n  ```", "- [x] done"]
)
def test_a_moved_fact_tells_when_and_why_it_was_archived_and_no_more_once_it_is_back(source: str) -> None:
    archived = Archived(date(2031, 3, 1), "faded; --> gone", "facts/notes.md")
    text = f"## Quay\n\n{source}\n"
    (fact,) = facts_in(PATH, text)
    (moved,) = facts_in("facts/archive.md", source_of(text, fact, Told(0.3, archived)))
    assert (moved.note_id, moved.importance, moved.archived) == (fact.note_id, 0.3, archived)
    away = with_facts("", "Quay", [source_of(text, fact, Told(0.3, archived))], "facts/archive.md")
    (there,) = facts_in("facts/archive.md", away)
    assert source_of(away, there, Told()) == source
    assert without_facts(away, [there], "facts/archive.md") == "## Quay\n"


def test_the_blank_lines_around_a_list_that_is_gone_become_one() -> None:
    text = "## A\n\n- one\n- two\n- three\n\n## B\n\n- four\n"
    facts = facts_in(PATH, text)
    assert without_facts(text, facts[:3], PATH) == "## A\n\n## B\n\n- four\n"
    assert without_facts(text, facts[1:3], PATH) == "## A\n\n- one\n\n## B\n\n- four\n"
    assert without_facts(text, [facts[0], facts[2]], PATH) == "## A\n\n- two\n\n## B\n\n- four\n"


def test_facts_of_several_sections_are_taken_out_at_once() -> None:
    text = "- above\n\n## A\n\n- a1\n- a2\n\n## B\n\nwords\n\n- b1\n- b2\n"
    facts = {fact.content: fact for fact in facts_in(PATH, text)}
    gone: Sequence[str] = ("above", "a2", "b1", "b2")
    assert without_facts(text, [facts[one] for one in gone], PATH) == "## A\n\n- a1\n\n## B\n\nwords\n"


@pytest.mark.parametrize("name", ["**Trips**", "`Trips`", "[Trips](pages/trips.md)", "Trips", "_Trips_ by `boat`"])
def test_a_section_is_found_again_by_the_name_it_was_made_with_marks_and_all(name: str) -> None:
    once = with_facts("## Key Topics\n", name, ["- the first"], PATH)
    twice = with_facts(once, name, ["- the second"], PATH)
    assert [content for _, content in contents(twice)] == ["the first", "the second"]
    (section,) = {section for section, _ in contents(twice)}
    assert with_facts(twice, section, ["- the third"], PATH) == twice + "- the third\n"


def test_a_name_is_that_of_the_heading_with_these_marks_before_that_of_one_without() -> None:
    text = "## Trips\n\n- one\n\n## \\*Trips\\*\n\n- two\n"
    assert with_facts(text, "*Trips*", ["- three"], PATH) == text + "- three\n"
