"""What stands where in a file: its sections, their blocks, and the entries of their lists. Pure.

A block at top level, or an item of a list there, reads the same alone as in the file. That is what lets an edit look
into the few around its place, and only see of the others that they begin where they did.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from notebook_sync.files.edit_lines import Stretch, lines_of
from notebook_sync.files.edit_shape import Shape, blocks_with_depth, shape_of_units, units_of
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


_EOL = re.compile(r"\r\n?|\n")


class Page:
    """A file. `head` is its byte order mark and frontmatter, `content` the text below; `line` is that of the file, from
    1, in which this begins."""

    def __init__(self, path: str, head: str, outline: Outline) -> None:
        self.path, self.head, self.outline = path, head, outline
        self.content = outline.text
        self.line = head.count("\n") + 1

    @property
    def text(self) -> str:
        return self.head + self.content

    @cached_property
    def lines(self) -> Sequence[str]:
        """Those of the content."""
        return lines_of(self.content)

    @cached_property
    def eol(self) -> str:
        """How the first line ends."""
        end = _EOL.search(self.text)
        return end[0] if end else "\n"

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What stands above the first heading, and below each; sections have the anchors that `parse` gives them."""
        sections = self.outline.sections
        starts = [*(section.start for section in sections), len(self.content)]
        parts = [Part(None, 0, starts[0], self.line)]
        for section, end in zip(sections, starts[1:], strict=True):
            parts.append(Part(section, section.start, end, self.line + self.outline.lines.at(section.start)))
        return tuple(parts)

    def section(self, number: int) -> range:
        """The numbers of the parts that the section of a part is made of: its own and its child headings'."""
        if number == 0:
            return range(1)
        end = number + 1
        while end < len(self.parts) and self.parts[end].level > self.parts[number].level:
            end += 1
        return range(number, end)

    def lines_in(self, number: int) -> tuple[int, int]:
        """From which up to which of `lines` a part stands."""
        last = number + 1 == len(self.parts)
        return self.parts[number].line - self.line, len(self.lines) if last else self.parts[number + 1].line - self.line

    def blocks_in(self, number: int) -> list[Block]:
        """Those of a part at top level, without link definitions, which no edit looks at."""
        blocks = self.outline.root.children
        low, high = (bisect_left(blocks, line, key=lambda block: block.first) for line in self.lines_in(number))
        return [block for block in blocks[low:high] if block.type != "definition"]

    def block_at(self, line: int) -> Block:
        """That at top level which a line belongs to."""
        blocks = self.outline.root.children
        return blocks[bisect_right(blocks, line, key=lambda block: block.first) - 1]

    def around(self, first: int, after: int) -> Structure:
        """The lines from `first` up to `after`, in whole units, and with one more unit on either side."""
        lines, units = self.outline.lines, self.outline.units
        low = self.outline.first_unit(lines.start(first) + 1) - 2
        below = lines.start(after)
        high = self.outline.first_unit(below) + 1
        begin = lines.at(units[low][1]) if low > 0 else 0
        return Structure(self, begin, lines.at(units[high][1]) if high < len(units) else len(lines), below)


def page_of(text: str, path: str) -> Page:
    """The page that `text` is."""
    front = read_frontmatter(text)
    return Page(path, front.head, Outline(front.content))


class Structure:
    """The lines of a page from `first` up to `after`, `stretch` for those who change them, and the `units` that begin
    in them, at these `places`. What an edit leaves as it is begins at the offset `below`."""

    def __init__(self, page: Page, first: int, after: int, below: int = 0) -> None:
        self.first, self.after = first, after
        outline = page.outline
        start, end = map(outline.lines.start, (first, after))
        self.places = outline.units[outline.first_unit(start) : outline.first_unit(end)]
        self.units = units_of(page.content, self.places, end)
        self.below = below or end
        self.stretch = Stretch(page.lines[first:after], page.eol, after == len(page.lines))
        self.lines = self.stretch.lines

    @cached_property
    def outline(self) -> Outline:
        return Outline("".join(self.lines))

    @cached_property
    def shape(self) -> Shape:
        return shape_of_units(self.units)


@dataclass(frozen=True, slots=True)
class Item:
    """A list item, with its continuation lines and children: its lines in the structure, and its forms in the shape.

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
