"""The structure-exact cut: Markdown in, Markdown of at most so many tokens out.

It never breaks a table, a list or a character, and never leaves out a thing without saying so. The order in which
pieces stay depends on the text alone, never on a cap, so that a larger cap shows all that a smaller one does:

1. What is pinned, before all else.
2. Open tasks and rules before done ones.
3. Each section's first entry, then its next eight, then the rest, from the top of the file down.
4. In a dated log the newest first: where most entries, or most subheadings, of a section have a date.
5. A very long block loses its end early, and what frames something stays as long as any of it does.
6. A piece larger than all that is shown before it waits for smaller ones, so that no table empties the rest.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from datetime import date
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from prompt.budget import Count
from prompt.dates import date_in
from prompt.ends import MORE, omission_line, open_end
from prompt.outline import Block, Outline
from prompt.pieces import SMALL, Chapter, Piece, chapters_of
from prompt.values import Omission

# A page whose estimate is over the cap by more tokens than this is not laid out.
SLACK = 4
# Sections of which it is said what they lack; the others are said in one.
MOST_OMISSIONS = 1000
# How many entries each section keeps before any keeps more.
FAIR_SHARE = 9
# In characters: a pinned piece up to this size waits for nothing.
PINNED = 8000
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


def staying_groups(chapters: Sequence[Chapter]) -> Iterator[list[Piece]]:
    """Groups of pieces in the order in which they are kept, each with what has to be shown with it."""
    kept: set[Piece] = set()
    waiting: list[tuple[int, int, Piece]] = []
    shown = 0
    order = _staying_order(chapters)
    for number, piece in enumerate(order):
        needed = piece.weight - (PINNED if piece.chapter.pinned else SMALL)
        heappush(waiting, (needed if needed > shown else 0, number, piece))
        while waiting and (waiting[0][0] <= shown or number + 1 == len(order)):
            group = []
            wanted = [heappop(waiting)[2]]
            while wanted:
                if (one := wanted.pop()) not in kept:
                    kept.add(one)
                    group.append(one)
                    wanted += [*one.notes, one.frame] if one.frame else one.notes
            if group:
                shown += sum(one.end - one.start for one in group)
                yield group


def _staying_order(chapters: Sequence[Chapter]) -> list[Piece]:
    """The pieces in the order in which they are kept, without those that only frame others; footnotes last, since they
    come with what refers to them."""
    ranked = []
    notes = {note.block for chapter in chapters for piece in chapter.pieces for note in piece.notes}
    for number, chapter in enumerate(_newest_first(chapters[0])):
        own = [piece for piece in chapter.pieces if piece.top >= 0]
        if own:
            places = _places(chapter.dates) or range(len(chapter.dates))
            own.sort(key=lambda piece: (piece.done, piece.late, places[piece.top], piece.start))
        elif not chapter.chapters and chapter.heading:
            own = [chapter.heading]
        for position, piece in enumerate(own):
            wave = 2 if position >= FAIR_SHARE else 1 if position or chapter.is_dated else 0
            key = (piece.block in notes, not chapter.pinned, piece.done, piece.late, wave, number, position)
            ranked.append((key, piece))
    return [piece for _, piece in sorted(ranked, key=itemgetter(0))]


def _newest_first(chapter: Chapter) -> Iterator[Chapter]:
    """A chapter and all below it from the top of the file down; chapters that are a log, the newest first."""
    yield chapter
    below = chapter.chapters
    places = _places([date_in(one.section.title) for one in below])
    for _, one in sorted(zip(places or range(len(below)), below, strict=True), key=itemgetter(0)):
        one.is_dated = bool(places)
        yield from _newest_first(one)


def _places(dates: Sequence[date | None]) -> list[int]:
    """The place of each entry of a log among its siblings, the newest first; [] if most of them have no date.

    One without a date belongs to the dated one above it; what is above all of them introduces them.
    """
    known = [day for day in dates if day]
    if len(known) < 2 or 2 * len(known) <= len(dates):
        return []
    is_ascending = known[0] < known[-1]
    day = date.max
    keys = []
    for index, own in enumerate(dates):
        day = own or day
        keys.append((-day.toordinal(), -index if is_ascending and day < date.max else index, index))
    places = [0] * len(dates)
    for place, (*_, index) in enumerate(sorted(keys)):
        places[index] = place
    return places
