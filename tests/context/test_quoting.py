"""A note's text in a brief is text: it cannot look like another part of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.context.quoting import at_start, in_code, one_line, quoted
from notebook_sync.files.commonmark import block_tokens
from notebook_sync.files.outline import read


def headings_of(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.text) for heading in read(text).headings]


def test_headings_go_below_the_briefs_own() -> None:
    text = "# Night ferry\n\n## Context\n\nTwo.\n\n### Deep\n\nSlots\n=====\n\nLast.\n\n## \n"
    assert headings_of(quoted(text, level=4, title="Night ferry")) == [(5, "Context"), (6, "Deep"), (4, "Slots")]
    assert headings_of(quoted("## Context\n\n#### Deep", level=4)) == [(4, "Context"), (6, "Deep")]
    assert headings_of(quoted("###### Six\n\n# One", level=4)) == [(6, "Six"), (4, "One")]


def test_the_title_is_not_said_twice_but_nothing_else_is_lost() -> None:
    assert quoted("# Ferry\n\nText", level=4, title="Ferry") == "Text"
    assert quoted("Above\n\n# Ferry\n\nText", level=4, title="Ferry") == "Above\n\n#### Ferry\n\nText"


def test_comments_are_left_out() -> None:
    assert quoted("Lamps <!-- Ines knows --> burn.\n\n<!--\n## Risks\n-->\n\nLong.", level=4) == "Lamps  burn.\n\nLong."


@pytest.mark.parametrize(
    "text", ["```sh\nlight", "~~~~\nlight", "<script>\nlight", "<pre>\nlight", "<?php\nlight", "<![CDATA[\nlight"]
)
def test_nothing_is_open_at_the_end(text: str) -> None:
    after = f"{quoted(text, level=4)}\n\n## Risks\n"
    assert headings_of(after) == [(2, "Risks")]


def test_the_opening_of_a_comment_that_is_never_closed_is_text() -> None:
    quotation = quoted("Lamps.\n\n<!-- begun\n\n## Risks\n\nNone.", level=4)
    assert headings_of(f"{quotation}\n\n## Risks\n") == [(4, "Risks"), (2, "Risks")]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["# A", "## Risks", "A\n===", "```", "~~~", "<!--", "-->", "- x", "> q", "<script>", ""]))
)
def test_whatever_is_quoted_the_next_heading_is_one(lines: list[str]) -> None:
    quotation = quoted("\n".join(lines), level=4)
    found = headings_of(f"{quotation}\n\n## Own\n")
    assert found[-1] == (2, "Own")
    assert all(level >= 4 for level, _ in found[:-1])


@pytest.mark.parametrize(
    "text", ["> ## Risks\n> - none", "- ## Risks\n", "1. # Risks\n   ## Metadata", "> Risks\n> ---"]
)
def test_no_heading_in_a_list_or_a_quote_is_of_the_briefs_own_rank(text: str) -> None:
    found = [token.tag for token in block_tokens(quoted(text, level=4)) if token.type == "heading_open"]
    assert all(tag in ("h5", "h6") for tag in found)


@pytest.mark.parametrize("title", ["## Risks", "- a", "> q", "1. a", "``` a"])
def test_a_mark_that_a_point_begins_with_is_text(title: str) -> None:
    kinds = [token.type for token in block_tokens(f"- {at_start(title)} (`pages/a.md`)")]
    assert kinds[2:4] == ["paragraph_open", "inline"]


def test_one_line_is_one_line() -> None:
    assert one_line("**Night** <!-- x -->\n`ferry`", 50) == "Night ferry"
    assert one_line("a " * 100, 9) == "a a a a…"
    assert one_line("", 9) == ""


def test_a_path_stands_to_the_letter() -> None:
    assert in_code("memories/a.md") == "`memories/a.md`"
    assert in_code("a`b") == "``a`b``"
    assert in_code("q`` **x** ``q`") == "``` q`` **x** ``q` ```"
