"""One order of what words found and what meaning found: scores are fused, not ranks. Pure.

Rank fusion throws away how much better one find is than the next, and was measured to be worse than words alone; a
weighted sum of scores that were brought to one scale is better than either (Bruch, Gai and Ingber, 2023).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fused:
    """`score`, 0 to 1, is (1 - share) x `words` + share x `meaning`. Each of these is 0 to 1 too: 1 the best that was
    found so, 0 what was not found so."""

    note_id: str
    score: float
    words: float
    meaning: float
    share: float


def fuse(words: Mapping[str, float], similarities: Mapping[str, float], share: float) -> list[Fused]:
    """Every note that either found, best first; of even ones, by id.

    words: scores of a text query, higher is better. similarities: cosines, of the nearest notes and best of all that
    words found. share: that of meaning, 0 to 1; all of the score where words found nothing, none where meaning did.
    """
    of_words = _of_best(words)
    of_meaning = _between(similarities)
    share = 1.0 if not of_words else share if of_meaning else 0.0
    fused = []
    for note_id in of_words.keys() | of_meaning.keys():
        by_words, by_meaning = of_words.get(note_id, 0.0), of_meaning.get(note_id, 0.0)
        fused.append(Fused(note_id, (1 - share) * by_words + share * by_meaning, by_words, by_meaning, share))
    return sorted(fused, key=lambda one: (-one.score, one.note_id))


def _of_best(scores: Mapping[str, float]) -> dict[str, float]:
    highest = max(scores.values(), default=0.0)
    return {note_id: max(score, 0.0) / highest if highest > 0 else 0.0 for note_id, score in scores.items()}


def _between(similarities: Mapping[str, float]) -> dict[str, float]:
    lowest, highest = min(similarities.values(), default=0.0), max(similarities.values(), default=0.0)
    if highest <= 0:
        return {}
    lowest = max(lowest, 0.0)
    reach = highest - lowest
    return {
        note_id: max(similarity - lowest, 0.0) / reach if reach > 0 else 1.0
        for note_id, similarity in similarities.items()
    }
