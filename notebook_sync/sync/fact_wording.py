"""Which new wording of a fact goes on with which old one. Pure, in bounded time however many were changed at once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from notebook_sync.mirror.facts import Place

NEARLY = 90.0
"""How like each other two wordings of one fact are at least, of 100, as `rapidfuzz.fuzz.ratio` counts."""
# Up to so many pairs are compared one by one; up to the next number, all at once; of more, each with those that stand
# near it in the order of the section.
_SO_FEW_PAIRS = 2_500
_FEW_PAIRS = 250_000
_BLOCK, _MARGIN = 100, 150
# Of those that are nearly the same, so many for each new one; and what a line between them counts, less than a letter.
_MOST = 8
_A_LINE = 1e-6


@dataclass(frozen=True, slots=True)
class Worded:
    """A text and where it stands, or stood."""

    place: Place
    content: str


def reworded(old: Sequence[Worded], new: Sequence[Worded]) -> dict[str, str]:
    """By the id of a new wording, that of the old one: in the same section of the same file, and as like as can be."""
    groups: dict[tuple[str, str], tuple[list[Worded], list[Worded]]] = defaultdict(lambda: ([], []))
    for kind, all_of_kind in enumerate((old, new)):
        for worded in sorted(all_of_kind, key=lambda each: (each.place.line, each.place.note_id)):
            groups[worded.place.path, worded.place.section][kind].append(worded)
    was: dict[str, str] = {}
    for before, after in groups.values():
        taken: set[int] = set()
        for _, one, other in sorted(_alike(before, after)):
            if one not in taken and after[other].place.note_id not in was:
                taken.add(one)
                was[after[other].place.note_id] = before[one].place.note_id
    return was


_BOX = re.compile(r"\[[ xX]\]\s+")


def _plainly(content: str) -> str:
    """What counts of a wording: a task that is ticked is the same task."""
    return " ".join(_BOX.sub("", content, count=1).casefold().split())


def _alike(before: Sequence[Worded], after: Sequence[Worded]) -> Iterator[tuple[float, int, int]]:
    """Pairs of old and new wordings that are nearly the same, with a cost: less, the more alike and then the nearer."""
    if not before or not after:
        return
    from rapidfuzz import fuzz

    old, new = [_plainly(each.content) for each in before], [_plainly(each.content) for each in after]
    if len(old) * len(new) > _SO_FEW_PAIRS:
        yield from _alike_of_many(before, after, old, new)
        return
    for other, text in enumerate(new):
        for one, was in enumerate(old):
            if score := fuzz.ratio(was, text, score_cutoff=NEARLY):
                yield 100.0 - score + abs(before[one].place.line - after[other].place.line) * _A_LINE, one, other


def _alike_of_many(
    before: Sequence[Worded], after: Sequence[Worded], old: Sequence[str], new: Sequence[str]
) -> Iterator[tuple[float, int, int]]:
    """As `_alike`. Arrays cost a watch, which is to stay small, a quarter of its memory: few pairs do without."""
    import numpy as np
    from rapidfuzz import fuzz, process

    lines = np.array([each.place.line for each in before])
    for start, stop, first, last in _windows(len(new), len(old)):
        scores = process.cdist(
            new[start:stop], old[first:last], scorer=fuzz.ratio, score_cutoff=NEARLY, dtype=np.float64
        )
        away = np.abs(lines[first:last] - np.array([[each.place.line] for each in after[start:stop]]))
        costs = np.where(scores > 0, 100.0 - scores + away * _A_LINE, np.inf)
        nearest = np.argsort(costs, axis=1, kind="stable")[:, :_MOST]
        for row, columns in enumerate(nearest):
            for column in columns[np.isfinite(costs[row, columns])]:
                yield float(costs[row, column]), first + int(column), start + row


def _windows(new: int, old: int) -> Iterator[tuple[int, int, int, int]]:
    """From where to where new wordings are compared with which old ones."""
    if new * old <= _FEW_PAIRS:
        yield 0, new, 0, old
        return
    for start in range(0, new, _BLOCK):
        stop = min(start + _BLOCK, new)
        yield start, stop, max(0, start * old // new - _MARGIN), min(old, stop * old // new + _MARGIN)
