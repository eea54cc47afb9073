"""The one ranking of the product: features of a text for a query, their score, neighbours, cut-off, diversity, decay.

Pure, and the same with and without numpy: similarity by meaning is given by the caller, 0 where there is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from math import exp2, fsum, log
from typing import NamedTuple, TypeVar

from notebook_sync.search.terms import HEADING

# Measured on held-out halves of several corpora of other people's texts; see docs/search.md.
BM25, COVER, PAIRS, MEANING = 0.20, 0.10, 0.15, 0.55
_K1, _B = 2.0, 0.9
_TITLE, _SUMMARY = 8, 2
_WORDS_APART = 3
_PASSAGE_LENGTH = 45  # words, on the average
_NEXT, _NEXT_BUT_ONE = 0.30, 0.15
_CUT_OFF = 0.5
_DIVERSITY = 0.7

_Item = TypeVar("_Item")


class Features(NamedTuple):
    """Each 0 to 1, by how much of the query the text has: `bm25` in all fields, `cover` the words in one passage,
    `pairs` the words next to each other in one passage."""

    bm25: float
    cover: float
    pairs: float


def rarity_of(total: float, having: float) -> float:
    """Inverse document frequency: of `total` texts, `having` have the word."""
    return log(1 + (total - having + 0.5) / (having + 0.5))


def passage_rarity(total: int, having: int, average_length: float) -> float:
    """The rarity of a word among passages, as that among notes lets expect.

    A note of n passages has the word with probability 1 - (1 - p)**n if each passage has it with probability p.
    """
    passages = max(average_length / _PASSAGE_LENGTH, 1.0)
    share = min(having, total - 0.5) / total if having and total else 0.0
    rate = 1.0 - (1.0 - share) ** (1.0 / passages)
    return rarity_of(total * passages, rate * total * passages)


@dataclass(frozen=True, slots=True)
class Question:
    """A query, ready to be compared with any number of texts. `weights` are rarities by term.

    Sums are exact (fsum), so that equal texts have equal scores, whatever the order of their words.
    """

    weights: dict[str, float]
    pairs: dict[tuple[str, str], float]
    all_weights: float
    all_pairs: float
    average_length: float
    pattern: re.Pattern[str]
    spaced: tuple[str, ...]

    @classmethod
    def of(cls, terms: Sequence[str], total: int, having: Mapping[str, int], average_length: float) -> Question:
        """`terms` in the query's order; of `total` texts, `having` have each; `average_length` is in words."""
        weights = {term: rarity_of(total, having.get(term, 0)) for term in terms}
        pairs = {(a, b): min(weights[a], weights[b]) for a, b in pairwise(terms) if a != b}
        pattern = re.compile(f" ({'|'.join(map(re.escape, weights))})(?= )" if weights else "(?!)")
        all_weights, all_pairs = fsum(weights.values()) or 1.0, fsum(pairs.values()) or 1.0
        spaced = tuple(f" {term} " for term in weights)
        return cls(weights, pairs, all_weights, all_pairs, max(average_length, 1.0), pattern, spaced)

    def features(self, terms: str) -> Features:
        """How well a text, as `search_columns` packs it, has the query's words. Linear in the text."""
        lines = terms.split("\n")
        found = list(map(self._hits_in, lines))
        counts = Counter([*found[0] * _TITLE, *found[1] * _SUMMARY, *chain.from_iterable(found[2:])])
        words = title = frozenset(found[0])
        near = title_near = self._pairs_in(lines[0], found[0])
        cover, pairs = fsum(map(self.weights.__getitem__, words)), fsum(map(self.pairs.__getitem__, near))
        for line, hits in zip(lines[2:], found[2:], strict=True):
            if line.startswith(HEADING):
                words, near = title, title_near
            if hits:  # a passage has the words of its title and heading, too
                here, near_here = words.union(hits), near | self._pairs_in(line, hits)
                cover = max(cover, fsum(map(self.weights.__getitem__, here)))
                pairs = max(pairs, fsum(map(self.pairs.__getitem__, near_here)))
                if line.startswith(HEADING):
                    words, near = here, near_here
        length = _K1 * (1 - _B + _B * (terms.count(" ") - len(lines)) / self.average_length)
        bm25 = fsum(self.weights[term] * (1 + _K1) * count / (count + length) for term, count in counts.items())
        return Features(bm25 / self.all_weights, cover / self.all_weights, pairs / self.all_pairs)

    def kinds(self, terms: str) -> list[int]:
        """How many different words of the query each passage of a packed text has, headings aside."""
        body = (line for line in terms.split("\n")[2:] if not line.startswith(HEADING))
        return [len(set(self._hits_in(line))) for line in body]

    def _hits_in(self, line: str) -> list[str]:
        """The query's words in a line, in order. Most lines have none, which is seen in a tenth of the time."""
        return self.pattern.findall(line) if any(map(line.__contains__, self.spaced)) else []

    def _pairs_in(self, line: str, hits: Sequence[str]) -> frozenset[tuple[str, str]]:
        """The query's neighbours that are at most three words apart in the line, in this order."""
        if len(hits) < 2:
            return frozenset()
        # Where the words are is seldom worth a look.
        after = {*pairwise(hits), *zip(hits, hits[2:], strict=False), *zip(hits, hits[3:], strict=False)}
        wanted = self.pairs.keys() & after
        if not wanted:
            return frozenset()
        places = list(self.pattern.finditer(line))
        return frozenset(
            pair
            for at, first in enumerate(places)
            for second in places[at + 1 : at + 1 + _WORDS_APART]
            if (pair := (first[1], second[1])) in wanted
            and line.count(" ", first.start(), second.start()) <= _WORDS_APART
        )


def score_of(features: Features, cosine: float) -> float:
    """The score: absolute, 0 to 1.4."""
    words = BM25 * features.bm25 + COVER * features.cover + PAIRS * features.pairs
    return words + MEANING * max(cosine, 0.0)


def with_neighbours(scores: Mapping[str, float], chains: Iterable[Sequence[str]]) -> dict[str, float]:
    """The scores, each with shares of those next to it: turns of one conversation, entries of one log.

    A chain has the ids of short notes of one folder and title in their natural order; who has no score counts 0.
    """
    raised = dict(scores)
    for ids in chains:
        own = [0.0, 0.0, *(scores.get(each, 0.0) for each in ids), 0.0, 0.0]
        for at, each in enumerate(ids):
            if each in raised:
                raised[each] += _NEXT * (own[at + 1] + own[at + 3]) + _NEXT_BUT_ONE * (own[at] + own[at + 4])
    return raised


def natural_order(path: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key by which "2" comes before "10"."""
    return tuple((0, int(part), part) if part.isdecimal() else (1, 0, part) for part in _NUMBER.split(path) if part)


_NUMBER = re.compile(r"([0-9]{1,18})")


def best_of(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    """What scores at least half of the best, best first; equal ones by id."""
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    return [(id, score) for id, score in ranked if score >= _CUT_OFF * ranked[0][1]]


def decay(age_days: float, half_life_days: float) -> float:
    """What is left of a score at this age, 0 to 1; what is dated in the future is new."""
    return exp2(-max(age_days, 0.0) / half_life_days)


def diverse(
    items: Sequence[_Item], score: Callable[[_Item], float], similarity: Callable[[_Item, _Item], float], limit: int
) -> list[_Item]:
    """At most `limit` of the items by maximal marginal relevance: what repeats an item already taken comes later.

    Carbonell and Goldstein (1998), with λ = 0.7. `similarity` is 0 to 1. Of equal ones the first in `items` is taken.
    """
    left = list(items)
    repeats = [0.0] * len(left)
    taken: list[_Item] = []
    while left and len(taken) < limit:
        at = max(range(len(left)), key=lambda n: _DIVERSITY * score(left[n]) - (1 - _DIVERSITY) * repeats[n])
        best = left.pop(at)
        repeats.pop(at)
        taken.append(best)
        repeats = [max(old, similarity(best, item)) for old, item in zip(repeats, left, strict=True)]
    return taken
