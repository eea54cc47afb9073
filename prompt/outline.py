"""The structure of a Markdown text: its blocks, its sections and its links, with their places in the text.

The only Markdown reader of the project. pulldown-cmark (through pyromark) decides what is what; this module turns its
events into a tree, in time linear in the text and for any depth of nesting.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pyromark

from prompt.blocks import BLANK, CODE, LISTS, Block, Event, Lines, Source, Span, shown_text

__all__ = ["Block", "Lines", "Outline", "Section", "Span", "anchors_of", "plain_text", "shown_text"]

_OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH | pyromark.Options.ENABLE_WIKILINKS
_BLOCKS = {
    "Paragraph": "paragraph",
    "Heading": "heading",
    "BlockQuote": "blockquote",
    "CodeBlock": "code_block",
    "HtmlBlock": "html_block",
    "List": "bullet_list",
    "Item": "list_item",
    "Table": "table",
    "TableHead": "row",
    "TableRow": "row",
    "Rule": "hr",
}
# What is nested deeper is read as one block of HTML. So is the rest of a text that is no text: one in which, after the
# first thousands, blocks have fewer bytes on average.
_DEEPEST, _FEWEST_BYTES, _SPARE_BYTES = 500, 16, 80_000
_IN_QUOTES = frozenset(("blockquote", *LISTS, "list_item"))
_NOT_BLANK = re.compile(f"[^{BLANK}]|\\Z")
_NOT_IN_ANCHOR = re.compile(r"[^\w\- ]")
_LONE_RETURN = re.compile(r"\r(?!\n)")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Section(NamedTuple):
    """What a heading begins. `title` is the heading as a reader sees it, `anchor` the name that links use.

    `start` is where the first line of the heading begins, `body` where the line below the heading does, and `end` where
    the next section begins that is not one in it.
    """

    heading: Block | None
    title: str
    anchor: str
    start: int = 0
    body: int = 0
    end: int = 0

    @property
    def level(self) -> int:
        """The level of the heading; 0 without one."""
        return self.heading.level if self.heading else 0


class Outline:
    """The blocks of a text as a tree below `root`. Link definitions are blocks, so that no line is lost."""

    def __init__(self, text: str) -> None:
        self.text = text
        # The parser reads UTF-8, and does not end indented code at a lone \r.
        parsed = text if text.isascii() else _SURROGATE.sub("\ufffd", text)
        if "\r" in text:
            parsed = _LONE_RETURN.sub("\n", parsed)
        self._source = Source(text, parsed)
        self.root = Block("root", 0, len(text), None, self._source)
        self._links: list[Event] = []
        self._hashes: list[Event] = []
        self._end = self._trimmed = 0
        self.is_dense = False  # whether the last block is all that follows the first thousands
        self._read(pyromark.events_with_range(parsed, options=_OPTIONS, merge_text=True))
        if "]:" in text:
            self._add_definitions()

    def _read(self, pairs: Any) -> None:
        """Add the blocks below the root. Inline events are kept flat: spans are made of them when somebody asks."""
        open_blocks = [self.root]
        block, is_tight, link_end, inline_end, blocks = self.root, False, 0, 0, 0
        for event, place in pairs:
            value: Any = None
            name, value = (event, None) if type(event) is str else event.popitem()
            ends = name == "End"
            if ends or name == "Start":
                name, value = (value, None) if type(value) is str else value.popitem()
            if name in _BLOCKS:
                if is_tight:
                    self._close(open_blocks.pop(), self._source.char(inline_end))
                    is_tight = False
                if not ends:
                    open_blocks.append(self._open(name, place["start"], open_blocks[-1], value))
                    blocks += 1
                    self.is_dense = place["start"] + _SPARE_BYTES < blocks * _FEWEST_BYTES
                    if self.is_dense or len(open_blocks) > _DEEPEST:
                        open_blocks[-1].type = "html_block"
                    if self.is_dense:
                        break
                if ends or name == "Rule":
                    self._close(open_blocks.pop(), self._source.char(place["end"]))
                block = open_blocks[-1]
                continue
            inline_end = place["end"]
            if ends or block.type == "html_block":
                continue
            if block.type == "list_item":  # the parser has no event for the paragraphs of a tight list
                start = self._source.char(place["start"])
                block, is_tight = Block("paragraph", start, start, block, self._source), True
                open_blocks[-1].children.append(block)
                open_blocks.append(block)
            if name == "Link" or name == "Image":
                value, link_end = value["dest_url"], inline_end
                self._links.append((name, value, place["start"], link_end))
            elif name == "Text" and "#" in value and place["start"] >= link_end and block.type not in CODE:
                self._hashes.append((name, value, place["start"], inline_end))
            block.events.append((name, value, place["start"], inline_end))
        while len(open_blocks) > 1:
            self._close(open_blocks.pop(), len(self.text))

    def _open(self, name: str, offset: int, parent: Block, value: Any) -> Block:
        if parent.type == "html_block":
            return parent
        start = self._source.char(offset)
        if self.text[start : start + 1] in BLANK:  # a tab that is half indentation moves the start up
            start = next(_NOT_BLANK.finditer(self.text, start)).start()
        block = Block(_BLOCKS[name], start, start, parent, self._source)
        if name == "Heading":
            block.level = int(value["level"][1])
        elif name == "CodeBlock" and value != "Indented":
            block.type, block.info = "fence", value["Fenced"].strip()
        elif name == "List" and value is not None:
            block.type = "ordered_list"
        parent.children.append(block)
        return block

    def _close(self, block: Block, end: int) -> None:
        """Set where a block ends: before the blank lines, and before the marks of quotes on blank lines."""
        text, start = self.text, block.start
        if block.children and block.type in LISTS:
            end = block.children[-1].end  # the parser may include the definitions below
        elif text[end - 1 : end] in BLANK:
            end = self._before_blanks(end, start)
        while text[end - 1 : end] == ">" and (block.quotes or block.type in _IN_QUOTES):
            line = self.lines.start(self.lines.at(end - 1))
            if line <= start or text[line:end].strip(" \t>"):
                break
            end = self._before_blanks(line, start)
        block.end = end

    def _before_blanks(self, end: int, start: int) -> int:
        """`end` less the white space above it. Remembered, since nested blocks end at one place."""
        if end != self._end or self._trimmed < start:
            trimmed = end
            while trimmed > start and self.text[trimmed - 1] in BLANK:
                trimmed -= 1
            self._end, self._trimmed = end if trimmed > start else -1, trimmed
        return self._trimmed

    def _add_definitions(self) -> None:
        """Link definitions have no event: they are what is between the blocks at top level."""
        blocks, at = [], 0
        for block in (*self.root.children, None):
            start = block.start if block else len(self.text)
            if gap := self.text[at:start].lstrip(BLANK + ">"):
                blocks.append(Block("definition", start - len(gap), start - len(gap), self.root, self._source))
                blocks[-1].end = blocks[-1].start + len(gap.rstrip(BLANK))
            if block:
                blocks.append(block)
                at = block.end
        self.root.children = blocks

    @property
    def lines(self) -> Lines:
        return self._source.lines

    @cached_property
    def links(self) -> list[Span]:
        """All links and images, in order; `value` is the destination."""
        return [self._source.span(event) for event in self._links]

    @cached_property
    def hashes(self) -> list[Span]:
        """The texts with a `#`, outside of links and code."""
        return [self._source.span(event) for event in self._hashes]

    @cached_property
    def headings(self) -> list[Block]:
        """The headings that begin a section: those at top level."""
        return [block for block in self.root.children if block.type == "heading"]

    @cached_property
    def sections(self) -> list[Section]:
        """One for each of `headings`, in order."""
        titles = [heading.shown for heading in self.headings]
        lines, found = self.lines, []
        ends = [len(self.text)] * 7  # of a section at each level, seen from below
        for heading, title, anchor in reversed([*zip(self.headings, titles, anchors_of(titles), strict=True)]):
            start, level = lines.start(lines.at(heading.start)), heading.level
            found.append(Section(heading, title, anchor, start, lines.start(heading.last), ends[level]))
            ends[level:] = [start] * (7 - level)
        return found[::-1]

    def section_at(self, position: int) -> Section:
        """The last section that starts at or before `position`; one without a heading above the first."""
        index = bisect_right(self.sections, position, key=lambda section: section.start)
        return self.sections[index - 1] if index else Section(None, "", "")


def anchors_of(titles: Sequence[str]) -> list[str]:
    """One anchor per title, as on GitHub: lower case, no punctuation, `-` for spaces, `-1`, `-2` for repeats."""
    taken: dict[str, int] = {}
    anchors = []
    for title in titles:
        wanted = anchor = _NOT_IN_ANCHOR.sub("", title.lower()).replace(" ", "-") or "section"
        while anchor in taken:
            taken[wanted] += 1
            anchor = f"{wanted}-{taken[wanted]}"
        taken[anchor] = 0
        anchors.append(anchor)
    return anchors


def plain_text(source: str) -> str:
    """The first text that a reader sees of `source`, on one line."""
    return next((shown for block in Outline(source).root.walk() if (shown := block.shown)), "")
