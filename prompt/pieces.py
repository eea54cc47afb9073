"""A Markdown text as the pieces that a cut may leave out: entries, rows, paragraphs, and the ends of long ones.

Each piece knows its frame, the piece that introduces it (a heading, the sentence above a list, a step above its
sub-steps): a piece is never shown without its frame. Nothing here depends on a cap. A chapter is divided into pieces
when somebody asks for them: a cut of a large file asks for those of a few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from itertools import pairwise

from prompt.dates import date_in
from prompt.ends import size_of, stretches_of
from prompt.outline import Block, Outline, Section

# In bytes. A list item with what is nested in it, a quote, code and a nested table up to SMALL stay or leave whole. A
# paragraph beyond PROSE introduces nothing and is divided; what stands so far into a block beyond LONG is late.
SMALL = 400
PROSE = 600
LONG = 2000
# So many entries of a list or a table stay or leave one by one from its beginning, and as many from its end.
MANY = 5000

_INTRODUCED = frozenset(("bullet_list", "ordered_list", "table", "fence", "code_block", "blockquote"))
_NO_ENTRIES = frozenset(("hr", "definition"))
_KEEP_MARGIN = frozenset(("fence", "code_block"))
_DONE = re.compile(r"[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]+\[[xX]\](?=\s)")
_OPEN = re.compile(r"^[ \t>]*(?:[-+*]|\d{1,9}[.)])[ \t]+\[ \](?=\s)", re.MULTILINE)
_BOX = re.compile(r"^[ \t]+(?:[-+*]|\d{1,9}[.)])[ \t]+\[[ xX]\](?=\s)", re.MULTILINE)
_ATTRIBUTION = re.compile(r"(?:--|[—–―])\s*\S")


@dataclass(slots=True, eq=False, repr=False)
class Piece:
    """A stretch `[start, end)` of the text that is shown or left out as a whole; it is, or is a stretch of, `block`.

    frame: what has to be shown with it. line: up to where white space above it belongs to the text; the rest is an
    uneven margin. top: which of the chapter's entries it is or belongs to; -1 for what only frames others. counts: how
    many entries it is in a reader's eyes, those nested in it aside. more: it ends in the middle of `block`. late: far
    into a long block. done: a ticked task with no open one below it.
    """

    start: int
    end: int
    line: int
    block: Block
    chapter: Chapter
    frame: Piece | None = None
    top: int = -1
    counts: int = 0
    more: bool = False
    late: bool = False
    done: bool = False

    @property
    def item(self) -> Block | None:
        """The list item that it is or begins; None for other pieces."""
        block = self.block if self.block.type == "list_item" else self.block.parent
        return block if block and block.type == "list_item" and self.counts else None

    @property
    def entries(self) -> int:
        """How many entries it is in a reader's eyes: those nested in it are entries, too."""
        if not self.counts or self.end != self.block.end:
            return self.counts
        nested = sum(block.type == "list_item" or _is_row(block) for block in self.block.walk())
        return nested + (self.block.type == "list_item") or 1


@dataclass(eq=False, repr=False)
class Chapter:
    """A section of the text, up to `end`: its heading, its own blocks, and the chapters below it.

    frame: what has to be shown with what it holds; its heading, but for one too long. is_dated: most of its siblings
    carry a date, as in a log.
    """

    outline: Outline
    section: Section
    end: int = 0
    parent: Chapter | None = None
    heading: Piece | None = None
    frame: Piece | None = None
    pinned: bool = False
    blocks: list[Block] = field(default_factory=list)
    chapters: list[Chapter] = field(default_factory=list)
    is_dated: bool = False

    @cached_property
    def _read(self) -> PieceReader:
        return PieceReader(self)

    @property
    def pieces(self) -> list[Piece]:
        """Its own pieces, in the text's order."""
        return self._read.pieces

    @property
    def dates(self) -> list[date | None]:
        """What each of its own entries carries."""
        return self._read.dates

    @property
    def all_pieces(self) -> list[Piece]:
        """The heading and its own pieces."""
        return [self.heading, *self.pieces] if self.heading else self.pieces

    @property
    def text(self) -> str:
        """Its source, without the white space that it ends with."""
        return self.outline.text[self.section.start : self.end].rstrip()

    @property
    def entries(self) -> int:
        """How many entries it has, found without its pieces: one for a block without items and rows."""
        count = 0
        for index, block in enumerate(self.blocks, 1):
            below = self.blocks[index].type if index < len(self.blocks) else ""
            introduces = block.type == "paragraph" and below in _INTRODUCED
            count += block.entries or not (introduces or block.type in _NO_ENTRIES)
        return count


# A block that waits, what frames it, the entry that it belongs to (-1 for one of its own), and whether it counts.
_Waiting = tuple[Block, Piece | None, int, bool]


def chapters_of(outline: Outline, pinned: frozenset[int] = frozenset()) -> Chapter:
    """The chapter that all others are below. `pinned` are the characters at which pinned headings begin."""
    root = chapter = Chapter(outline, Section(None, "", ""))
    sections = iter(outline.sections)
    for block in outline.root.children:
        if block.type == "heading":
            chapter.end = block.start
            chapter = _opened(chapter, next(sections), block, pinned)
        else:
            chapter.blocks.append(block)
    chapter.end = len(outline.text)
    return root


def _opened(last: Chapter, section: Section, heading: Block, pinned: frozenset[int]) -> Chapter:
    """The chapter that a heading begins, below the one that it belongs to."""
    parent = last
    while parent.parent is not None and parent.section.level >= section.level:
        parent = parent.parent
    start = section.start
    is_pinned = parent.pinned or start in pinned
    chapter = Chapter(last.outline, section, parent=parent, frame=parent.frame, pinned=is_pinned)
    parent.chapters.append(chapter)
    if _size(last.outline, heading) > PROSE:
        chapter.blocks.append(heading)
    else:
        chapter.frame = chapter.heading = Piece(start, heading.end, start, heading, chapter, parent.frame)
    return chapter


class PieceReader:
    """Divides the blocks of a chapter into `pieces`; `dates` are what its entries carry."""

    def __init__(self, chapter: Chapter) -> None:
        self._chapter, self._outline = chapter, chapter.outline
        self._margins: dict[Block, int] = {}
        self.pieces: list[Piece] = []
        self.dates: list[date | None] = []
        waiting = self._framed(chapter.blocks, chapter.frame, -1, True)
        while waiting:
            block, frame, top, counts = waiting.pop()
            size = _size(self._outline, block)
            if block.type in ("bullet_list", "ordered_list") and (counts or size > SMALL):
                waiting += self._entries(block.children, frame, top, counts)
            elif block.type == "table" and (counts or size > SMALL) and len(block.children) > 1:
                head = self._frame(block, self._outline.lines.span(block.first, block.first + 2)[1], frame)
                waiting += self._entries(block.children[1:], head, -1, True)
            elif block.type == "blockquote" and size > SMALL and _is_divisible(block):
                top = self._next_top(block) if top < 0 else top
                first, *rest = block.children
                waiting += [*self._framed(rest, frame, top, False), (first, frame, top, True)]
            elif block.type == "list_item" and (nested := self._nested(block, size)):
                head = self._add(block, frame, top, True, end=block.children[nested - 1].end)
                waiting += self._framed(block.children[nested:], head, head.top, True)
            else:
                self._add(block, frame, top, counts)
        self.pieces.sort(key=lambda piece: piece.start)

    def _entries(self, entries: Sequence[Block], frame: Piece | None, top: int, counts: bool) -> list[_Waiting]:
        """The entries of a list or a table, the last one first; what is in the middle of very many is one piece."""
        if len(entries) > 2 * MANY:
            middle = self._piece(entries[MANY], entries[-MANY - 1].end, frame, top)
            middle.counts, middle.late, middle.done = counts * (len(entries) - 2 * MANY), True, False
            entries = [*entries[:MANY], *entries[-MANY:]]
        return [(entry, frame, top, counts) for entry in reversed(entries)]

    def _framed(self, blocks: Sequence[Block], frame: Piece | None, top: int, counts: bool) -> list[_Waiting]:
        """Neighbours, the last one first. A paragraph right above a list, code, a table or a quote frames it, and so
        does an attribution below a quote."""
        waiting: list[_Waiting] = []
        around = frame
        for index, block in enumerate(blocks):
            below = blocks[index + 1] if index + 1 < len(blocks) else None
            above = blocks[index - 1] if index else None
            if block.type == "paragraph" and _size(self._outline, block) <= PROSE:
                if above is not None and above.type == "blockquote" and _ATTRIBUTION.match(block.shown):
                    quote, of_quote, _, _ = waiting.pop()
                    waiting.append((quote, self._frame(block, block.end, of_quote), top, counts))
                    continue
                if below is not None and below.type in _INTRODUCED:
                    around = self._frame(block, block.end, around)
                    continue
            waiting.append((block, around, top, counts))
            around = frame
        return waiting[::-1]

    def _nested(self, item: Block, size: int) -> int:
        """How many of an item's blocks stand above the first list in it, if the item is to be divided there; else 0."""
        if size <= SMALL and not _BOX.search(self._outline.text, item.start, item.end):
            return 0
        lists = (n for n, child in enumerate(item.children) if child.type in ("bullet_list", "ordered_list"))
        return next(lists, 1 if size > LONG and len(item.children) > 1 else 0)

    def _add(self, block: Block, frame: Piece | None, top: int, counts: bool, end: int = 0) -> Piece:
        """Add what `block` is up to `end`, in stretches where it is long. The first of them."""
        only = block.children[0] if block.type == "list_item" and len(block.children) == 1 else block
        size = _size(self._outline, block)
        is_long = size > (SMALL if block.type in ("fence", "code_block") else LONG if only is not block else PROSE)
        is_prose = only.type in ("paragraph", "heading", "fence", "code_block")
        ends = stretches_of(self._outline, only) if is_long and is_prose and not end else []
        first = piece = self._piece(block, (*ends, end or block.end)[0], frame, top)
        piece.block, piece.counts, piece.more = only, counts and block.type not in _NO_ENTRIES, bool(ends)
        for at, until in pairwise([*ends, block.end]):
            late = size > LONG and at - block.start > PROSE
            piece = Piece(at, until, at, only, self._chapter, piece, piece.top, done=piece.done)
            piece.late, piece.more = late, until < block.end
            self.pieces.append(piece)
        return first

    def _piece(self, block: Block, end: int, frame: Piece | None, top: int) -> Piece:
        piece = self._frame(block, end, frame)
        piece.top = self._next_top(block) if top < 0 else top
        text = self._outline.text
        piece.done = bool(_DONE.match(text, piece.start)) and not _OPEN.search(text, piece.start, block.end)
        return piece

    def _frame(self, block: Block, end: int, frame: Piece | None) -> Piece:
        line = self._outline.lines.start(block.first)
        margin = self._margin(block, line)
        is_top = block.parent is not None and block.parent.type == "root" and block.type not in _KEEP_MARGIN
        start = block.start if is_top else line + margin
        piece = Piece(start, end, start - margin, block, self._chapter, frame)
        self.pieces.append(piece)
        return piece

    def _margin(self, block: Block, line: int) -> int:
        """How much further in an item stands than the others of its list: dropped, or it could read as nested."""
        if block.type != "list_item" or block.parent is None or self._outline.text[line : block.start].strip():
            return 0
        if block.parent not in self._margins:
            lines, items = self._outline.lines, block.parent.children
            ends = (*items[:MANY], *items[-MANY:])
            self._margins[block.parent] = min(item.start - lines.start(item.first) for item in ends)
        return block.start - line - self._margins[block.parent]

    def _next_top(self, block: Block) -> int:
        line = self._outline.text[block.start : block.start + 300].partition("\n")[0]
        self.dates.append(date_in(line) if block.type in ("list_item", "paragraph", "row") else None)
        return len(self.dates) - 1


def _size(outline: Outline, block: Block) -> int:
    characters = block.end - block.start
    return characters if characters > LONG else size_of(outline.text[block.start : block.end])


def _is_row(block: Block) -> bool:
    """Whether a block is a row of a table, below its head."""
    return block.type == "row" and block.parent is not None and block is not block.parent.children[0]


def _is_divisible(quote: Block) -> bool:
    """Whether a quote may lose some of its blocks; indented code could read as part of the one above it."""
    return len(quote.children) > 1 and all(child.type != "code_block" for child in quote.children)


def all_chapters(root: Chapter) -> Iterator[Chapter]:
    """`root` and all below it, in the text's order. Headings have six levels, so recursion is shallow."""
    yield root
    for chapter in root.chapters:
        yield from all_chapters(chapter)
