"""What one text has of another, in no more than so many steps: two that repeat themselves would take minutes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from typing import Final, Literal

Opcode = tuple[Literal["replace", "delete", "insert", "equal"], int, int, int, int]
# About a second's.
MOST_STEPS: Final = 4_000_000


@dataclass(slots=True)
class Steps:
    """How many `left` are to be taken: one for each part, and for each like it in the other text, whenever the two are
    laid side by side."""

    left: int = MOST_STEPS


def opcodes(one: Sequence[str], other: Sequence[str], steps: Steps, *, autojunk: bool = True) -> list[Opcode]:
    """As difflib has them. What is alike at both ends is found in any case; where no steps are left, the rest that is
    not compared is one that was changed."""
    first = _alike(one, other)
    last = _alike(one[first:][::-1], other[first:][::-1])
    end, other_end = len(one) - last, len(other) - last
    between = _Within(steps, one[first:end], other[first:other_end], autojunk=autojunk).get_opcodes()
    codes: list[Opcode] = [(tag, i + first, j + first, k + first, m + first) for tag, i, j, k, m in between]
    before: list[Opcode] = [("equal", 0, first, 0, first)] if first else []
    behind: list[Opcode] = [("equal", end, len(one), other_end, len(other))] if last else []
    return [*before, *codes, *behind]


class _Within(SequenceMatcher[str]):
    b2j: dict[str, list[int]]  # where each part stands in the other text: difflib documents it

    def __init__(self, steps: Steps, one: Sequence[str], other: Sequence[str], *, autojunk: bool) -> None:
        self._steps, self._one = steps, one
        super().__init__(None, one, other, autojunk)

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        if self._steps.left > 0:
            self._steps.left -= sum(1 + len(self.b2j.get(part, ())) for part in self._one[alo:ahi])
        if self._steps.left <= 0:
            return Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many parts are the same from the start on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))
