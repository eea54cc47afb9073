"""A Markdown text as a tree that may lose leaves: sections, list items, paragraphs, and parts of what is too large.

What frames its children (a heading, a table's head, the two ends of a fence) stays as long as any of them does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from prompt.anchors import anchors_of, heading_text
from prompt.blocks import Lines, Node, lines_of, parse_blocks

Kind = Literal["root", "section", "entry", "line"]
IsLarge = Callable[[int, int], bool]


@dataclass(slots=True)
class Block:
    """A stretch `[start, end)` of the text, without the blank lines around it.

    head: what stands above the children and frames them, as a stretch of the text.
    tail: the line that closes what the head opened; written below the children.
    entries: how many things a reader would count here; of a section, set by `leaving_order`.
    ends: how it may be cut short: as prose with inline marks, as bare text, or not at all.
    leads: the first child holds its siblings up (a list item's own first line) and leaves last.
    latest_first: children leave from the end (code reads from its beginning).
    tight: a nested bullet that stands directly below a line, and may do so below another one.
    unclosed: a fence that runs to the end of the text.
    tokens: of all leaves and heads below, set by who counts.
    first, last: the smallest and largest rank of a leaf, set by `leaving_order`.
    """

    kind: Kind
    start: int
    end: int
    children: list[Block] = field(default_factory=list)
    head: tuple[int, int] | None = None
    tail: str = ""
    heading: str = ""
    anchor: str = ""
    entries: int = 1
    ends: Literal["prose", "bare", "never"] = "never"
    leads: bool = False
    latest_first: bool = False
    pinned: bool = False
    tight: bool = False
    unclosed: bool = False
    tokens: int = 0
    first: int = 0
    last: int = 0


def tree_of(text: str, pinned: frozenset[int], is_large: IsLarge) -> Block:
    """The tree of `text`. Sections nest; of what they hold, only stretches that `is_large` are divided further."""
    lines = Lines(text)
    root = Block("root", 0, len(text), entries=0)
    path: list[tuple[int, Block]] = [(0, root)]
    sections: list[Block] = []
    for node in parse_blocks(text).children:
        if node.type == "heading":
            level = len(node.markup)
            while path[-1][0] >= level:
                path.pop()
            start, end = lines.span_of(node)
            section = Block("section", start, end, head=(start, end), entries=0)
            section.ends = "prose"
            section.heading = heading_text(text[start:end])
            section.pinned = start in pinned or path[-1][1].pinned
            path[-1][1].children.append(section)
            path.append((level, section))
            sections.append(section)
        else:
            path[-1][1].children.extend(_entries(node, lines, is_large))
    for section, anchor in zip(sections, anchors_of([section.heading for section in sections]), strict=True):
        section.anchor = anchor
    _close(root)
    return root


def leaving_order(root: Block) -> list[Block]:
    """The leaves, least worth first: pinned sections after the others, and what was written first before what came
    later, since additions go to the end."""
    units: list[tuple[bool, list[Block]]] = []

    def visit(section: Block) -> None:
        own = [leaf for entry in section.children if entry.kind != "section" for leaf in _leaving(entry)]
        if not section.children and section.kind == "section":
            own = [section]
        units.append((section.pinned, own))
        for child in section.children:
            if child.kind == "section":
                visit(child)

    visit(root)
    units.sort(key=lambda unit: unit[0])
    order = [leaf for _, leaves in units for leaf in leaves]
    for rank, leaf in enumerate(order):
        leaf.first = leaf.last = rank
    _rank(root)
    return order


def _leaving(entry: Block) -> Iterator[Block]:
    if not entry.children:
        yield entry
        return
    children: Iterable[Block] = entry.children
    if entry.leads:
        children = [*entry.children[1:], entry.children[0]]
    elif entry.latest_first:
        children = reversed(entry.children)
    for child in children:
        yield from _leaving(child)


def _rank(block: Block) -> None:
    if block.children:
        for child in block.children:
            _rank(child)
        block.first = min(child.first for child in block.children)
        block.last = max(child.last for child in block.children)
        if block.kind in ("root", "section"):
            block.entries = sum(child.entries for child in block.children)


def _close(block: Block) -> None:
    """Let every section end where its last child does."""
    for child in block.children:
        if child.kind == "section":
            _close(child)
    if block.children:
        block.end = block.children[-1].end


def _entries(node: Node, lines: Lines, is_large: IsLarge) -> Iterator[Block]:
    """The blocks that `node` is: the items of a list, each by itself, or one."""
    if node.type in ("bullet_list", "ordered_list"):
        for item in node.children:
            yield from _entries(item, lines, is_large)
        return
    start, end = lines.span_of(node)
    block = Block("entry", start, end, ends=_ENDS.get(node.type, "never"))
    block.unclosed = (
        node.type == "fence"
        and node.parent is not None
        and node.parent.type == "root"
        and not _closing_line(node, lines)
    )
    if block.unclosed:
        block.tail = node.markup
    if node.type in _DIVIDERS and is_large(start, end):
        _DIVIDERS[node.type](block, node, lines, is_large)
    if (
        node.type == "list_item"
        and node.parent
        and node.parent.type == "bullet_list"
        and node.parent.parent
        and node.parent.parent.type != "root"
    ):
        block.tight = not lines.is_blank(lines_of(node)[0] - 1)
    if start < end:
        yield block


def _divide_container(block: Block, node: Node, lines: Lines, is_large: Callable[[int, int], bool]) -> None:
    block.children = [inner for child in node.children for inner in _entries(child, lines, is_large)]
    block.leads = node.type == "list_item"
    if block.children:
        # What markdown-it swallowed around the children (an item's mark, lines nested too deep) belongs to one.
        block.children[0].start = block.start
        block.children[-1].end = block.end


def _divide_table(block: Block, node: Node, lines: Lines, _: IsLarge) -> None:
    first, last = lines_of(node)
    block.head = lines.span(first, first + 2)
    block.children = [Block("line", *lines.span(line, line + 1), ends="prose") for line in range(first + 2, last)]


def _divide_fence(block: Block, node: Node, lines: Lines, _: IsLarge) -> None:
    first, _last = lines_of(node)
    closing = _closing_line(node, lines)
    last = lines.filled(node)[1] - bool(closing)
    block.head = lines.span(first, first + 1)
    block.tail = closing or block.tail
    block.latest_first = True
    for line in range(first + 1, last):
        start = lines.start(line)
        end = start + len(lines.text[start : lines.start(line + 1)].rstrip("\r\n"))
        block.children.append(Block("line", start, end, entries=int(line == last - 1), ends="bare"))


_ENDS: dict[str, Literal["prose", "bare", "never"]] = {
    "paragraph": "prose",
    "heading": "prose",
    "html_block": "bare",
    "code_block": "bare",
}
_DIVIDERS = {
    "list_item": _divide_container,
    "blockquote": _divide_container,
    "table": _divide_table,
    "fence": _divide_fence,
}
_QUOTE_OR_INDENT = re.compile(r"[>\s]*")


def _closing_line(node: Node, lines: Lines) -> str:
    """The line that closes a fence, as it stands; "" where the fence runs to the end of what holds it."""
    first, last = lines.filled(node)
    if last - first < 2:
        return ""
    start, end = lines.span(last - 1, last)
    line = lines.text[start:end]
    mark = _QUOTE_OR_INDENT.sub("", line, count=1)
    return line if len(mark) >= len(node.markup) and not mark.strip(node.markup[0]) else ""
