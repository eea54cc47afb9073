"""How a fact lives: what it counts for now, and whether it is stale, spent or has proved itself. Pure.

What is computed here is never kept: asking twice changes nothing, and a fact that nobody uses fades by itself.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta

from notebook_sync.errors import UsageError
from notebook_sync.files.fact_comment import HINTS
from notebook_sync.mirror.facts import Fact
from notebook_sync.settings import MemorySettings

# What it adds to a fact's importance to be confirmed, or said once more. To be brought back from the archive, too, adds
# something: where the files are followed, for a person may do it by hand.
REINFORCED, MERGED = 0.1, 0.05
OWNER = "owner"
"""The actor of what is done in an owner session."""
_A_USE, _MOST_BY_USE, _A_DAY_OLD = 0.05, 0.5, 0.01
_SUGGESTED = ((0.8, 0.005), (0.5, 0.01), (0.3, 0.02))
_FASTEST = 0.05
_DAY = timedelta(days=1)


def importance_of(hint: str | float) -> float:
    """The importance that a hint names (core, high, medium, low), or that a number is. Raises UsageError."""
    if isinstance(hint, str) and hint.strip().casefold() in HINTS:
        return HINTS[hint.strip().casefold()]
    try:
        importance = math.nan if isinstance(hint, bool) else float(hint)
    except ValueError:
        importance = math.nan
    if not 0 <= importance <= 1:
        raise UsageError(f"importance is {', '.join(HINTS)} or a number from 0 to 1, not {hint!r}")
    return importance


def effective(fact: Fact, now: datetime) -> float:
    """What a fact counts for now, 0 to 1:

    clamp((base - days since access · rate + min(.5, .05 · accesses)) / (1 + .01 · days since creation))

    A fact that was never accessed counts from its creation, a time to come as now. Facts in core.md lose nothing.
    """
    gained = fact.importance + min(_MOST_BY_USE, _A_USE * max(fact.access_count, 0))
    if fact.is_core:
        return clamp(gained)
    lost = days_since_access(fact, now) * fact.decay_rate
    return clamp((gained - lost) / (1 + _A_DAY_OLD * _days(fact.created_at, now)))


def days_since_access(fact: Fact, now: datetime) -> float:
    """Days, and parts of one, since the fact was used, or made where it never was."""
    return _days(fact.last_accessed or fact.created_at, now)


def suggested_rate(importance: float) -> float:
    """What a fact of this importance should lose a day."""
    return next((rate for least, rate in _SUGGESTED if importance >= least), _FASTEST)


def is_stale(fact: Fact, now: datetime, settings: MemorySettings) -> bool:
    """Whether nobody used it for `stale_days`."""
    return days_since_access(fact, now) >= settings.stale_days


def is_spent(fact: Fact, now: datetime, settings: MemorySettings) -> bool:
    """Whether it counts for so little that it goes to the archive; what is in core.md never does."""
    stands = fact.gone_at is None and not fact.is_core and not fact.is_archived
    return stands and effective(fact, now) < settings.archive_below


def is_kept_by_pin(fact: Fact, settings: MemorySettings) -> bool:
    """Whether a person pinned it to so much that the machine never archives it."""
    return fact.pinned and fact.importance >= settings.archive_below


def deserves_core(fact: Fact, now: datetime, settings: MemorySettings) -> bool:
    """Whether it was used often enough, and counts for enough, to be kept in core.md."""
    stands = fact.gone_at is None and not fact.is_core and not fact.is_archived
    used = fact.access_count >= settings.promote_accesses
    return stands and used and effective(fact, now) > settings.promote_above


def is_vouched_for(fact: Fact, settings: MemorySettings) -> bool:
    """Whether the owner is among those who reinforced it since it has its wording, and each of them counted once a day
    they did so `promote_accesses` times."""
    days: set[tuple[date, str]] = set()
    for event in fact.source_history:
        if event["action"] in ("reworded", "merged"):
            days.clear()
        elif event.get("actor"):
            days.add((event["at"].date(), event["actor"]))
    return len(days) >= settings.promote_accesses and any(actor == OWNER for _, actor in days)


def clamp(value: float) -> float:
    """The value from 0 to 1 that is nearest; what is no number is 0."""
    return 0.0 if math.isnan(value) else min(1.0, max(0.0, value))


def _days(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since) / _DAY)
