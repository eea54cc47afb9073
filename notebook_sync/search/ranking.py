"""The one ranking of the product: features of a text for a query, their score, neighbours, cut-off.

Pure, and the same with and without numpy: similarity by meaning is given by the caller, 0 where there is none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import fsum, log
from typing import NamedTuple

from notebook_sync.search.terms import HEADING

# Measured on held-out halves of several corpora of other people's texts; see docs/explanation/search.md.
BM25, COVER, PAIRS, MEANING, SECOND = 0.20, 0.10, 0.15, 0.55, 0.30
_K1, _B = 2.0, 0.9
_K1_OF_FEW, _B_OF_FEW = 1.2, 0.75
_TITLE, _SUMMARY = 8, 2
_WORDS_APART = 3
_PASSAGE_LENGTH = 45  # words, on the average
_NEXT, _NEXT_BUT_ONE = 0.30, 0.15
_CUT_OFF = 0.5
# What the score of a note is multiplied by that no longer holds.
OUTDATED = 0.5
_WORDS = 0.6  # of a likeness; the rest is meaning


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
            return Features(0.0, 0.0, 0.0)
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


def score_of(features: Features, cosine: float, second: float = 0.0) -> float:
    """The score: absolute, 0 to 1.4; with `second`, the cosine of the second stage, 0.3 more."""
    return _words_of(features) + MEANING * max(cosine, 0.0) + SECOND * max(second, 0.0)


def likeness(features: Features, cosine: float | None) -> float:
    """How well a text answers, 0 to 1, for formulas that weigh it with other things: of its words and its meaning;
    of words alone where there is no cosine."""
    words = min(_words_of(features) / (BM25 + COVER + PAIRS), 1.0)
    return words if cosine is None else _WORDS * words + (1 - _WORDS) * max(cosine, 0.0)


def _words_of(features: Features) -> float:
    return BM25 * features.bm25 + COVER * features.cover + PAIRS * features.pairs


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


def decay(age: timedelta, half_life: timedelta) -> float:
    """What is left of a worth of 1 after some time: half of it after each half-life, all of it in the future."""
    return float(2.0 ** -max(age / half_life, 0.0))


def shares_of(words: Collection[str], texts: Sequence[Mapping[str, float]]) -> list[float]:
    """Of each text, the share of `words` that it has, those that few texts have counting more: 0 to 1. A text says by
    word how much that counts in it."""
    asked = sorted(set(words))
    hits = [{word: text[word] for word in asked if word in text} for text in texts]
    matches, having = sum(map(bool, hits)), Counter(word for each in hits for word in each)
    rarity = {word: log(1 + (matches + 1) / (having[word] + 0.5)) for word in asked}
    whole = fsum(rarity.values()) or 1.0
    return [fsum(rarity[word] * counts for word, counts in each.items()) / whole for each in hits]


def fuse(words: Mapping[str, float], cosines: Mapping[str, float], share: float) -> dict[str, float]:
    """Two scores as one, relative to the best: `share` of the cosines', the rest of the words'.

    Where one of the two found nothing, the other decides. What has no word of the query scores at most its cosine: the
    best of what is far is still far.
    """
    best = max(words.values(), default=0.0)
    low, high = max(min(cosines.values(), default=0.0), 0.0), max(cosines.values(), default=0.0)
    share = share if best > 0 and high > 0 else float(best <= 0)
    fused: dict[str, float] = {}
    for id in words.keys() | cosines.keys():
        cosine = cosines.get(id, 0.0)
        near = (cosine - low) / (high - low) if high > low else float(cosine > 0)
        score = (1 - share) * (words.get(id, 0.0) / best if best > 0 else 0.0) + share * max(near, 0.0)
        fused[id] = score if words.get(id) else min(score, max(cosine, 0.0))
    return fused


def bm25(weights: Mapping[str, float], texts: Mapping[str, Mapping[str, int]]) -> dict[str, float]:
    """How well each of a few texts, given as counts of terms, has weighted terms (Robertson and Zaragoza, 2009); those
    that have none are left out. How rare a term is, these texts alone decide."""
    having = Counter(term for counts in texts.values() for term in weights.keys() & counts.keys())
    worth = {term: weights[term] * rarity_of(len(texts), count) for term, count in having.items()}
    sizes = {id: sum(counts.values()) for id, counts in texts.items()}
    usual = sum(sizes.values()) / max(len(sizes), 1) or 1.0
    scores: dict[str, float] = {}
    for id, counts in texts.items():
        length = _K1_OF_FEW * (1 - _B_OF_FEW + _B_OF_FEW * sizes[id] / usual)
        if said := worth.keys() & counts.keys():
            scores[id] = fsum(worth[term] * counts[term] / (counts[term] + length) for term in said)
    return scores


def mmr(scores: Mapping[str, float], similarity: Callable[[str, str], float], share: float, limit: int) -> list[str]:
    """At most `limit` ids by maximal marginal relevance, in the order in which they are chosen.

    The next is the one with the highest share * score - (1 - share) * its similarity (0 to 1) to the most similar that
    is chosen (Carbonell and Goldstein, 1998); of equal ones the first id.
    """
    # Less margin, id, how many of the chosen it was compared with, the greatest similarity. Margins only fall, so one
    # that was compared with all, and is still the best, is the best.
    waiting = [(-share * score, id, 0, 0.0) for id, score in scores.items()]
    heapify(waiting)
    chosen: list[str] = []
    while waiting and len(chosen) < limit:
        _, id, compared, highest = heappop(waiting)
        if compared == len(chosen):
            chosen.append(id)
            continue
        highest = max(highest, *(similarity(id, other) for other in chosen[compared:]))
        heappush(waiting, ((1 - share) * highest - share * scores[id], id, len(chosen), highest))
    return chosen
