"""What an agent's notes are ranked by: how alike, how sure, how old, in the shares that a profile names. Pure.

Nothing but the notes that are compared has a part in their scores: those that a session may not read have none.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

UNSURE = 0.5  # the confidence of a note that names none

# How soon further occurrences of a word stop to tell more, and how much a long text is held against it (BM25's).
_SATURATION = 1.2
_LENGTH_SHARE = 0.75
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Profile:
    """After `half_life` hours a note is worth half for its age. The others are the weights of the three parts."""

    half_life: float
    decay: float
    similarity: float
    confidence: float


PROFILES = {
    "recent": Profile(24, 0.6, 0.3, 0.1),
    "quality": Profile(720, 0.1, 0.4, 0.5),
    "balanced": Profile(168, 0.33, 0.34, 0.33),
    "similarity": Profile(8760, 0.0, 1.0, 0.0),
}


def score(profile: Profile, similarity: float | None, confidence: float, age_hours: float) -> float:
    """From 0 to 1: `(similarity·ws + confidence·wc + decay·wd) / (ws + wc + wd)`.

    Without a similarity, when nothing was asked for, its weight is left out of both sums; a profile that weighs
    nothing else ranks by age.
    """
    decay = decay_of(age_hours, profile.half_life)
    parts = [(decay, profile.decay), (confidence, profile.confidence)]
    if similarity is not None:
        parts.append((similarity, profile.similarity))
    weights = sum(weight for _, weight in parts)
    return sum(part * weight for part, weight in parts) / weights if weights else decay


def decay_of(age_hours: float, half_life: float) -> float:
    """`2^(−age/half-life)`: 1 for what is new, or has a time to come."""
    return float(2.0 ** (-max(0.0, age_hours) / half_life))


def fused(words: float, cosine: float | None, share: float) -> float:
    """How alike by words and by meaning, of which `share` counts; by words alone where there is no cosine."""
    return words if cosine is None else (1 - share) * words + share * max(cosine, 0.0)


def similarities(query: str, texts: Sequence[str]) -> list[float]:
    """How alike each text is to the query, from 0 (no word of it) to less than 1: BM25 over these texts alone, as a
    share of what a text full of every word would have."""
    wanted = dict.fromkeys(stems(query))
    if not wanted:
        return [0.0] * len(texts)
    counts = [Counter(stems(text)) for text in texts]
    lengths = [count.total() for count in counts]
    usual = sum(lengths) / len(lengths) if any(lengths) else 1.0
    weights = {word: _rarity(sum(word in count for count in counts), len(texts)) for word in wanted}
    whole = sum(weights.values())

    def likeness(count: Counter[str], length: int) -> float:
        patience = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length / usual)
        return sum(weight * count[word] / (count[word] + patience) for word, weight in weights.items()) / whole

    return [likeness(count, length) for count, length in zip(counts, lengths, strict=True)]


def presence(rarities: Mapping[str, float], texts: Sequence[tuple[str, float]]) -> float:
    """How well texts of one note, each with its weight, fit words of which each is so rare: BM25 with one occurrence of
    a word in each text that has any, 0 where none has."""
    said = [(frozenset(stems(text)), weight) for text, weight in texts]
    score = 0.0
    for word, rarity in rarities.items():
        weight = sum(weight for has, weight in said if has.issuperset(stems(word)))
        score += rarity * weight * (_SATURATION + 1) / (weight + _SATURATION)
    return score


def _rarity(having: int, texts: int) -> float:
    return math.log(1 + (texts - having + 0.5) / (having + 0.5))


def stems(text: str) -> list[str]:
    """The words of a text as they are compared."""
    if not text.isascii():
        apart = unicodedata.normalize("NFKD", text)
        text = "".join(each for each in apart if not unicodedata.combining(each))  # as the stores compare words
    return [_stem(word) for word in _WORD.findall(text.casefold())]


_ENDINGS = ("ings", "ing", "ies", "es", "ed", "s", "e", "y")
_SHORTEST_STEM = 3


@lru_cache(maxsize=1 << 14)  # texts repeat their words
def _stem(word: str) -> str:
    """An English word without its commonest endings, so that `races` and `racing` are `race`."""
    if not word.isascii() or word.endswith("ss"):
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            stem = word[: -len(ending)]
            doubled = ending in ("ings", "ing", "ed") and stem[-1] == stem[-2] and stem[-1] not in "ls"
            return stem[:-1] if doubled else stem
    return word
