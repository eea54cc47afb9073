"""The block structure of a Markdown text, by character positions, so that a cut can leave every byte it keeps alone."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

# What markdown-it takes for the end of a line; `str.splitlines` takes more.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")


class Lines:
    """A text and where its lines start."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [match.start() for match in _LINE.finditer(text)]
        self._starts.append(len(text))

    def start(self, line: int) -> int:
        return self._starts[min(line, len(self._starts) - 1)]

    def at(self, position: int) -> int:
        """The line that holds the character at `position`."""
        return bisect_right(self._starts, position) - 1

    def is_blank(self, line: int) -> bool:
        """Lines outside the text are blank."""
        return line < 0 or not self.text[self.start(line) : self.start(line + 1)].strip()

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The lines `[first, last)` as characters, without the blank lines and the line end they close with."""
        start, end = self.start(first), self.start(last)
        return start, start + len(self.text[start:end].rstrip())

    def span_of(self, node: SyntaxTreeNode) -> tuple[int, int]:
        return self.span(*lines_of(node))

    def filled(self, node: SyntaxTreeNode) -> tuple[int, int]:
        """The node's lines `[first, last)`, without the blank ones it closes with."""
        first, last = lines_of(node)
        while last > first and self.is_blank(last - 1):
            last -= 1
        return first, last


def parse_blocks(text: str) -> SyntaxTreeNode:
    """The tree of blocks. Inline text is not looked into; link definitions are paragraphs, so that no line is lost."""
    from markdown_it.tree import SyntaxTreeNode

    # markdown-it-py reads one character too far when a comment is still open in a list whose last line ends with the
    # text and not with a line end; one more line end changes no block.
    return SyntaxTreeNode(_parser().parse(text if text.endswith(("\n", "\r")) else text + "\n"))


def lines_of(node: SyntaxTreeNode) -> tuple[int, int]:
    """The node's lines `[first, last)`, 0-based."""
    if node.map is None:
        raise ValueError(f"a {node.type} is not a block")
    return node.map


def walk_blocks(node: SyntaxTreeNode) -> Iterator[SyntaxTreeNode]:
    """Every block below `node`, parents before children, in the text's order."""
    for child in node.children:
        if child.map is not None and child.type != "inline":
            yield child
            yield from walk_blocks(child)


@cache
def _parser() -> MarkdownIt:
    # Imported when a text has something to take out: the import costs 50 ms, and most prompts need no parse.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table").disable("reference")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def plain_inline(source: str) -> str:
    """One line of prose without its inline marks."""
    tokens = _inline_parser().parseInline(source)[0].children or []
    return "".join(
        token.content if token.type in ("text", "code_inline") else " "
        for token in tokens
        if token.type in ("text", "code_inline", "softbreak", "hardbreak")
    )


@cache
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("strikethrough")
