"""What a brief says of a note: its text without comments, its title on one line."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from notebook_sync.context.quoting import at_start, body_of, in_code, one_line

MARKDOWN = MarkdownIt("commonmark").enable("table")


def test_comments_and_frontmatter_are_left_out() -> None:
    assert body_of("---\na: b\n---\nLamps <!-- Ines knows --> burn.\n\n<!--\n## Risks\n-->\n") == "Lamps  burn."


def test_the_title_is_not_said_twice_but_nothing_else_is_lost() -> None:
    assert body_of("# Ferry\n\nText", "Ferry") == "Text"
    assert body_of("Above\n\n# Ferry\n\nText", "Ferry") == "Above\n\n# Ferry\n\nText"
    assert body_of("# Ferryman\n\nText", "Ferry") == "# Ferryman\n\nText"


@pytest.mark.parametrize("title", ["## Risks", "- a", "> q", "1. a", "``` a"])
def test_a_mark_that_a_point_begins_with_is_text(title: str) -> None:
    kinds = [token.type for token in MARKDOWN.parse(f"- {at_start(title)} (`pages/a.md`)")]
    assert kinds[2:4] == ["paragraph_open", "inline"]


def test_one_line_is_one_line() -> None:
    assert one_line("**Night** <!-- x -->\n`ferry`", 50) == "Night ferry"
    assert one_line("a " * 100, 9) == "a a a a…"
    assert one_line("", 9) == ""


def test_a_path_stands_to_the_letter() -> None:
    assert in_code("memories/a.md") == "`memories/a.md`"
    assert in_code("a`b") == "``a`b``"
    assert in_code("q`` **x** ``q`") == "``` q`` **x** ``q` ```"
