"""The beginning of a task, in at most so many tokens: whole blocks, then of the next one whole sentences. Pure.

A larger cap never shows less of it, and nothing is left out unsaid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property

from prompt.blocks import Lines, parse_blocks
from prompt.budget import Count
from prompt.divide import ends_within
from prompt.ending import MORE, End
from prompt.open_end import closing_line

_SENTENCE = re.compile(r"""[.!?…]["'”’)\]*_]*\Z|[。！？]\Z""")
# Characters that tell whether a sentence ends after them; of a larger block, only so many are looked at one by one.
_LOOK_BACK, _LARGEST = 8, 1 << 14


class Beginning:
    """A text that is cut from its end, to one cap or to several. Whatever a cap is, the same ends are tried."""

    def __init__(self, text: str, tokens: int, count: Count) -> None:
        """`tokens` is what `count` says of `text`."""
        self._text, self._tokens, self._count = text, tokens, count
        self._within: dict[int, tuple[list[End], list[End]]] = {}

    def at(self, cap: int) -> str:
        """The longest beginning that fits, with a line on the rest; the text itself where that fits. Without room for
        any of it, the line alone, a shorter one, or nothing."""
        if self._tokens <= cap:
            return self._text

        def fits(end: End) -> bool:
            return self._count(self._shown(end)) <= cap

        blocks = [End(end, "") for _, end in self._blocks]
        whole = _last_that_fits(blocks, fits)
        chosen = blocks[whole] if whole >= 0 else None
        if whole + 1 < len(blocks):
            # Only where no sentence fits, one is broken.
            found = (ends[last] for ends in self._ends(whole + 1) if (last := _last_that_fits(ends, fits)) >= 0)
            chosen = next(found, chosen)
        if chosen:
            return self._shown(chosen)
        return next((line for line in (_rest(self._tokens), f"[{MORE}]") if self._count(line) <= cap), "")

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self._text)

    @cached_property
    def _blocks(self) -> list[tuple[int, int]]:
        return [self._lines.span_of(node) for node in parse_blocks(self._text).children]

    def _ends(self, number: int) -> tuple[list[End], list[End]]:
        """Where the block of this number may end early: after sentences and lines, and before the first of these."""
        if number not in self._within:
            start, end = self._blocks[number]
            block = self._text[start : min(end, start + _LARGEST)]
            lines, root = Lines(block), parse_blocks(block)
            ends = [each for each in ends_within(root, lines, 0, len(block), finely=True) if each.at < end - start]
            ends = ends or [End(match.start(), "") for match in re.finditer(r"\n", block) if match.start()]
            clean = [each for each in ends if _is_clean(block, each.at)]
            first = clean[0].at if clean else len(block)
            pieces = [each for each in ends if each.at < first]
            self._within[number] = ([_moved(each, start) for each in clean], [_moved(each, start) for each in pieces])
        return self._within[number]

    def _shown(self, end: End) -> str:
        kept = f"{self._text[: end.at]}{end.closing}"
        closing = closing_line(kept)
        kept = f"{kept}\n{closing}" if closing else kept
        return f"{kept}\n\n{_rest(max(self._tokens - self._count(self._text[: end.at]), 1))}"


def _rest(tokens: int) -> str:
    return f"[{MORE} {tokens} token{'s' * (tokens != 1)} omitted; the rest stands in the spec]"


def _last_that_fits(ends: Sequence[End], fits: Callable[[End], bool]) -> int:
    """Found by halving, -1 for none. The middles are the same for each cap, so a larger one finds no shorter end."""
    fitting, too_long = -1, len(ends)
    while too_long - fitting > 1:
        middle = (fitting + too_long) // 2
        if fits(ends[middle]):
            fitting = middle
        else:
            too_long = middle
    return fitting


def _is_clean(block: str, at: int) -> bool:
    """Whether a sentence or a line ends there."""
    return block[at : at + 1] in ("\n", "\r") or bool(_SENTENCE.search(block[max(0, at - _LOOK_BACK) : at]))


def _moved(end: End, by: int) -> End:
    return End(end.at + by, end.closing)
