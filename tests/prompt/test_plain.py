"""What is read at a glance is read as markdown-it reads it."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from prompt.blocks import Lines, Node, parse_blocks
from prompt.plain import stretches_of

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
@example(["- tide", "- **Odile** (o@x.example): block", "* star", "", "* star"], "\n", True)
def test_the_blocks_are_those_of_markdown_it(lines: list[str], newline: str, ends: bool) -> None:
    text = newline.join(lines) + "\n" * ends
    if text.endswith(("\n", "\r")) or "<!--" not in text:  # else markdown-it-py reads past its end
        lines = Lines(text)
        read = SyntaxTreeNode(PARSER.parse(text)).children
        assert [shape(node, lines) for node in parse_blocks(text).children] == [shape_of(node, lines) for node in read]


def test_a_notebook_of_headings_and_bullets_needs_no_parser() -> None:
    text = "# Ferry\n\nThe rules.\n\n" + "## Day\n\n- [ ] wind the clock\n  at eight\n* **Ines**: answer\n\n" * 50
    assert [stretch.plain is None for stretch in stretches_of(text)] == [False]
    text += "## Table\n\n| a |\n|---|\n\n## Last\n\n- row\n"
    assert [stretch.plain is None for stretch in stretches_of(text)] == [False, True, False]
