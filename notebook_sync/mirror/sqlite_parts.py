"""The notes that have any word of a query, in parts that have no note in common, the most promising first. Pure.

How rare the words of a part are bounds the scores of its notes: once enough notes score more than that, the part need
not be looked at, and the answer is still that of scoring every note.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

# The rarest words have parts of their own; what is beyond them counts as one.
_APART = 3


@dataclass(frozen=True, slots=True)
class Word:
    """A word as FTS5 takes it, how rare it is, and in how many notes of the index that is asked it stands."""

    text: str
    rarity: float
    notes: int


@dataclass(frozen=True, slots=True)
class Part:
    """Notes that have some words of a query and not the others.

    expression: what FTS5 finds them by, in which each word stands once, for `bm25` adds up what stands in it. words:
    those that count. notes: no more than so many.
    """

    expression: str
    words: tuple[Word, ...]
    notes: int

    @property
    def rarity(self) -> float:
        """Of all its words together."""
        return sum(word.rarity for word in self.words)


def whole(words: Iterable[Word], without: Sequence[str] = ()) -> Part:
    """All that have any of the words, and none of `without`."""
    return _part([_rarest_first(words)], without)


def parts_of(words: Iterable[Word], without: Sequence[str] = ()) -> list[Part]:
    """The same notes, in parts."""
    ordered = _rarest_first(words)
    groups = [*((word,) for word in ordered[:_APART]), *filter(None, [ordered[_APART:]])]
    parts = []
    for size in range(len(groups), 0, -1):
        for chosen in combinations(groups, size):
            others = chain.from_iterable(group for group in groups if group not in chosen)
            parts.append(_part(chosen, [*(word.text for word in others), *without]))
    return sorted(parts, key=lambda part: -part.rarity)


def any_of(texts: Iterable[str]) -> str:
    """What matches any of these words."""
    return " OR ".join(texts)


def _rarest_first(words: Iterable[Word]) -> tuple[Word, ...]:
    return tuple(sorted(words, key=lambda word: (-word.rarity, word.text)))


def _part(groups: Sequence[Sequence[Word]], without: Sequence[str]) -> Part:
    """The notes that have a word of each group."""
    having = " AND ".join(f"({any_of(word.text for word in group)})" for group in groups)
    expression = f"({having}) NOT ({any_of(without)})" if without else having
    notes = min(sum(word.notes for word in group) for group in groups)
    return Part(expression, tuple(chain.from_iterable(groups)), notes)
