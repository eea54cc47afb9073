"""The structure-exact cut: Markdown in, Markdown of at most so many tokens out.

It never breaks a table, a list or a character, and never leaves out a thing without saying so. Which pieces stay
depends on the text alone (`prompt.order`); a cap only says how many of them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from prompt.budget import Count
from prompt.ends import MORE, omission_line, open_end
from prompt.order import staying_groups
from prompt.outline import Block, Outline
from prompt.pieces import Chapter, Piece, chapters_of
from prompt.values import Omission

# A page whose estimate is over the cap by more tokens than this is not laid out.
SLACK = 4
# Sections of which it is said what they lack; the others are said in one.
MOST_OMISSIONS = 1000
_SPACE = re.compile(r"\s*")


class Trimmed(NamedTuple):
    """What is left of a text. `cut` are the ranges `[start, end)` of it that are not shown, in order."""

    text: str
    tokens: int
    omitted: tuple[Omission, ...] = ()
    cut: tuple[tuple[int, int], ...] = ()


def trim(text: str, cap: int, count: Count, *, path: str = "", pinned: frozenset[int] = frozenset()) -> Trimmed:
    """`text` in at most `cap` tokens as `count` counts them; unchanged if it fits.

    Each section that lacks some of its own pieces ends in a mark, and the text in one line with the call that reads
    `path`; if there is only one such section, its line has the call. `pinned` are the characters at which pinned
    headings begin.
    """
    tokens = count(text)
    if tokens <= cap:
        return Trimmed(text, tokens)
    return Cutting(text, tokens, count, path=path, pinned=pinned).at(cap)


class Cutting:
    """A text that is to be cut, to one cap or to several: what does not depend on the cap is found out once."""

    def __init__(
        self, text: str, tokens: int, count: Count, *, path: str = "", pinned: frozenset[int] = frozenset()
    ) -> None:
        """`tokens` is what `count` says of `text`."""
        self._text, self._tokens, self._count, self._path = text, tokens, count, path
        self._outline = Outline(text)
        self._chapters = chapters_of(self._outline, pinned)
        # Groups of pieces in the order in which they stay, and for pages with 1, 2, … of them the estimated tokens
        # without and with the omission lines.
        self._growing = self._grow()
        self._groups: list[list[Piece]] = []
        self._sizes: list[tuple[int, int]] = []
        self._lock = threading.Lock()  # groups are found as far as they are needed, by the thread that needs them first

    def at(self, cap: int) -> Trimmed:
        """As `trim`. A cap below 0 leaves nothing."""
        cap = max(cap, 0)
        if self._tokens <= cap:
            return Trimmed(self._text, self._tokens)
        with self._lock:
            for page in self._pages(cap):
                tokens = self._count(page.text)
                if tokens <= cap:
                    return Trimmed(page.text, tokens, tuple(self._omitted(page)), tuple(page.cut))
        line = next((line for line in (omission_line(0), f"[{MORE}]") if self._count(line) <= cap), "")
        return Trimmed(line, self._count(line), (Omission("", "", 0, self._tokens),), ((0, len(self._text)),))

    def _omitted(self, page: _Page) -> Iterator[Omission]:
        for chapter, entries, text in page.lacking[:MOST_OMISSIONS]:
            yield Omission(chapter.section.anchor, chapter.section.title, entries, self._count(text))
        if rest := page.lacking[MOST_OMISSIONS:]:
            tokens = self._count("\n".join(text for *_, text in rest))
            yield Omission(MORE, MORE, sum(entries for _, entries, _ in rest), tokens)

    def _pages(self, cap: int) -> Iterator[_Page]:
        """Pages with less and less on them. One that is too large for a cap is too large for each smaller one, too."""
        while (not self._sizes or self._sizes[-1][0] <= cap + SLACK) and (grown := next(self._growing, None)):
            self._groups.append(grown[0])
            self._sizes.append(grown[1])
        for number in range(len(self._sizes), -1, -1):
            if not number or self._sizes[number - 1][1] <= cap + SLACK:
                yield _Page(self._outline, self._chapters, set(chain.from_iterable(self._groups[:number])), self._path)

    def _grow(self) -> Iterator[tuple[list[Piece], tuple[int, int]]]:
        """Each group, and the tokens of all so far."""
        mark, call = (self._count(f"{line}\n\n") for line in (omission_line(12), omission_line(12, self._path)))
        lacking = {one: len(one.pieces) for one in self._chapters if one.heading is None}
        missing = sum(len(one.pieces) for one in self._chapters)
        tokens = 0
        for group in staying_groups(self._chapters):
            missing -= len(group)
            for one in group:
                space = _SPACE.match(self._text, one.end)
                tokens += self._count(self._text[one.line : one.end] + (space[0] if space else ""))
                lacking[one.chapter] = lacking.get(one.chapter, len(one.chapter.pieces)) - 1
            marks = sum(map(bool, lacking.values()))
            lines = call + (marks * mark if marks > 1 else 0) if missing else 0
            yield group, (tokens, tokens + lines)


class _Page:
    """A text with only some of its pieces: one below the other, with a line or a mark where a section lacks something.

    `cut` are the ranges `[start, end)` that are not in `text`, in order. `lacking` are the chapters that lack
    something, with how many entries, and the text that they lack.
    """

    def __init__(self, outline: Outline, chapters: list[Chapter], shown: set[Piece], path: str) -> None:
        self._outline, self._source, self._shown = outline, outline.text, shown
        self._newline = "\r\n" if "\r\n" in self._source else "\n"
        self._parts: list[str] = []
        self._last: Piece | None = None
        self._end = 0
        self._has_gap = False
        self._moved_lists: set[Block | None] = set()
        self.cut: list[tuple[int, int]] = []
        self.lacking: list[tuple[Chapter, int, str]] = []
        for one in chapters:
            if missing := [piece for piece in one.pieces if piece not in shown]:
                text = "\n".join(self._source[piece.start : piece.end] for piece in missing)
                self.lacking.append((one, sum(piece.entries for piece in missing), text))
        self._marks = {one: omission_line(entries) for one, entries, _ in self.lacking}
        seen = [one for one in chapters if self._sees(one)]
        partial = [one for one in seen if one in self._marks or not all(map(self._sees, one.chapters))]
        total = sum(entries for _, entries, _ in self.lacking)
        if len(partial) == 1:
            self._marks = {partial[0]: omission_line(total, path, partial[0].section.anchor)}
        self._lay(chapters[0])
        if len(partial) > 1:
            self._add_line(omission_line(total, path))
        self._end_block()
        if self._has_gap:
            self.cut.append((self._end, len(self._source)))
        ending = self._newline if self._parts and self._source.endswith(("\n", "\r")) else ""
        self.text = "".join(self._parts) + ending

    def _sees(self, chapter: Chapter) -> bool:
        return chapter.heading is None or chapter.heading in self._shown

    def _lay(self, chapter: Chapter) -> None:
        for piece in chapter.pieces:
            if piece in self._shown:
                self._add(piece)
            else:
                self._has_gap = True
        mark, lacks_own = self._marks.get(chapter), not self._shown.issuperset(chapter.pieces)
        if mark and lacks_own:
            self._add_line(mark)
        for one in chapter.chapters:
            if self._sees(one):
                self._lay(one)
            else:
                self._has_gap = True
        if mark and not lacks_own:
            self._add_line(mark)

    def _add(self, piece: Piece) -> None:
        if self._has_gap:
            self.cut.append((self._end, piece.line))
        if self._has_gap or not self._last:
            self._end_block()
            self._parts.append(self._space_above(piece) if self._parts else "")
        else:
            self._parts.append(self._source[self._end : piece.line])
        items = piece.item.parent if piece.item else None
        if self._has_gap and piece.line < piece.start:
            self._moved_lists.add(items)
        self._parts.append(self._source[piece.start if items in self._moved_lists else piece.line : piece.end])
        self._last, self._end, self._has_gap = piece, piece.end, False

    def _add_line(self, line: str) -> None:
        self._end_block()
        if self._last and self._last.end == self._last.block.end:
            self._parts.append(open_end(self._outline, self._last.block).replace("\n", self._newline))
        self._parts += [self._newline * 2 if self._parts else "", line]
        self._last = None

    def _end_block(self) -> None:
        if self._last and self._last.more:
            self._parts.append(MORE)

    def _space_above(self, piece: Piece) -> str:
        """What separates a piece from the last one, which it does not follow in the source."""
        if self._last and _would_join(self._last, piece):
            return f"{self._newline}{self._newline}[{MORE}]{self._newline}{self._newline}"
        return self._newline * (1 if self._last and self._is_tight(self._last, piece) else 2)

    def _is_tight(self, last: Piece, following: Piece) -> bool:
        """Whether a piece is right below another, as rows are, and items of one list without blank lines."""
        item = following.item
        if item is None or item.parent is None:
            return following.block.type == "row"
        if item.parent.start <= last.block.start:  # of the same list
            return not self._outline.lines.is_blank(item.first - 1)
        # A list that begins with another number would go on with the paragraph above it.
        may_follow = last is following.frame and (not item.markup[0].isdigit() or item.markup[:-1] == "1")
        return may_follow and not self._outline.lines.is_blank(item.parent.first - 1)


def _would_join(last: Piece, following: Piece) -> bool:
    """Whether a piece would become part of what is above it: code by its margin, a list if one like it is there."""
    own = following.item.parent if following.item else None
    if following.block.type == "code_block" and not own:
        return True
    above: Block | None = last.block
    while own and above and above.parent is not own.parent:
        above = above.parent
    return own is not None and above is not None and above is not own and above.type == own.type
