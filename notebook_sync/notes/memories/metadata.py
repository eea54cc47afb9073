"""The metadata guardian: when a memory was made, who says so, and how much it matters. Pure.

What cannot be taken is refused where that is asked for, else replaced, and it is told that it was.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from notebook_sync.errors import UsageError
from notebook_sync.files.memories import DEFAULT_PRIORITY, HIGHEST_PRIORITY, agent_from, agents_in, priority_from
from notebook_sync.sessions import is_agent_name

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Metadata:
    """`created_at` is aware, in UTC. `assumed`: what of this nobody said so that it could be taken: created_at, agent,
    priority. `is_clamped`: the priority is the nearest to one that is beyond the scale."""

    created_at: datetime
    agent: str
    priority: int
    assumed: tuple[str, ...] = ()
    is_clamped: bool = False


def guarded(
    *, created_at: object, agent: object, tags: Iterable[str], priority: object, now: datetime, strict: bool = False
) -> Metadata:
    """What a memory's metadata is to be.

    created_at is an ISO 8601 date or time; else `now`. The agent is the one that is named, else that of the first tag
    `agent:NAME`; else "unknown". The priority is the nearest number from 1 to 10, 7 where none is given. With `strict`,
    raises UsageError for what is missing, cannot be taken, or is beyond the scale.
    """
    assumed = []
    moment = moment_of(created_at)
    if moment is None:
        if strict:
            raise UsageError(
                f"created_at is {_shown(created_at)}; give an ISO 8601 date or time, as 2026-02-16T09:30:00Z"
            )
        assumed.append("created_at")
        moment = now
    name = agent_of(agent, tags)
    if not name:
        if strict:
            raise UsageError("nobody is named who says this; give an agent, or a tag as agent:scribe")
        assumed.append("agent")
        name = UNKNOWN
    rank = priority_of(priority)
    is_clamped = rank is not None and _is_beyond(priority)
    if strict and (rank is None or is_clamped):
        raise UsageError(f"the priority is {_shown(priority)}; give a number from 1 to 10")
    if rank is None:
        assumed.append("priority")
        rank = DEFAULT_PRIORITY
    return Metadata(moment, name, rank, tuple(assumed), is_clamped)


def moment_of(value: object) -> datetime | None:
    """An ISO 8601 date or time in UTC, which one without a zone is taken for; None for anything else."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    try:
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    except OverflowError:
        return None


def agent_of(agent: object, tags: Iterable[str]) -> str:
    """The name of the agent, from its field or else the first tag that names one; "" where neither does."""
    named = agent_from(agent) if isinstance(agent, str) else None
    for name in (named, *agents_in(tags)):
        if name and is_agent_name(name) and name.casefold() != UNKNOWN:
            return name
    return ""


def priority_of(priority: object) -> int | None:
    """The nearest number from 1 to 10, 7 where none is given; None for what is no number."""
    if priority is None or priority == "":
        return DEFAULT_PRIORITY
    with suppress(ValueError, OverflowError):
        return priority_from(priority)
    return None


def _is_beyond(priority: object) -> bool:
    """Whether what `priority_of` takes is less or more than the scale has."""
    if not isinstance(priority, int | float | str) or priority == "":
        return False
    return not 1 <= float(priority) <= HIGHEST_PRIORITY


def _shown(value: object) -> str:
    return "missing" if value is None or value == "" else f"{str(value)[:40]!r}"
