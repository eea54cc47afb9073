"""What can be measured of memories and of what is made of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from notebook_sync.mirror.memories import Memory
from notebook_sync.mirror.syntheses import Outcome, Timing

_NOT_CAUSAL = "similar"
_SHARE_DIGITS, _MILLISECOND_DIGITS = 4, 2

Row = dict[str, Any]


def figures(
    memories: Iterable[Memory], compiled: Sequence[Timing], syntheses: Sequence[Timing], today: int, daily_limit: int
) -> Row:
    """`{memories, structured_share, needs_review, causal_links, score, compile, synthesis}`. Shares, means and
    percentiles of nothing are None; times are in milliseconds."""
    count = structured = needs_review = links = 0
    scores: list[float] = []
    for memory in memories:
        count += 1
        structured += memory.is_structured and not memory.needs_review
        needs_review += memory.needs_review
        links += sum(link.type != _NOT_CAUSAL for link in memory.relations)
        if memory.score is not None:
            scores.append(memory.score)
    return {
        "memories": count,
        "structured_share": _share(structured, count),
        "needs_review": needs_review,
        "causal_links": links,
        "score": _spread(scores),
        "compile": {"count": len(compiled), **_percentiles(compiled)},
        "synthesis": {**_of_syntheses(syntheses), "today": today, "daily_limit": daily_limit},
    }


def percentile(values: Sequence[float], share: float) -> float | None:
    """The least of them that so large a share of them does not exceed (nearest rank); None of none."""
    if not values:
        return None
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def _of_syntheses(timings: Sequence[Timing]) -> Row:
    def of(outcome: Outcome) -> list[Timing]:
        return [one for one in timings if one.outcome == outcome]

    hits, waited, answered = of("hit"), of("waited"), of("answered")
    kept = len(hits) + len(waited)
    return {
        "asked": len(timings),
        "hits": kept,
        "hit_rate": _share(kept, len(timings)),
        "waited": len(waited),
        "answered": len(answered),
        "failed": len(of("failed")),
        **_percentiles(answered),
        **{f"hit_{name}": value for name, value in _percentiles(hits).items()},
    }


def _percentiles(timings: Sequence[Timing]) -> Row:
    told = [one.milliseconds for one in timings]
    return {f"p{share}_ms": _rounded(percentile(told, share / 100), _MILLISECOND_DIGITS) for share in (50, 95)}


def _spread(values: Sequence[float]) -> Row:
    if not values:
        return {"mean": None, "sigma": None}
    mean = math.fsum(values) / len(values)
    variance = math.fsum((value - mean) ** 2 for value in values) / len(values)
    return {"mean": _rounded(mean, _SHARE_DIGITS), "sigma": _rounded(math.sqrt(variance), _SHARE_DIGITS)}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, _SHARE_DIGITS) if whole else None


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
