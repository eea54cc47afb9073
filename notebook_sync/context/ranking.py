"""Which memories a brief rests on: scores of words, what they come to together, and the choice that says little twice.
Pure; every order is by score, then by id.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

# BM25's own: what an occurrence more adds falls off by the one; how far a long text is held against it, the other.
_SATURATION, _LENGTH = 1.2, 0.75


def bm25(keywords: Mapping[str, float], texts: Mapping[str, Counter[str]]) -> dict[str, float]:
    """By id, how much each text says of the keywords, weighted; those that say nothing are left out.

    Robertson and Zaragoza, 2009. How rare a word is, these texts alone decide: neither what else stands in a notebook
    nor which store it has changes a score.
    """
    if not texts:
        return {}
    sizes = {note_id: sum(counts.values()) for note_id, counts in texts.items()}
    usual = sum(sizes.values()) / len(sizes) or 1.0
    said = {note_id: sorted(keywords.keys() & counts.keys()) for note_id, counts in texts.items()}
    having = Counter(chain.from_iterable(said.values()))
    worth = {word: keywords[word] * _rarity(often, len(texts)) * (_SATURATION + 1) for word, often in having.items()}
    scores: dict[str, float] = {}
    for note_id, words in said.items():
        counts, held = texts[note_id], _SATURATION * (1 - _LENGTH + _LENGTH * sizes[note_id] / usual)
        scores[note_id] = sum(worth[word] * counts[word] / (counts[word] + held) for word in words)
    return {note_id: round(score, 9) for note_id, score in scores.items() if score > 0}


def combined(similarity: float, score: float, share: float) -> float:
    """`share` x similarity + (1 - share) x score, each 0 to 1."""
    return share * similarity + (1 - share) * score


def lifted(similarity: Mapping[str, float], links: Iterable[tuple[str, str, float]]) -> dict[str, float]:
    """The similarities, and what a link adds: whatever is linked to something that is to the point is half as much to
    the point, times how sure the link is. `links` are from, to, and that, 0 to 1; both ends gain."""
    found = dict(similarity)
    for one, other, confidence in links:
        for gaining, giving in ((one, other), (other, one)):
            if giving in similarity and gaining in similarity:
                found[gaining] = max(found[gaining], similarity[giving] * confidence / 2)
    return found


@dataclass(frozen=True, slots=True)
class Taken:
    """A choice: how relevant it is, how like what was taken before it, 0 to 1, and what that left of it."""

    note_id: str
    relevance: float
    redundancy: float
    margin: float


def diversified(
    relevance: Mapping[str, float], alike: Callable[[str], Mapping[str, float]], diversity: float, limit: int
) -> list[Taken]:
    """Up to `limit` of them by maximal marginal relevance, in the order in which they are taken.

    The next is that with the highest `diversity` x relevance - (1 - diversity) x redundancy, where redundancy is how
    like it is to the one taken that it is most like (Carbonell and Goldstein, 1998). `alike` tells, of one, how like
    the others are to it.
    """
    left = sorted(relevance)
    redundancy = dict.fromkeys(left, 0.0)
    margins = {note_id: diversity * relevance[note_id] for note_id in left}
    taken: list[Taken] = []
    while len(taken) < limit and left:
        best = max(left, key=margins.__getitem__)  # of even ones the first, which is so by its id
        taken.append(Taken(best, relevance[best], redundancy[best], margins[best]))
        left.remove(best)
        if not left or len(taken) == limit:
            break
        near = alike(best)
        for note_id in left:
            if near[note_id] > redundancy[note_id]:
                redundancy[note_id] = near[note_id]
                margins[note_id] = diversity * relevance[note_id] - (1 - diversity) * near[note_id]
    return taken


def by_turns(*orders: Sequence[str], limit: int) -> list[str]:
    """The first of each order, then the second of each, none twice, `limit` in all."""
    found = dict.fromkeys(each for turn in zip_longest(*orders) for each in turn if each is not None)
    return list(found)[:limit]


def in_common(one: Collection[str], other: Collection[str]) -> float:
    """Of the words that either has, how many both have (Jaccard): what tells how alike texts without vectors are."""
    first, second = frozenset(one), frozenset(other)
    either = len(first | second)
    return len(first & second) / either if either else 0.0


def _rarity(having: int, texts: int) -> float:
    """Above 0 also for a word that all have."""
    return math.log1p((texts - having + 0.5) / (having + 0.5))
