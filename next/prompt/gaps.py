"""What is left out of a text, as ranges of it; what is left; and where each character of either is in the other.

Gaps here are in order and do not overlap.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from prompt.values import Gap


def without_overlaps(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """`gaps` in order; each less what an earlier one covers."""
    found: list[Gap] = []
    for gap in sorted(gaps, key=lambda gap: (gap.start, -gap.end)):
        start = max(gap.start, found[-1].end) if found else gap.start
        if start < gap.end:
            found.append(gap if start == gap.start else gap._replace(start=start, shown=""))
    return tuple(found)


def without(text: str, gaps: Sequence[Gap]) -> str:
    """`text` with what each gap shows in its place, usually nothing."""
    pieces, at = [], 0
    for gap in gaps:
        pieces += [text[at : gap.start], gap.shown]
        at = gap.end
    return "".join([*pieces, text[at:]])


def first_touching(gaps: Sequence[Gap], start: int, end: int) -> Gap | None:
    """The first of `gaps` that takes anything of `[start, end)`."""
    index = bisect_right(gaps, start, key=lambda gap: gap.end)
    return gaps[index] if index < len(gaps) and gaps[index].start < end else None


class Positions:
    """Maps positions between a text and what is left of it without `gaps`. A gap shows no more than it takes."""

    def __init__(self, gaps: Sequence[Gap]) -> None:
        self._gaps = gaps
        self._taken = [0, *accumulate(gap.end - gap.start - len(gap.shown) for gap in gaps)]
        # Where each gap ends, as a position of what is left.
        self._ends = [gap.end - taken for gap, taken in zip(gaps, self._taken[1:], strict=True)]

    def before(self, position: int) -> int:
        """Where a position of what is left is in the text; at the end of a gap, the position behind it."""
        return position + self._taken[bisect_right(self._ends, position)]

    def after(self, position: int) -> int:
        """Where a position of the text is in what is left; for one in a gap, the position behind it."""
        index = bisect_left(self._gaps, position, key=lambda gap: gap.start)
        inside = max(self._gaps[index - 1].end - position, 0) if index else 0
        return position + inside - self._taken[index]
