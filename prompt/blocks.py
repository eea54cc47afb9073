"""The blocks of a Markdown text, by lines and characters, so that a cut can leave every byte that it keeps alone."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from prompt.plain import Plain, is_readable, next_heading, read_plain

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# What markdown-it takes for the end of a line; `str.splitlines` takes more.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
_LEAVES = frozenset(("fence", "code_block", "html_block", "hr"))
_FRAMES = frozenset(
    ("paragraph", "heading", "blockquote", "bullet_list", "ordered_list", "list_item", "table", "thead", "tbody", "tr")
)


@dataclass(slots=True, eq=False)
class Node:
    """A block, as markdown-it names it, on the lines `[first, last)`, 0-based.

    markup: a heading's or a fence's mark, a list's bullet.
    closed: a fence that ends before what holds it does.
    """

    type: str
    first: int = 0
    last: int = 0
    markup: str = ""
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    closed: bool = False

    def add(self, child: Node) -> Node:
        child.parent = self
        self.children.append(child)
        return child


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

    def span_of(self, node: Node) -> tuple[int, int]:
        return self.span(node.first, node.last)

    def filled(self, node: Node) -> tuple[int, int]:
        """The node's lines `[first, last)`, without the blank ones it closes with."""
        first, last = node.first, node.last
        while last > first and self.is_blank(last - 1):
            last -= 1
        return first, last


def parse_blocks(text: str) -> Node:
    """The tree of blocks. Inline text is not looked into; link definitions are paragraphs, so that no line is lost.

    What a glance can read is not given to markdown-it, which takes twenty times as long for it; what it cannot read
    is given from one heading to the next, each of which ends everything but an open fence or block of HTML.
    """
    root = Node("root")
    if not is_readable(text):
        _adopt(root, _parse(text, 0))
        return root
    start = line = 0
    while start < len(text):
        glance = read_plain(text, start, line)
        _place(root, glance.blocks)
        start, line = glance.end, glance.line
        if start == len(text):
            break
        end = next_heading(text, glance.stop)
        stretch = _parse(text[start:end], line)
        while end < len(text) and _goes_on(stretch, line + text.count("\n", start, end)):
            # Twice as much each time, or a fence that is never closed would be read once for every heading in it.
            end = next_heading(text, start + 2 * (end - start))
            stretch = _parse(text[start:end], line)
        _adopt(root, stretch)
        line += text.count("\n", start, end)
        start = end
    return root


def walk_blocks(node: Node) -> Iterator[Node]:
    """Every block below `node`, parents before children, in the text's order."""
    for child in node.children:
        yield child
        yield from walk_blocks(child)


def _place(root: Node, plain: list[Plain]) -> None:
    """Hang plain blocks into the tree; neighbouring items with one bullet are one list."""
    bullets: Node | None = None
    for kind, first, last, markup in plain:
        if kind != "item":
            bullets = None
            root.add(Node(kind, first, last, markup))
            continue
        if bullets is None or bullets.markup != markup:
            bullets = root.add(Node("bullet_list", first, last, markup))
        bullets.last = last
        bullets.add(Node("list_item", first, last, markup)).add(Node("paragraph", first, last))


def _goes_on(stretch: Node, end: int) -> bool:
    """Whether the last block of a stretch, which ends at the line `end`, may take in what follows."""
    last = stretch.children[-1] if stretch.children else stretch
    return (last.type == "fence" and not last.closed) or (last.type == "html_block" and last.last >= end)


def _adopt(root: Node, stretch: Node) -> None:
    for child in stretch.children:
        root.add(child)


def _parse(text: str, line: int) -> Node:
    """The blocks of `text`, which begins on `line`, as markdown-it reads it."""
    # markdown-it-py reads one character too far when a comment is still open in a list whose last line ends with the
    # text and not with a line end; one more line end changes no block.
    tokens = _parser().parse(text if text.endswith(("\n", "\r")) else text + "\n")
    node = root = Node("root")
    for token in tokens:
        kind = token.type.removesuffix("_open")
        if token.nesting < 0:
            if token.type.removesuffix("_close") in _FRAMES and node.parent is not None:
                node = node.parent
        elif token.map is not None and (kind in _FRAMES or kind in _LEAVES):
            first, last = token.map
            markup = "#" * int(token.tag[1]) if kind == "heading" else token.markup
            child = node.add(Node(kind, line + first, line + last, markup))
            # Only the parser knows: what looks like the closing line may stand too deep to be one.
            child.closed = kind == "fence" and last - first - token.content.count("\n") == 2
            if token.nesting > 0:
                node = child
    return root


@cache
def _parser() -> MarkdownIt:
    # Imported when a text is not plain: the import costs 50 ms.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table").disable("reference")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
