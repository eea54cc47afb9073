"""What stands where in a file: its sections, their blocks, and the entries of their lists. Pure.

A heading at top level ends whatever stands above it, so the part of a file from one heading to the next reads the
same alone as in the file. That is what lets an edit read one part and leave the others unread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notebook_sync.files.commonmark import block_tokens
from notebook_sync.files.edit_lines import is_blank, lines_of
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.inline import without_comments
from notebook_sync.files.outline import Heading, outline
from prompt.anchors import anchors_of

if TYPE_CHECKING:
    from markdown_it.token import Token


@dataclass(frozen=True, slots=True)
class Part:
    """A heading and what stands below it up to the next heading of any level; or, without one, what is above all.

    `start` and `end` are offsets in the page's content, `line` is that of its first line in the file, from 1.
    """

    heading: Heading | None
    anchor: str
    start: int
    end: int
    line: int

    @property
    def title(self) -> str:
        return self.heading.text if self.heading else ""

    @property
    def level(self) -> int:
        """1 to 6; 0 for what is above all headings."""
        return self.heading.level if self.heading else 0


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
    headings = outline(front.content).headings
    anchors = anchors_of([heading.text for heading in headings])
    starts = [*(heading.start for heading in headings), len(front.content)]
    above = front.head.count("\n")
    parts = [Part(None, "", 0, starts[0], above + 1)]
    for index, (heading, anchor) in enumerate(zip(headings, anchors, strict=True)):
        parts.append(Part(heading, anchor, starts[index], starts[index + 1], above + heading.line))
    return Page(path, front.head, front.content, tuple(parts))


@dataclass(frozen=True, slots=True)
class Block:
    """A top-level block: its lines in the part, without blank ones at its end, and its tokens."""

    kind: str
    first: int
    after: int
    opens: int
    closes: int


@dataclass(frozen=True, slots=True)
class Item:
    """A list item, with its continuation lines and children: its lines in the part, and its tokens.

    `mark` is as written (`-`, `2.`), `box` is `[ ]`, `[x]` or "", `source` the rest of its own text on one line,
    without comments. `level` is 1 in a list at top level. `ends_list`: no item of the same list follows.
    """

    first: int
    after: int
    opens: int
    closes: int
    level: int
    mark: str
    box: str
    source: str
    ends_list: bool

    @property
    def shown(self) -> str:
        return " ".join(filter(None, (self.mark, self.box, self.source)))


@dataclass(frozen=True, slots=True)
class Structure:
    """What stands in a part."""

    lines: Sequence[str]
    tokens: Sequence[Token]
    blocks: tuple[Block, ...]


def structure_of(text: str) -> Structure:
    """The structure of a part's text."""
    lines = lines_of(text)
    tokens = block_tokens(text)
    blocks: list[Block] = []
    opened = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0:
            opened = index
        if token.level == 0 and token.nesting <= 0:
            blocks.append(Block(tokens[opened].type, *_span(tokens[opened], lines), opened, index + 1))
    return Structure(lines, tokens, tuple(blocks))


def items_of(structure: Structure) -> list[Item]:
    """The items of all lists that are in no quote, nested ones too, in order."""
    lines, tokens = structure.lines, structure.tokens
    items: list[Item] = []
    words: dict[int, list[str]] = {}
    open_items: list[int] = []
    quotes = 0
    for index, token in enumerate(tokens):
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type == "inline" and open_items:
            words[open_items[-1]].append(token.content)
        elif token.type == "list_item_open" and not quotes:
            open_items.append(index)
            words[index] = []
        elif token.type == "list_item_close" and not quotes:
            start = open_items.pop()
            ends_list = tokens[index + 1].type != "list_item_open"
            items.append(_item(tokens, lines, (start, index + 1), words.pop(start), ends_list))
    return sorted(items, key=lambda item: item.opens)


def _span(token: Token, lines: Sequence[str]) -> tuple[int, int]:
    first, after = token.map or (0, 0)
    after = min(after, len(lines))
    while after > first + 1 and is_blank(lines[after - 1]):
        after -= 1
    return first, after


_BOX = re.compile(r"\[[ xX]\](?=\s|\Z)")


def _item(
    tokens: Sequence[Token], lines: Sequence[str], span: tuple[int, int], words: list[str], ends_list: bool
) -> Item:
    opens, closes = span
    token = tokens[opens]
    first, after = _span(token, lines)
    box = _BOX.match(words[0]) if words and tokens[opens + 1].type == "paragraph_open" else None
    if box and box_at(lines[first]) is None:
        box = None
    if box:
        words = [words[0][box.end() :], *words[1:]]
    source = " ".join(without_comments("\n".join(words)).split())
    return Item(
        first, after, opens, closes, token.level, token.info + token.markup, box[0] if box else "", source, ends_list
    )


_TO_THE_BOX = re.compile(r"(?:[ \t]*(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]))+[ \t]+\[(?=[ xX]\])")


def box_at(line: str) -> int | None:
    """Where, in the first line of an item, the inside of its box is."""
    found = _TO_THE_BOX.match(line)
    return found.end() if found else None
