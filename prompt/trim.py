"""The structure-exact cut: Markdown in, Markdown of at most so many tokens out. Never breaks a fence, a table, a list
or a character, and never leaves out a thing without saying so.

What leaves, and in which order, depends on the text alone (`prompt.order`); a cap only says how much of it has to. So
a larger cap shows all that a smaller one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from prompt.blocks import Lines, parse_blocks
from prompt.budget import Count
from prompt.comments import end_of_grammar
from prompt.divide import ends_within
from prompt.ending import MORE, End
from prompt.order import count_tokens_of, leaving_order, reckoned
from prompt.shown import Beginning, Page, omission_line
from prompt.tree import Block, tree_of
from prompt.values import Omission

# A page that is reckoned to be over the cap by more tokens than this is not laid. Reckoning errs by one or two a line.
SLACK = 4


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What is left of a text. `cut` are the stretches `[start, end)` of it that are not shown, in order and apart."""

    text: str
    tokens: int
    omitted: tuple[Omission, ...] = ()
    cut: tuple[tuple[int, int], ...] = ()


def trim(text: str, cap: int, count: Count, *, path: str = "", pinned: frozenset[int] = frozenset()) -> Trimmed:
    """`text` in at most `cap` tokens as `count` counts them; the text itself where it fits.

    What leaves, in this order: the comment the text opens with; done tasks; the ends of long paragraphs; sections from
    the last to the first, or by their dates, and in each the older entries first; what is pinned. Each stretch left out
    leaves one line that names the call to read it in `path`. `pinned` are the characters at which pinned headings
    begin. A cap too small even for the shortest such line gives the empty text.
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

    def at(self, cap: int) -> Trimmed:
        """As `trim`. A cap below 0 is none at all, and leaves nothing."""
        cap = max(cap, 0)
        if self._tokens <= cap:
            return Trimmed(self._text, self._tokens)
        grammar, rest, tokens = self._below_grammar
        cut = Trimmed(rest, tokens) if tokens <= cap else self._leaving.fitted(cap)
        if not grammar:
            return cut
        return replace(cut, cut=((0, grammar), *((start + grammar, end + grammar) for start, end in cut.cut)))

    @cached_property
    def _below_grammar(self) -> tuple[int, str, int]:
        """Where the comment ends with which the text opens, what is below it, and the tokens of that."""
        grammar = end_of_grammar(self._text)
        rest = self._text[grammar:]
        return grammar, rest, self._count(rest) if grammar else self._tokens

    @cached_property
    def _leaving(self) -> _Leaving:
        grammar, rest, tokens = self._below_grammar
        return _Leaving(rest, tokens, self._count, self._path, frozenset(at - grammar for at in self._pinned))


class _Leaving:
    """A text on its way out."""

    def __init__(self, text: str, tokens: int, count: Count, path: str, pinned: frozenset[int]) -> None:
        self.text, self.tokens, self.count, self.path = text, tokens, count, path
        self.root = tree_of(text, pinned)
        self.order = leaving_order(self.root)
        count_tokens_of(self.root, text, tokens, count)
        self.reckoned = reckoned(self.root, self.order, self._line_cost())

    def fitted(self, cap: int) -> Trimmed:
        """The first page that fits, of those with less and less on them."""
        return next(page for page in self._pages(cap) if page.tokens <= cap)

    def _pages(self, cap: int) -> Iterator[Trimmed]:
        """Pages with less and less on them. Those passed over for a cap are passed over for each smaller one too."""
        for gone, tokens in enumerate(self.reckoned):
            if 0 < gone < len(self.order) and tokens <= cap + SLACK:
                yield self._page(gone)
        if self.order:
            yield from self._beginnings(cap)
        last = self._page(len(self.order))
        yield last
        for line in (omission_line(0, self.tokens), f"[{MORE}]"):
            yield replace(last, text=line, tokens=self.count(line))
        yield replace(last, text="", tokens=0)

    def _beginnings(self, cap: int) -> Iterator[Trimmed]:
        """Nothing but the beginning of what leaves last: the longest one that fits, found by halving.

        The middles are the same for each cap, so whatever the counts are, a larger cap finds no shorter one.
        """
        leaf, _ = self.order[-1]
        ends = _finest_ends(leaf, self.text)
        fits, too_long, found = 0, len(ends) + 1, None
        while too_long - fits > 1:
            middle = (fits + too_long) // 2
            end = ends[middle - 1]
            tokens = self.count(self.text[leaf.start : leaf.start + end.at])
            page = self._page(len(self.order) - 1, Beginning(leaf, end, tokens)) if tokens <= cap else None
            if page and page.tokens <= cap:
                fits, found = middle, page
            else:
                too_long = middle
        if found:
            yield found

    def _page(self, gone: int, beginning: Beginning | None = None) -> Trimmed:
        page = Page(self.text, self.path, gone, beginning)
        text = page.lay(self.root)
        return Trimmed(text, self.count(text), tuple(page.omitted), tuple(page.cut))

    def _line_cost(self) -> Callable[[Block], int]:
        known: dict[str, int] = {}

        def cost(section: Block) -> int:
            if section.anchor not in known:
                known[section.anchor] = self.count(omission_line(12, 345, self.path, section.anchor) + "\n\n")
            return known[section.anchor]

        return cost


def _finest_ends(leaf: Block, text: str) -> Sequence[End]:
    """Wherever the first stretch of a leaf may end early."""
    if leaf.ends:
        at, closing = leaf.ends[0]
        own = text[leaf.start : leaf.start + at] + closing.removesuffix(MORE)
    else:
        at, own = leaf.end - leaf.start, text[leaf.start : leaf.end]
    lines = Lines(own)
    if leaf.is_row:
        ends = ends_within(None, lines, 0, len(own), finely=True)
    else:
        ends = ends_within(parse_blocks(own), lines, 0, len(own), finely=True)
    return [end for end in ends if end.at < at]
