"""What facts counted for, and will count for if nobody uses them, as curves, by the formula that holds now. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from notebook_sync.mirror.facts import Fact
from notebook_sync.notes.fact_life import effective

# When, and effective importance, 0 to 1.
Point = tuple[datetime, float]

_USES = frozenset(("reinforced", "merged"))
_SAMPLES = 60
_JUST_BEFORE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Curve:
    """`past` ends where `ahead` begins: now. `past` begins with the fact, or with the picture."""

    fact: Fact
    past: Sequence[Point]
    ahead: Sequence[Point]

    @property
    def now(self) -> float:
        return self.past[-1][1]

    @property
    def at_the_end(self) -> float:
        return self.ahead[-1][1]


def curve_of(fact: Fact, since: datetime, now: datetime, until: datetime) -> Curve:
    """The curve of one fact from `since` to `until`.

    Its importance in the past is what its history tells, and of a pinned one what it is pinned at. Uses of which the
    history does not tell the time are taken to have been evenly spread, the last of them when the fact was last used.
    """
    begins = min(max(since, fact.created_at), now)
    marks = [] if fact.pinned else _marks(fact)
    uses = _uses(fact, now)
    jumps = {at for at in (*uses, *(at for at, _ in marks)) if begins < at < now}
    times = sorted({*_even(begins, now), *jumps, *(at - _JUST_BEFORE for at in jumps if at - _JUST_BEFORE > begins)})
    past = [(at, effective(_as_of(fact, at, marks, uses), at)) for at in times if at < now]
    return Curve(
        fact,
        [*past, (now, effective(fact, now))],
        [(at, effective(fact, at)) for at in _even(now, until)],
    )


def _as_of(fact: Fact, at: datetime, marks: Sequence[Point], uses: Sequence[datetime]) -> Fact:
    used = [use for use in uses if use <= at]
    known = [importance for when, importance in marks if when <= at]
    importance = known[-1] if known else marks[0][1] if marks else fact.importance
    return replace(fact, importance=importance, access_count=len(used), last_accessed=used[-1] if used else None)


def _marks(fact: Fact) -> list[Point]:
    """When its history says what importance it was given."""
    told = [(_moment(event), event.get("importance")) for event in fact.source_history]
    return sorted(
        (at, float(importance))
        for at, importance in told
        if at is not None and isinstance(importance, (int, float)) and 0 <= importance <= 1
    )


def _uses(fact: Fact, now: datetime) -> list[datetime]:
    told = [_moment(event) for event in fact.source_history if event.get("action") in _USES]
    known = sorted(at for at in told if at is not None and at <= now)[-fact.access_count :] if fact.access_count else []
    untold = fact.access_count - len(known)
    last = min(fact.last_accessed or now, now)
    step = (last - fact.created_at) / untold if untold > 0 and last > fact.created_at else timedelta()
    return sorted([*known, *(last - step * back for back in range(untold))])


def _moment(event: Mapping[str, Any]) -> datetime | None:
    at = event.get("at")
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            return None
    if not isinstance(at, datetime):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _even(begin: datetime, end: datetime) -> Iterator[datetime]:
    step = (end - begin) / _SAMPLES
    yield from (begin + step * number for number in range(_SAMPLES))
    yield end


def crossing(points: Sequence[Point], level: float) -> datetime | None:
    """When a curve falls below a level for the first time; None where it does not."""
    for (_, before), (at, after) in pairwise(points):
        if before >= level > after:
            return at
    return None
