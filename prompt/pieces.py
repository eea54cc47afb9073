"""A Markdown text as the pieces that a cut may leave out, each with what has to be shown with it.

Depends on the text alone, never on a cap. What introduces something frames it: a heading, a paragraph above a list, the
head of a table. A footnote belongs to what refers to it, a caption to its picture; a formula is one piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise

from prompt.blocks import CODE
from prompt.dates import date_in
from prompt.ends import size_of, stretches_of
from prompt.outline import Block, Outline, Section

# In bytes. A list item with what is nested in it, and a nested table, up to SMALL stay or leave whole. A paragraph
# beyond PROSE introduces nothing and is divided; what is so far into a block beyond LONG is late.
SMALL, PROSE, LONG = 400, 600, 2000

_INTRODUCED = frozenset(("bullet_list", "ordered_list", "table", "fence", "code_block", "blockquote", "math"))
_MARK = r"(?:[-+*]|\d{1,9}[.)])[ \t]+"
# Done are also cancelled and forwarded tasks: `[-]`, `[>]`.
_DONE = re.compile(rf"[ \t]*{_MARK}\[[xX>-]\](?=\s)")
_OPEN = re.compile(rf"^[ \t>]*{_MARK}\[[^xX>\]-]\](?=\s)", re.MULTILINE)
_BOX = re.compile(rf"^[ \t]+{_MARK}\[[^\]]\](?=\s)", re.MULTILINE)
_ATTRIBUTION = re.compile(r"(?:--|[—–―])\s*\S")
_FORMULA_OPENS = re.compile(r"(?:\A|[\r\n])[ \t>]*\$\$[^$]*\Z")
_FORMULA = re.compile(r"\$\$(?:(?!\$\$).)*+\$\$", re.DOTALL)
_FOOTNOTE = re.compile(r"^\[\^([^\[\]\s]{1,80})\]:", re.MULTILINE)
_REFERENCE = re.compile(r"\[\^([^\[\]\s]{1,80})\]")


@dataclass(slots=True, eq=False, repr=False)
class Piece:
    """A range `[start, end)` of the text that is shown or left out as a whole; it is `block`, or a part of it.

    frame: what has to be shown with it. line: up to where white space above it belongs to the text; the rest is an
    uneven margin. top: which of the chapter's entries it is or belongs to; -1 for what only frames others. counts:
    whether it is an entry in a reader's eyes. more: it ends in the middle of `block`. late: far into a long block.
    done: a done task with no open one below it. notes: the footnotes that it refers to. weight: the size of the largest
    piece that is shown with it.
    """

    start: int
    end: int
    line: int
    block: Block
    chapter: Chapter
    frame: Piece | None = None
    top: int = -1
    counts: bool = False
    more: bool = False
    late: bool = False
    done: bool = False
    notes: Sequence[Piece] = ()
    weight: int = 0

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
        return self.block.entries + (self.block.type == "list_item") or 1


@dataclass(slots=True, eq=False, repr=False)
class Chapter:
    """A section of the text: its own pieces in the text's order, the heading first, and the chapters below it.

    heading: None without one, and for one too long to frame anything. frame: what has to be shown with what it holds.
    dates: what each of its own entries carries. is_dated: most of its siblings have a date, as in a log.
    """

    section: Section
    parent: Chapter | None = None
    heading: Piece | None = None
    frame: Piece | None = None
    pinned: bool = False
    blocks: list[Block] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    dates: list[date | None] = field(default_factory=list)
    chapters: list[Chapter] = field(default_factory=list)
    is_dated: bool = False

    def walk(self) -> Iterator[Chapter]:
        """It and all below it, in the text's order. Headings have six levels, so recursion is shallow."""
        yield self
        for chapter in self.chapters:
            yield from chapter.walk()


def chapters_of(outline: Outline, pinned: frozenset[int] = frozenset()) -> list[Chapter]:
    """The chapters in the text's order; the first holds all others. `pinned` are where pinned headings begin."""
    chapter = Chapter(Section(None, "", ""))
    chapters = [chapter]
    sections = iter(outline.sections)
    for block in outline.root.children:
        if block.type != "heading":
            chapter.blocks.append(block)
            continue
        section = next(sections)
        while chapter.parent is not None and chapter.section.level >= section.level:
            chapter = chapter.parent
        is_pinned = chapter.pinned or section.start in pinned
        below = Chapter(section, parent=chapter, frame=chapter.frame, pinned=is_pinned)
        chapter.chapters.append(below)
        chapters.append(below)
        if block.end - block.start > PROSE:
            below.blocks.append(block)
        else:
            below.heading = below.frame = Piece(section.start, block.end, section.start, block, below, chapter.frame)
            below.pieces.append(below.heading)
        chapter = below
    divider = _Divider(outline)
    for each in chapters:
        if each.blocks:
            divider.divide(each)
    notes = _footnotes(outline, chapters) if "[^" in outline.text else {}
    for piece in (piece for each in chapters for piece in each.pieces):
        if notes and piece.block.type not in CODE:
            names = dict.fromkeys(_REFERENCE.findall(outline.text, piece.start, piece.end))
            piece.notes = [note for name in names for note in notes.get(name, ()) if note is not piece]
        piece.weight = piece.end - piece.start
        for one in (*piece.notes, piece.frame) if piece.frame else piece.notes:
            piece.weight = max(piece.weight, one.weight, one.end - one.start)
    return chapters


def _footnotes(outline: Outline, chapters: Sequence[Chapter]) -> dict[str, list[Piece]]:
    """The last piece of each footnote by its name, and that of an indented block below it, which belongs to it."""
    found: dict[str, list[Piece]] = {}
    for chapter in chapters:
        names: list[str] = []
        for block, piece in {piece.block: piece for piece in chapter.pieces}.items():
            if block.type == "code_block":
                for name in names:
                    found[name].append(piece)
                continue
            is_prose = _is_top(block) and block.type in ("paragraph", "definition")
            given = _FOOTNOTE.findall(outline.text, block.start, block.end) if is_prose else []
            names = [name for name in dict.fromkeys(given) if name not in found]
            found |= {name: [piece] for name in names}
    return found


def _is_top(block: Block) -> bool:
    return block.parent is not None and block.parent.type == "root"


# A block to be divided, what frames it, the entry that it belongs to (-1 for one of its own), and whether it counts.
_Waiting = tuple[Block, Piece | None, int, bool]


class _Divider:
    """Divides the blocks of chapters into their pieces, one chapter after the other."""

    def __init__(self, outline: Outline) -> None:
        self._outline, self._text = outline, outline.text
        self._has_formulas = "$$" in outline.text
        self._margins: dict[Block, int] = {}

    def divide(self, chapter: Chapter) -> None:
        self._chapter = chapter
        waiting = self._framed(self._with_whole_formulas(chapter.blocks), chapter.frame, -1, True)
        while waiting:
            block, frame, top, counts = waiting.pop()
            size = self._size(block)
            if block.type.endswith("_list") and (counts or size > SMALL):
                waiting += [(item, frame, top, counts) for item in reversed(block.children)]
            elif block.type == "table" and (counts or size > SMALL) and len(block.children) > 1:
                head = self._frame(block, self._outline.lines.span(block.first, block.first + 2)[1], frame)
                waiting += [(row, head, -1, True) for row in reversed(block.children[1:])]
            elif block.type == "list_item" and (nested := self._nested(block, size)):
                head = self._add(block, frame, top, True, end=nested[0])
                waiting += self._framed(nested[1], head, head.top, True)
            else:
                self._add(block, frame, top, counts)
        chapter.pieces.sort(key=lambda piece: piece.start)

    def _framed(self, blocks: Sequence[Block], frame: Piece | None, top: int, counts: bool) -> list[_Waiting]:
        """Neighbours, the last one first. A paragraph right above a list, code, a table, a quote or a formula frames
        it, and so does an attribution below a quote, or a caption below a picture or a table."""
        waiting: list[_Waiting] = []
        around = frame
        for above, block, below in zip((None, *blocks), blocks, (*blocks[1:], None), strict=False):
            if block.type == "paragraph" and self._size(block) <= PROSE:
                if above is not None and _completes(above, block):
                    held, of_held, _, _ = waiting.pop()
                    waiting.append((held, self._frame(block, block.end, of_held), top, counts))
                    continue
                if below is not None and below.type in _INTRODUCED:
                    around = self._frame(block, block.end, around)
                    continue
            waiting.append((block, around, top, counts))
            around = frame
        return waiting[::-1]

    def _with_whole_formulas(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """`blocks` with one block of type math for each formula between `$$` marks, whatever the parser made of it."""
        if not self._has_formulas:
            return blocks
        found: list[Block] = []
        opened = -1
        for block in blocks:
            found.append(block)
            source = "" if block.type in CODE else self._text[block.start : block.end]
            if source.count("$$") % 2:
                if opened >= 0:
                    found[opened:] = [found[opened].through(block)]
                    opened = -1
                elif _FORMULA_OPENS.search(source):
                    opened = len(found) - 1
            elif block.type == "paragraph" and _FORMULA.fullmatch(source):
                found[-1] = block.through(block)
        return found

    def _nested(self, item: Block, size: int) -> tuple[int, Sequence[Block]] | None:
        """Where an item that is to be divided ends for itself, above the first list in it, and the blocks below."""
        if size <= SMALL and not _BOX.search(self._text, item.start, item.end):
            return None
        blocks = self._with_whole_formulas(item.children)
        lists = (number for number, block in enumerate(blocks) if block.type.endswith("_list"))
        own = next(lists, 1 if size > LONG and len(blocks) > 1 else 0)
        return (blocks[own - 1].end, blocks[own:]) if own else None

    def _add(self, block: Block, frame: Piece | None, top: int, counts: bool, end: int = 0) -> Piece:
        """Add what `block` is up to `end`, in stretches if it is long. The first of them."""
        only = block.children[0] if block.type == "list_item" and len(block.children) == 1 else block
        size = self._size(block)
        is_long = size > (LONG if only is not block else PROSE) and only.type in ("paragraph", "heading") and not end
        ends = stretches_of(self._outline, only) if is_long else []
        first = piece = self._frame(block, (*ends, end or block.end)[0], frame)
        if top < 0:
            line = self._text[block.start : block.start + 300].partition("\n")[0]
            top = len(self._chapter.dates)
            self._chapter.dates.append(date_in(line) if block.type in ("list_item", "paragraph", "row") else None)
        piece.top, piece.block, piece.more = top, only, bool(ends)
        piece.counts = counts and block.type not in ("hr", "definition")
        piece.done = bool(_DONE.match(self._text, piece.start)) and not _OPEN.search(self._text, piece.start, block.end)
        for at, until in pairwise([*ends, block.end]):
            late = size > LONG and at - block.start > PROSE
            piece = Piece(at, until, at, only, self._chapter, piece, top, False, until < block.end, late, piece.done)
            self._chapter.pieces.append(piece)
        return first

    def _frame(self, block: Block, end: int, frame: Piece | None) -> Piece:
        line = self._outline.lines.start(block.first)
        margin = self._margin(block, line)
        is_whole_line = _is_top(block) and block.type not in CODE
        piece = Piece(block.start if is_whole_line else line + margin, end, 0, block, self._chapter, frame)
        piece.line = piece.start - margin
        self._chapter.pieces.append(piece)
        return piece

    def _margin(self, block: Block, line: int) -> int:
        """How much further in an item is than the others of its list: dropped, or it could read as nested."""
        if block.type != "list_item" or block.parent is None or self._text[line : block.start].strip():
            return 0
        if block.parent not in self._margins:
            lines, items = self._outline.lines, block.parent.children
            self._margins[block.parent] = min(item.start - lines.start(item.first) for item in items)
        return block.start - line - self._margins[block.parent]

    def _size(self, block: Block) -> int:
        characters = block.end - block.start
        return characters if characters > LONG else size_of(self._text[block.start : block.end])


def _completes(above: Block, block: Block) -> bool:
    """Whether a paragraph is the attribution of the quote, or the caption of the picture or table, above it."""
    if above.type == "blockquote":
        return bool(_ATTRIBUTION.match(block.shown))
    is_picture = above.type == "table" or (above.type == "paragraph" and _is_all(above, "image"))
    return is_picture and _is_all(block, "emphasis")


def _is_all(block: Block, kind: str) -> bool:
    span = next(block.first_spans(block.start + 1), None)
    return span is not None and (span.kind, span.end) == (kind, block.end)
