"""A Markdown text as a tree that may lose leaves: sections, entries, nested items, rows, and the ends of long blocks.

What frames its children (a heading, a table's head, an item's own lines) stays as long as any of them does. Nothing
here depends on a cap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from prompt.anchors import anchors_of, heading_text
from prompt.blocks import Lines, Node, parse_blocks
from prompt.divide import LONG, PROSE, ends_within, fence_closing
from prompt.ending import End, size_of

Kind = Literal["root", "section", "entry"]

# In bytes: code, tables, quotes and nested lists up to this stay or leave whole.
SMALL = 400

_DONE = re.compile(r"[ \t>]*(?:[-+*]|\d{1,9}[.)])[ \t]+\[[xX]\](?=\s)")
_OPEN = re.compile(r"^[ \t>]*(?:[-+*]|\d{1,9}[.)])[ \t]+\[ \](?=\s)", re.MULTILINE)
_BOX = re.compile(r"^[ \t]+(?:[-+*]|\d{1,9}[.)])[ \t]+\[[ xX]\](?=\s)", re.MULTILINE)
_DAY = re.compile(r"\b\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])\b")
# A day by which something is due says nothing of how old the entry is.
_DEADLINE = re.compile(r"\[(?:due|until|expected)\b[^\[\]]{0,80}\]", re.IGNORECASE)
_BULLET = re.compile(r"[ \t]*[-+*][ \t]+\S")


@dataclass(slots=True, eq=False)
class Block:
    """A stretch `[start, end)` of the text, without the blank lines around it.

    head: what stands above the children and frames them, as a stretch of the text.
    entries: how many things a reader would count here.
    ends: where a leaf may end early. long: and its end leaves before any rule does.
    leads: the first child holds its siblings up (an item's own lines) and leaves last.
    is_row: prose in a table's row, which is no block by itself.
    tight: a nested bullet that may stand directly below a line of prose. prose: its last line is one.
    unclosed: what closes the fence in which it ends.
    day: the ISO date that a heading or an entry carries, "" for none. done: a ticked task.
    tokens, shares: of all of it; of each stretch between the ends of a leaf. Set by who counts.
    first, last: the ranks at which the first and the last of it leave. A leaf's stretches leave from its end; all but
    the first one after another.
    """

    kind: Kind
    start: int
    end: int
    children: Sequence[Block] = ()
    head: tuple[int, int] | None = None
    heading: str = ""
    anchor: str = ""
    entries: int = 1
    ends: Sequence[End] = ()
    long: bool = False
    leads: bool = False
    is_row: bool = False
    tight: bool = False
    prose: bool = False
    pinned: bool = False
    unclosed: str = ""
    day: str = ""
    done: bool = False
    tokens: int = 0
    shares: list[int] = field(default_factory=list)
    first: int = -1
    last: int = -1


def tree_of(text: str, pinned: frozenset[int]) -> Block:
    """The tree of `text`. `pinned` are the characters at which pinned headings begin; what they head is pinned too."""
    lines = Lines(text)
    root = Block("root", 0, len(text), [], entries=0)
    path: list[tuple[int, Block]] = [(0, root)]
    sections: list[Block] = []
    blocks = parse_blocks(text)
    for node in blocks.children:
        if node.type != "heading":
            _children(path[-1][1]).extend(_entries(node, lines))
            continue
        level = len(node.markup)
        while path[-1][0] >= level:
            path.pop()
        start, end = lines.span_of(node)
        section = Block("section", start, end, [], heading=heading_text(text[start:end]), entries=0)
        section.pinned = start in pinned or path[-1][1].pinned
        section.day = day_of(section.heading)
        _children(path[-1][1]).append(section)
        path.append((level, section))
        sections.append(section)
        if size_of(text[start:end]) > LONG:
            # Nobody's heading: as a frame it would push out all that it heads.
            _children(section).append(_leaf(node, lines, start, end))
        else:
            section.head = (start, end)
    for section, anchor in zip(sections, anchors_of([section.heading for section in sections]), strict=True):
        section.anchor = anchor
    _close(root)
    _mark_unclosed(root, blocks, lines)
    return root


def stretches_left(leaf: Block, gone: int) -> int:
    """How many of a leaf's stretches are shown when `gone` atoms have left."""
    if gone > leaf.last:
        return 0
    return 1 + min(len(leaf.ends), max(0, leaf.first + len(leaf.ends) - gone))


def day_of(text: str) -> str:
    match = _DAY.search(_DEADLINE.sub("", text))
    return match[0] if match else ""


def _children(block: Block) -> list[Block]:
    assert isinstance(block.children, list)  # noqa: S101 - sections are made with a list
    return block.children


def _close(block: Block) -> None:
    """Let every section end where its last child does, and count what it holds."""
    for child in block.children:
        if child.kind == "section":
            _close(child)
    if block.children:
        block.end = block.children[-1].end
        block.entries = sum(child.entries for child in block.children)


def _entries(node: Node, lines: Lines) -> Iterator[Block]:
    """The blocks that `node` is: the items of a list, each by itself, or one."""
    start, end = lines.span_of(node)
    if start == end:
        return
    if node.type in ("bullet_list", "ordered_list") and _is_regular(node, lines):
        for item in node.children:
            yield from _item(item, lines)
    elif node.type == "table" and size_of(lines.text[start:end]) > SMALL and node.last - node.first > 2:
        yield _table(node, lines)
    else:
        yield _leaf(node, lines, start, end)


def _is_regular(bullets: Node, lines: Lines) -> bool:
    """Whether the items of a list begin below one another, so that each stands for itself.

    Else one might be read as nested in another when those between them are gone.
    """
    if len(bullets.children) > 1:
        margins = {_margin(item, lines) for item in bullets.children}
        return len(margins) == 1
    return True


def _margin(item: Node, lines: Lines) -> str:
    """What stands before an item's mark on its line; the marks of items around it as well."""
    start = lines.start(item.first)
    line = lines.text[start : lines.start(item.first + 1)]
    margin = line[: len(line) - len(line.lstrip(" \t"))]
    outer = item.parent.parent if item.parent else None
    return "*" if outer is not None and outer.type == "list_item" and outer.first == item.first else margin


def _item(item: Node, lines: Lines) -> Iterator[Block]:
    start, end = lines.span_of(item)
    if start == end:
        return
    text = lines.text[start:end]
    nested = next((n for n, child in enumerate(item.children) if child.type.endswith("_list")), 0)
    # An item of ordinary size is one rule, with whatever it says below its first line; tasks are for themselves.
    if not nested or (len(text) <= SMALL and size_of(text) <= SMALL and not _BOX.search(text)):
        yield _leaf(item, lines, start, end)
        return
    own_end = lines.span_of(item.children[nested - 1])[1]
    own = _leaf(Node("list_item", item.first, item.last, "", None, item.children[:nested]), lines, start, own_end)
    inside = [block for child in item.children[nested:] for block in _entries(child, lines)]
    inside[-1].end = end
    block = Block("entry", start, end, [own, *inside], entries=1 + sum(each.entries for each in inside), leads=True)
    block.day, block.done = own.day, own.done and not _OPEN.search(text)
    own.done = False
    yield block


def _table(node: Node, lines: Lines) -> Block:
    start, end = lines.span_of(node)
    rows = []
    for line in range(node.first + 2, node.last):
        row_start, row_end = lines.span(line, line + 1)
        row = Block("entry", row_start, row_end, is_row=True, prose=True)
        text = lines.text[row_start:row_end]
        row.day = day_of(text)
        if size_of(text) > LONG:
            row.long, row.ends = True, ends_within(None, lines, row_start, row_end, finely=False)
        rows.append(row)
    return Block("entry", start, end, rows, head=lines.span(node.first, node.first + 2), entries=len(rows))


def _leaf(node: Node, lines: Lines, start: int, end: int) -> Block:
    text = lines.text[start:end]
    size = size_of(text)
    block = Block("entry", start, end)
    if node.type in ("fence", "blockquote", "bullet_list", "ordered_list", "code_block"):
        most = SMALL
    else:
        most = PROSE if node.type == "paragraph" else LONG
    if size > most:
        block.ends = ends_within(node, lines, start, end, finely=False)
        block.long = size > LONG and bool(block.ends)
    if node.type in ("hr", "heading"):
        block.entries = 0
    elif node.type == "list_item":
        first_line = text.partition("\n")[0]
        block.day = day_of(first_line)
        block.done = bool(_DONE.match(text)) and not _OPEN.search(text)
        block.tight = bool(_BULLET.match(text)) and not lines.is_blank(node.first - 1)
        block.prose = bool(node.children) and node.children[-1].type == "paragraph"
    elif node.type == "paragraph":
        block.day = day_of(text.partition("\n")[0])
        block.prose = True
    return block


def _mark_unclosed(root: Block, node: Node, lines: Lines) -> None:
    """Note with the last leaf of the text what closes the fence in which it ends, if it ends in one."""
    leaf = root
    while leaf.children:
        leaf = leaf.children[-1]
    while node.children:
        node = node.children[-1]
    if node.type == "fence":
        closing, closed = fence_closing(node, lines)
        leaf.unclosed = "" if closed else closing
