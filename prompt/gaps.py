"""What was left out of a text, as stretches of it: what is left, and where what is left was before.

Gaps here are in order and apart.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prompt.values import Gap


def apart(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """`gaps` in order; what an earlier one covers already is not taken twice."""
    found: list[Gap] = []
    for gap in sorted(gaps, key=lambda gap: (gap.start, -gap.end)):
        start = max(gap.start, found[-1].end) if found else gap.start
        if start < gap.end:
            found.append(Gap(start, gap.end, gap.reason))
    return tuple(found)


def without(text: str, gaps: Sequence[Gap]) -> str:
    """`text` less `gaps`."""
    pieces, position = [], 0
    for gap in gaps:
        pieces.append(text[position : gap.start])
        position = gap.end
    pieces.append(text[position:])
    return "".join(pieces)


def first_touching(gaps: Sequence[Gap], start: int, end: int) -> Gap | None:
    """The first of `gaps` that takes anything of `[start, end)`."""
    index = bisect_right(gaps, start, key=lambda gap: gap.end)
    return gaps[index] if index < len(gaps) and gaps[index].start < end else None


class Positions:
    """Positions of a text, and of what is left of it without `gaps`."""

    def __init__(self, gaps: Sequence[Gap]) -> None:
        self._gaps = gaps
        self._taken = [0, *accumulate(gap.end - gap.start for gap in gaps)]
        # Where each gap was, as a position of what is left.
        self._places = [gap.start - taken for gap, taken in zip(gaps, self._taken, strict=False)]

    def before(self, position: int) -> int:
        """Where a position of what is left is in the text; behind the gap, where there is one."""
        return position + self._taken[bisect_right(self._places, position)]

    def after(self, position: int) -> int:
        """Where a position of the text is in what is left; for one in a gap, where the gap was."""
        index = bisect_left(self._gaps, position, key=lambda gap: gap.start)
        inside = max(self._gaps[index - 1].end - position, 0) if index else 0
        return position + inside - self._taken[index]
