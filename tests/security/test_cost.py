"""Rule: the work for one note grows no faster than the note's length, whatever the note contains.

The tests count steps of work; they measure no times.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from notebook_sync.files.edits import Edit, edited
from notebook_sync.files.excerpt import summary_of
from notebook_sync.search.snippets import snippet_of
from notebook_sync.surfaces.dashboard.rendering import rendered
from prompt.outline import Outline


def steps(work: Any) -> int:
    """How many lines of Python it runs."""
    count = 0

    def traced(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("unit", ["a@", "_a", "a a a a\n", "[[a ", "*a "])
def test_a_snippet_takes_no_more_steps_for_each_character_of_a_longer_passage(unit: str) -> None:
    def quote(size: int) -> None:
        text = (unit * size)[:size]
        section = {"anchor": "top", "heading": "Top", "line": 1, "start": 0, "end": size}
        snippet_of({"title": "Top", "content": text, "sections": [section]}, frozenset({"top", "a"}))

    quote(1)  # imports what it needs
    assert steps(lambda: quote(40_000)) < 8 * steps(lambda: quote(10_000))


def test_a_note_that_is_found_again_is_not_read_again() -> None:
    document = {"title": "Top", "content": "- a rope\n" * 5_000, "sections": []}
    first, again = (steps(lambda: snippet_of(document, frozenset({"rope"}))) for _ in range(2))
    assert again < first / 5


def test_to_quote_a_note_without_comments_its_blocks_are_not_made() -> None:
    def quote(end: str) -> int:
        text = "- a rope\n" * 2_000 + end
        return steps(lambda: snippet_of({"title": "Top", "content": text, "sections": []}, frozenset({"rope"})))

    assert quote("x") < quote("<!-- x -->") / 2


@pytest.mark.parametrize(
    "text",
    [
        f"# Top\n\n- [ ] rope\n\n***\n\n{dense * 2_000}"
        for dense in ("- a\n", "- a\n  - b\n", "~~~\na\n~~~\n", "> a\n\n", "a\n\n", "[a](b) ")
    ]
    + ["# Top\n\n- [ ] rope\n\n|x|y|\n|-|-|\n" + "|a|b|\n" * 2_000],
)
@pytest.mark.parametrize(
    "edit",
    [
        Edit("append_to_section", section="Top", content="- b"),
        Edit("replace_section", section="Top", content="b"),
        Edit("toggle_checkbox", entry_match="rope"),
        Edit("remove_entry", entry_match="rope"),
    ],
)
def test_an_edit_takes_little_more_steps_than_to_read_the_note_twice(text: str, edit: Edit) -> None:
    assert steps(lambda: edited(text.encode(), edit)) < 3 * steps(lambda: Outline(text))


def test_a_note_is_summarised_in_no_more_steps_for_a_longer_first_paragraph() -> None:
    short, long = (Outline("*a* " * size) for size in (10_000, 40_000))
    assert steps(lambda: summary_of(long)) < 2 * steps(lambda: summary_of(short))


@pytest.mark.parametrize("line", ["- a\n", "|x|y|\n", "# a\n", "~~~\n"])
def test_a_page_of_more_blocks_than_a_reader_waits_for_is_shown_as_it_is_written(line: str) -> None:
    assert rendered(line * 40_000).startswith("<pre>")
    assert not rendered(line * 40).startswith("<pre>")
