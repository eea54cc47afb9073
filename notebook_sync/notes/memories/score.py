"""What a memory counts for: how often and how lately it was used, how much it matters, how old it is. Pure.

    usage     min(1, ln(1 + accesses) / 5)
    recency   2 ^ (-days since it was used / 7), from when it was made where it never was
    priority  its priority / 10
    age       1 - 2 ^ (-days since it was made / 30)
    score     .30 usage + .35 recency + .25 priority - .10 age, 0 to 1

Weights and half-lives are settings.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from notebook_sync.mirror.memories import UNSCORED, Memory
from notebook_sync.settings import MemorySettings

_MANY_ACCESSES = 5.0  # the logarithm at which usage counts in full: 147 accesses
_A_DAY = timedelta(days=1)


def score_of(memory: Memory, now: datetime, settings: MemorySettings) -> float:
    """What the memory counts for at `now`. What is dated later counts as of now."""
    usage = min(1.0, math.log1p(max(memory.accesses, 0)) / _MANY_ACCESSES)
    used = memory.last_accessed or memory.created_at
    recency = _halved(now - used, settings.recency_half_life_days)
    age = 1.0 - _halved(now - memory.created_at, settings.age_half_life_days)
    score = (
        settings.usage * usage
        + settings.recency * recency
        + settings.priority * memory.priority / 10
        - settings.age * age
    )
    return min(max(score, 0.0), 1.0)


def known_score(memory: Memory) -> float:
    """The score as it was computed last: it stays what it is until it is computed anew."""
    return UNSCORED if memory.score is None else memory.score


def told_score(memory: Memory) -> float:
    """The known score as everybody is told it, to four places: what is rounded further is the same everywhere then."""
    return round(known_score(memory), 4)


def _halved(span: timedelta, half_life_days: float) -> float:
    """1 now, 1/2 after a half-life; with none, 0 as soon as any time has passed."""
    days = max(span / _A_DAY, 0.0)
    if half_life_days <= 0:
        return 0.0 if days else 1.0
    return float(2.0 ** (-days / half_life_days))
