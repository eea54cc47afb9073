"""What is read at a glance is read as markdown-it reads it."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

import prompt.blocks
from prompt.blocks import Lines, Node, parse_blocks
from prompt.blocks import _parse as parse_stretch

PARSER = MarkdownIt("commonmark").enable("table").disable("reference")
LINES = st.sampled_from(
    [
        "# Harbour",
        "## Ferry  ",
        "#no heading",
        "   ### Pier",
        "- tide",
        "* star",
        "+ plus",
        "- **Odile** (o@x.example): block",
        "- [ ] wind",
        "Ines rows.",
        "  and on",
        "    further on",
        "\tfar",
        "1. one",
        "2) two",
        "12 boats",
        "12. boats",
        "- 12. boats",
        "- 2026-02-01 fog",
        "```",
        "```sh",
        "~~~",
        "- ```",
        "<div>",
        "</div>",
        "<!-- note -->",
        "<!-- open",
        "<pre>",
        "---",
        "===",
        "| a | b |",
        "|---|---|",
        "a | b",
        "--- | ---",
        "> verse",
        "  - nested",
        "- - two",
        "- # head",
        "_so_",
        "**so**",
        "*so*",
        "[a]: b",
        "-  ",
        "-",
        "    - deep",
        "灯台守",
        "-  two",
        "- (a)",
        "“said”",
        "\x0b",
        "\x00",
        "",
    ]
)


def shape(node: Node, lines: Lines) -> object:
    """What the node is, where, and what it holds; whether blank lines below it are its own changes nothing."""
    return node.type, lines.filled(node), [shape(child, lines) for child in node.children]


def shape_of(node: SyntaxTreeNode, lines: Lines) -> object:
    inside = [child for child in node.children if child.map and child.type not in ("inline", "th", "td")]
    place = lines.filled(Node(node.type, *(node.map or ())))
    return node.type, place, [shape_of(child, lines) for child in inside]


@settings(max_examples=500, deadline=None)
@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n", "\n\n", "\r"]), st.booleans())
@example(["- tide", "", "# Harbour", "```", "## Ferry", "```"], "\n", True)
@example(["<div>", "# Harbour", "", "## Ferry"], "\n", False)
@example(["```", "# Harbour", "```", "## Ferry", "```", "", "# Ferry"], "\n", True)
@example(["# Harbour", "<!-- open", "# Harbour", "", "# Ferry"], "\n", True)
@example(["- ```", "# Harbour", "- <pre>", "# Ferry"], "\n", True)
@example(["<!-- note -->", "# Harbour", "<pre>", "", "# Ferry", "</pre>"], "\n", True)
@example(["- tide", "- **Odile** (o@x.example): block", "* star", "", "* star"], "\n", True)
def test_the_blocks_are_those_of_markdown_it(lines: list[str], newline: str, ends: bool) -> None:
    text = newline.join(lines) + "\n" * ends
    if text.endswith(("\n", "\r")) or "<!--" not in text:  # else markdown-it-py reads past its end
        lines = Lines(text)
        read = SyntaxTreeNode(PARSER.parse(text)).children
        assert [shape(node, lines) for node in parse_blocks(text).children] == [shape_of(node, lines) for node in read]


def test_markdown_it_is_asked_for_what_a_glance_cannot_read_and_for_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def parse(text: str, line: int) -> Node:
        asked.append(text)
        return parse_stretch(text, line)

    monkeypatch.setattr(prompt.blocks, "_parse", parse)
    plain = "## Day\n\n- [ ] wind the clock\n  at eight\n* **Ines**: answer\n\n" * 50
    table, code = "## Table\n\n| a |\n|---|\n\n", "## Code\n\n```sh\n# no heading\n\n# none either\n```\n\n"
    pinned = "## Pinned\n<!-- pin -->\n\n- row\n\n"
    parse_blocks("# Ferry\n\nThe rules.\n\n" + plain + table + plain + code + plain + pinned + plain)
    assert [text for text in asked if text in (table, code, pinned)] == [table, code, pinned]
    assert max(map(len, asked)) <= len(code)
    assert all(code.startswith(text) for text in asked if text not in (table, pinned))


def test_an_open_fence_is_not_read_again_for_each_heading_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def parse(text: str, line: int) -> Node:
        read.append(len(text))
        return parse_stretch(text, line)

    monkeypatch.setattr(prompt.blocks, "_parse", parse)
    text = "```sh\n" + "# a comment\nrow\n" * 2000
    assert [node.type for node in parse_blocks(text).children] == ["fence"]
    assert sum(read) < 4 * len(text)
