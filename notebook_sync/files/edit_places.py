"""What stands where in a file: its sections, their blocks, and the entries of their lists. Pure.

A heading at top level ends whatever stands above it, so the part of a file from one heading to the next reads the
same alone as in the file. That is what lets an edit read one part and leave the others unread.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from notebook_sync.files.edit_lines import lines_of
from notebook_sync.files.edit_shape import Shape, blocks_with_depth, shape_of
from notebook_sync.files.excerpt import without_comments
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.sections import ends_of
from prompt.outline import Block, Outline, Section


@dataclass(frozen=True, slots=True)
class Part:
    """A heading and what stands below it up to the next heading of any level; or, without one, what is above all.

    `start` and `end` are offsets in the page's content, `line` is that of its first line in the file, from 1.
    """

    section: Section | None
    start: int
    end: int
    line: int

    @property
    def title(self) -> str:
        return self.section.title if self.section else ""

    @property
    def anchor(self) -> str:
        return self.section.anchor if self.section else ""

    @property
    def level(self) -> int:
        """1 to 6; 0 for what is above all headings."""
        return self.section.level if self.section else 0

    @property
    def body(self) -> int:
        """Where the text below the heading begins, as an offset in the page's content."""
        return self.section.body if self.section else self.start


@dataclass(frozen=True, slots=True)
class Page:
    """A file. `head` is its byte order mark and frontmatter; `parts[0]` is what stands above the first heading."""

    path: str
    head: str
    content: str
    parts: tuple[Part, ...]

    def text_of(self, part: Part) -> str:
        return self.content[part.start : part.end]

    def section(self, number: int) -> range:
        """The numbers of the parts that the section of a part is made of: its own and its child headings'."""
        if number == 0:
            return range(1)
        end = number + 1
        while end < len(self.parts) and self.parts[end].level > self.parts[number].level:
            end += 1
        return range(number, end)


def page_of(text: str, path: str) -> Page:
    """The page that `text` is; its sections have the anchors that `parse` gives them."""
    front = read_frontmatter(text)
    outline = Outline(front.content)
    above = front.head.count("\n")
    sections = outline.sections
    starts = [*(section.start for section in sections), len(front.content)]
    parts = [Part(None, 0, starts[0], above + 1)]
    for section, end in zip(sections, starts[1:], strict=True):
        parts.append(Part(section, section.start, end, above + 1 + outline.lines.at(section.start)))
    return Page(path, front.head, front.content, tuple(parts))


@dataclass(frozen=True, slots=True)
class Item:
    """A list item, with its continuation lines and children: its lines in the part, and its forms in the shape.

    `mark` is as written (`-`, `2.`), `box` is `[ ]`, `[x]` or "", `source` the rest of its own text on one line,
    without comments; `texts` are the blocks that it is made of. `depth` is 1 in a list at top level. `ends_list`: no
    item of the same list follows.
    """

    first: int
    after: int
    opens: int
    closes: int
    depth: int
    mark: str
    box: str
    source: str
    texts: tuple[Block, ...]
    ends_list: bool

    @property
    def shown(self) -> str:
        return " ".join(filter(None, (self.mark, self.box, self.source)))

    @property
    def as_read(self) -> str:
        """The item as a reader sees it, with its mark."""
        words = " ".join(block.shown for block in self.texts)
        return " ".join(filter(None, (self.mark, self.box, words.removeprefix(self.box).strip())))


class Structure:
    """What a part holds. `blocks` are those at top level, without link definitions, which no edit looks at."""

    def __init__(self, text: str) -> None:
        self.lines: Sequence[str] = lines_of(text)
        self.outline = Outline(text)
        self.blocks = [block for block in self.outline.root.children if block.type != "definition"]

    @cached_property
    def shape(self) -> Shape:
        return shape_of(self.outline)

    def place_in_shape(self, line: int) -> int:
        """How many blocks of the shape begin above this line."""
        return bisect_left(self._firsts, line)

    @cached_property
    def _firsts(self) -> Sequence[int]:
        return [block.first for block, _ in blocks_with_depth(self.outline)]


def items_of(structure: Structure) -> list[Item]:
    """The items of all lists that are in no quote, nested ones too, in order."""
    blocks = [*blocks_with_depth(structure.outline)]
    ends = ends_of([depth for _, depth in blocks])
    texts: dict[int, list[Block]] = {}
    open_items: list[int] = []
    for index, (block, _) in enumerate(blocks):
        while open_items and ends[open_items[-1]] <= index:
            open_items.pop()
        if block.type == "list_item" and not block.quotes:
            open_items.append(index)
            texts[index] = []
        elif block.type in ("paragraph", "heading", "row") and open_items:
            texts[open_items[-1]].append(block)
    return [_item(structure, *blocks[index], (index, ends[index]), texts[index]) for index in texts]


_BOX = re.compile(r"\[[ xX]\](?=\s|\Z)")


def _item(structure: Structure, block: Block, depth: int, span: tuple[int, int], texts: Sequence[Block]) -> Item:
    words = [text.content for text in texts]
    box = _BOX.match(words[0]) if words and block.children[0] is texts[0] else None
    if box and (texts[0].type != "paragraph" or box_at(structure.lines[block.first]) is None):
        box = None
    if box:
        words[0] = words[0][box.end() :]
    return Item(
        block.first,
        block.last,
        *span,
        depth,
        block.markup,
        box[0] if box else "",
        " ".join(without_comments("\n".join(words)).split()),
        tuple(texts),
        ends_list=block.parent is None or block.parent.children[-1] is block,
    )


_TO_THE_BOX = re.compile(r"(?:[ \t]*(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]))+[ \t]+\[(?=[ xX]\])")


def box_at(line: str) -> int | None:
    """Where, in the first line of an item, the inside of its box is."""
    found = _TO_THE_BOX.match(line)
    return found.end() if found else None
