"""The structure-exact cut: Markdown in, Markdown of at most so many tokens out. Never breaks a fence, a table, a list
or a character, and never leaves out a thing without saying so.

Which pieces stay depends on the text alone (`prompt.order`); a cap only says how many of them. So a larger cap shows
all that a smaller one does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from prompt.budget import Count
from prompt.ends import MORE, omission_line
from prompt.excerpt import Excerpt, hidden_below, is_visible
from prompt.order import staying_order
from prompt.outline import Outline
from prompt.pieces import Chapter, Piece, all_chapters, chapters_of
from prompt.values import Omission

# A page whose estimate is over the cap by more tokens than this is not laid out.
SLACK = 4
# The omission lines of sections take at most this part, an eighth, of what is shown.
MOST_LINES = 8
# In characters: more than this is dearer than any line that would say that it is left out.
_LONGEST_LINE = 400
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What is left of a text. `cut` are the stretches `[start, end)` of it that are not shown, in order and apart."""

    text: str
    tokens: int
    omitted: tuple[Omission, ...] = ()
    cut: tuple[tuple[int, int], ...] = ()


def trim(text: str, cap: int, count: Count, *, path: str = "", pinned: frozenset[int] = frozenset()) -> Trimmed:
    """`text` in at most `cap` tokens as `count` counts them; the text itself where it fits.

    `prompt.order` says what stays longest. Each section of which something is left out ends in one line that names the
    call to read it in `path`; where these lines would take more than an eighth of what is shown, they are only marks,
    and one line at the end names the call. `pinned` are the characters at which pinned headings begin. A cap too small
    even for the shortest line gives the empty text.
    """
    return Cutting(text, count(text), count, path=path, pinned=pinned).at(cap)


class Cutting:
    """A text that is to be cut, to one cap or to several: what does not depend on the cap is found out once."""

    def __init__(
        self, text: str, tokens: int, count: Count, *, path: str = "", pinned: frozenset[int] = frozenset()
    ) -> None:
        """`tokens` is what `count` says of `text`."""
        self._text, self._tokens, self._count = text, tokens, count
        self._path, self._pinned = path, pinned
        # Of pages with 0, 1, 2 … groups of pieces: the tokens, and whether one line has the only call.
        self._estimates: list[tuple[int, bool]] = []
        self._groups: list[list[Piece]] = []
        self._shown_tokens = 0

    def at(self, cap: int) -> Trimmed:
        """As `trim`. A cap below 0 is none at all, and leaves nothing."""
        cap = max(cap, 0)
        if self._tokens <= cap:
            return Trimmed(self._text, self._tokens)
        for page in self._pages(cap):
            tokens = self._count(page.text)
            if tokens <= cap:
                return Trimmed(page.text, tokens, tuple(page.omissions(self._count)), tuple(page.cut))
        everything = ((0, len(self._text)),)
        for line in (omission_line(0, self._path), omission_line(0), f"[{MORE}]", ""):
            if self._count(line) <= cap:
                return Trimmed(line, self._count(line), (Omission("", "", 0, self._tokens),), everything)
        return Trimmed("", 0, (Omission("", "", 0, self._tokens),), everything)

    @cached_property
    def _outline(self) -> Outline:
        return Outline(self._text)

    @cached_property
    def _root(self) -> Chapter:
        return chapters_of(self._outline, self._pinned)

    def _pages(self, cap: int) -> Iterator[Excerpt]:
        """Pages with less and less on them. Those passed over for a cap are passed over for each smaller one too."""
        self._estimate(cap + SLACK)
        for number in range(len(self._estimates) - 1, 0, -1):
            if self._estimates[number][0] <= cap + SLACK and (page := self._page(number)):
                yield page
        if page := self._page(0):
            yield page

    def _estimate(self, limit: int) -> None:
        """Estimate pages with more and more on them, until the pieces alone are over `limit` tokens.

        A page is its pieces with the white space below them, and its omission lines.
        """
        if not self._estimates:
            self._left = staying_order(self._root)
            self._lines = _Lines(
                self._root,
                lambda chapter: self._count(self._line(12, chapter) + "\n\n"),
                self._count(omission_line(12) + "\n\n"),
            )
            self._estimates.append(self._lines.after(0))
        while self._shown_tokens <= limit and (group := next(self._left, None)):
            for piece in reversed(group):  # what frames others first
                space = _SPACE.match(self._text, piece.end)
                self._shown_tokens += self._count(self._text[piece.start : piece.end] + (space[0] if space else ""))
                self._lines.show(piece)
            self._groups.append(group)
            self._estimates.append(self._lines.after(self._shown_tokens))

    def _page(self, groups: int) -> Excerpt | None:
        shown = set(chain.from_iterable(self._groups[:groups]))
        one_call = self._estimates[groups][1]
        shown |= self._cheaper_shown(self._root, shown, one_call)
        page = Excerpt(self._outline, self._root, shown, self._line, one_call=one_call)
        return page if page.is_valid else None

    def _cheaper_shown(self, chapter: Chapter, shown: set[Piece], one_call: bool) -> set[Piece]:
        """What a page of `shown` lacks and is no dearer than the lines that would say so."""
        cheaper: set[Piece] = set()
        own = [piece for piece in chapter.pieces if piece not in shown]
        below = [] if one_call else [each for one in hidden_below(chapter, shown) for each in all_chapters(one)]
        size = sum(piece.end - piece.start for piece in own) + sum(each.end - each.section.start for each in below)
        if size <= _LONGEST_LINE:
            lacking = own + [piece for each in below for piece in each.all_pieces]
            entries = sum(piece.entries for piece in lacking)
            line = omission_line(entries) if one_call else self._line(entries, chapter)
            text = "\n".join(self._text[piece.start : piece.end] for piece in lacking)
            if lacking and self._count(text) <= self._count(line):
                cheaper.update(lacking)
        for one in chapter.chapters:
            if is_visible(one, shown):
                cheaper |= self._cheaper_shown(one, shown, one_call)
        return cheaper

    def _line(self, entries: int, chapter: Chapter) -> str:
        return omission_line(entries, self._path, chapter.section.anchor)


class _Lines:
    """The omission lines of a page on which more and more is shown.

    There is one with a call for each section that is shown and lacks something; or, where these would be too many, a
    mark for each that lacks entries of its own, and one line with a call for all.
    """

    def __init__(self, root: Chapter, cost: Callable[[Chapter], int], mark: int) -> None:
        """`cost` gives the tokens of a chapter's line, `mark` are those of a mark."""
        self._cost, self._mark, self._one = cost, mark, cost(root)
        # How much the chapters that are shown lack: of their own pieces, and with the chapters below them.
        self._own: dict[Chapter, int] = {}
        self._all: dict[Chapter, int] = {}
        self._marks = self._number = self._tokens = 0
        self._see(root)

    def after(self, shown_tokens: int) -> tuple[int, bool]:
        """The tokens of a page with `shown_tokens` of pieces, and whether it has one call for all."""
        one_call = self._number > 1 and self._tokens > shown_tokens // MOST_LINES
        return shown_tokens + (self._one + self._marks * self._mark if one_call else self._tokens), one_call

    def show(self, piece: Piece) -> None:
        chapter = piece.chapter
        if piece is chapter.heading:
            self._see(chapter)
            return
        self._own[chapter] -= 1
        self._marks -= not self._own[chapter]
        self._take(chapter)

    def _see(self, chapter: Chapter) -> None:
        self._own[chapter] = len(chapter.pieces)
        self._all[chapter] = len(chapter.pieces) + len(chapter.chapters)
        self._marks += bool(self._own[chapter])
        if self._all[chapter]:
            self._number += 1
            self._tokens += self._cost(chapter)
        if chapter.parent:
            self._take(chapter.parent)
        for below in chapter.chapters:
            if below.heading is None:  # too long to frame anything: its chapter is seen where this one is
                self._see(below)

    def _take(self, chapter: Chapter) -> None:
        self._all[chapter] -= 1
        if not self._all[chapter]:
            self._number -= 1
            self._tokens -= self._cost(chapter)
