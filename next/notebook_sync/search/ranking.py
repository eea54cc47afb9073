"""The one ranking of the product: features of a text for a query, their score, neighbours, cut-off.

Pure, and the same with and without numpy: similarity by meaning is given by the caller, 0 where there is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import fsum, log
from typing import NamedTuple

from notebook_sync.search.terms import HEADING

# Measured on held-out halves of several corpora of other people's texts; see docs/search.md.
BM25, COVER, PAIRS, MEANING = 0.20, 0.10, 0.15, 0.55
_K1, _B = 2.0, 0.9
_TITLE, _SUMMARY = 8, 2
_WORDS_APART = 3
_PASSAGE_LENGTH = 45  # words, on the average
_NEXT, _NEXT_BUT_ONE = 0.30, 0.15
_CUT_OFF = 0.5


class Features(NamedTuple):
    """Each 0 to 1, by how much of the query the text has: `bm25` in all fields, `cover` the words in one passage,
    `pairs` the words next to each other in one passage."""

    bm25: float
    cover: float
    pairs: float


NO_WORDS = Features(0.0, 0.0, 0.0)


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


class _Line(NamedTuple):
    """A line of a packed text that has words of the query: `hits`, in order, each with where the space before it is.

    `heading` is where the line of the heading above it, or its own, begins; 0 without one.
    """

    start: int
    heading: int
    hits: list[tuple[int, str]]


class Question(NamedTuple):
    """A query, ready to be compared with any number of texts. `weights` are rarities by term.

    Sums are exact (fsum), so that equal texts have equal scores, whatever the order of their words.
    """

    weights: dict[str, float]
    pairs: dict[tuple[str, str], float]
    average_length: float

    @classmethod
    def of(cls, terms: Sequence[str], total: int, having: Mapping[str, int], average_length: float) -> Question:
        """`terms` in the query's order; of `total` texts, `having` have each; `average_length` is in words."""
        weights = {term: rarity_of(total, having.get(term, 0)) for term in terms}
        pairs = {(a, b): min(weights[a], weights[b]) for a, b in pairwise(terms) if a != b}
        return cls(weights, pairs, max(average_length, 1.0))

    def features(self, terms: str) -> Features:
        """How well a text, as `search_columns` packs it, has the query's words. Linear in the text."""
        lines = self._lines(terms)
        if not lines:
            return NO_WORDS
        summary = terms.find("\n") + 1
        counted: list[str] = []
        in_title = above = frozenset[str | tuple[str, str]]()
        heading, cover, pairs = 0, 0.0, 0.0
        for line in lines:
            words = [word for _, word in line.hits]
            if line.start == summary:
                counted += words * _SUMMARY
                continue
            counted += words if line.start else words * _TITLE
            if line.heading != heading:
                heading, above = line.heading, in_title
            # A passage has the words of its title and heading, too.
            here = above.union(words).union(self._pairs_in(terms, line.hits))
            cover = max(cover, fsum(self.weights[word] for word in self.weights.keys() & here))
            pairs = max(pairs, fsum(self.pairs[pair] for pair in self.pairs.keys() & here))
            if line.start == heading:
                above = here
            if not line.start:
                in_title = here
        length = _K1 * (1 - _B + _B * (terms.count(" ") - terms.count("\n") - 1) / self.average_length)
        bm25 = fsum(self.weights[word] * (1 + _K1) * n / (n + length) for word, n in Counter(counted).items())
        all_words, all_pairs = fsum(self.weights.values()), fsum(self.pairs.values()) or 1.0
        return Features(bm25 / all_words, cover / all_words, pairs / all_pairs)

    def kinds(self, terms: str) -> list[int]:
        """How many different words of the query each passage of a packed text has, headings aside."""
        passages = [line for line in terms.split("\n")[2:] if not line.startswith(HEADING)]
        return [sum(f" {word} " in line for word in self.weights) for line in passages]

    def _lines(self, terms: str) -> list[_Line]:
        """The lines that have words of the query, in order."""
        lines: list[_Line] = []
        heading, end = 0, -1
        for at, word in sorted((at, each) for each in self.weights for at in _places(terms, f" {each} ")):
            if at > end:
                heading = max(heading, terms.rfind(f"\n{HEADING}", max(end, 0), at) + 1)
                lines.append(_Line(terms.rfind("\n", 0, at) + 1, heading, []))
                end = terms.find("\n", at)
                end = end if end >= 0 else len(terms)
            lines[-1].hits.append((at, word))
        return lines

    def _pairs_in(self, terms: str, hits: Sequence[tuple[int, str]]) -> set[tuple[str, str]]:
        """The query's neighbours that are at most three words apart, in this order."""
        return {
            (first, second)
            for number, (at, first) in enumerate(hits)
            for behind, second in hits[number + 1 : number + 1 + _WORDS_APART]
            if (first, second) in self.pairs and terms.count(" ", at, behind) <= _WORDS_APART
        }


def _places(text: str, part: str) -> Iterator[int]:
    """Where a part of a text begins, each time; a space may end one and begin the next."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


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
