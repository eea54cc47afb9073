"""The metadata of memories: when each was made, who says so, and how much it matters. Pure.

What cannot be used is replaced with a warning, or refused where that is asked for; nothing is made up silently.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from notebook_sync.errors import UsageError
from notebook_sync.files.fields import AGENT, DEFAULT_PRIORITY, HIGHEST_PRIORITY
from notebook_sync.files.frontmatter import as_utc
from notebook_sync.sessions import Session

UNKNOWN = "unknown"
_GO_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) ([+-]\d{4})(?: .*)?")
_DAY = re.compile(r"\d{4}/\d{1,2}/\d{1,2}|\d{8}")
# Seconds since 1970, or finer; a number of fewer digits counts something else.
_NUMBER = re.compile(r"[1-9]\d{8,18}(?:\.\d{1,9})?")
_LATEST = 1e11


class Metadata(NamedTuple):
    """When a memory was made, who says so and how much it matters. `assumed` says what nobody said so that it could be
    used, `warnings` say that, too, and what was adjusted."""

    created_at: datetime
    agent: str
    priority: int
    assumed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def guarded(
    *,
    created_at: object,
    agent: object,
    tags: Iterable[str],
    priority: float | None,
    now: datetime,
    zone: tzinfo,
    otherwise: str = "",
    strict: bool = False,
) -> Metadata:
    """The metadata of a memory: the time in ISO 8601, else `now`; the agent that is named, else that of the first tag
    `agent:NAME`, else `otherwise`, else "unknown"; the nearest priority from 1 to 10, by default 7.
    `strict`: raises UsageError instead of assuming anything."""
    moment, name = moment_of(created_at, zone), agent_of(agent, tags) or otherwise
    rank = DEFAULT_PRIORITY if priority is None else min(max(priority, 1), HIGHEST_PRIORITY)
    rank = round(rank) if math.isfinite(rank) else DEFAULT_PRIORITY
    warnings = {}
    if moment is None:
        warnings["created_at"] = f"created_at is {_shown(created_at)}, not an ISO 8601 date or time: now counts"
    if not name:
        warnings["agent"] = "no agent is named: it is unknown; give an agent, or a tag like agent:scribe"
    if priority is not None and not 1 <= priority <= HIGHEST_PRIORITY:
        warnings["priority"] = f"the priority is a number from 1 to {HIGHEST_PRIORITY}: {rank} counts"
    if strict and warnings:
        raise UsageError(next(iter(warnings.values())).partition(": ")[0], next="correct it, or leave out strict")
    assumed = tuple(field for field in warnings if field != "priority")
    return Metadata(moment or now, name or UNKNOWN, rank, assumed, tuple(warnings.values()))


def moment_of(value: object, zone: tzinfo) -> datetime | None:
    """An ISO 8601 date or time in UTC, one without a zone in `zone`; None for anything else."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = datetime.fromisoformat(value.strip())
    return as_utc(value, zone) if isinstance(value, datetime) else None


def odd_moment(value: object, zone: tzinfo) -> datetime | None:
    """The one moment that a value means in another form than ISO 8601: Go's, that of mails, a day without hyphens, or
    a number since 1970; None for none."""
    text = str(value).strip()
    if found := _GO_TIME.fullmatch(text):
        return moment_of(f"{found[1]}{found[2]}", zone)
    if found := _DAY.fullmatch(text):
        year, month, day = found[0].split("/") if "/" in text else (text[:4], text[4:6], text[6:])
        return moment_of(f"{year}-{month:0>2}-{day:0>2}", zone)
    if _NUMBER.fullmatch(text):
        number = float(text)
        while number >= _LATEST:
            number /= 1000
        return datetime.fromtimestamp(number, UTC).replace(microsecond=0)
    with suppress(ValueError, TypeError, IndexError, OverflowError):
        mailed = parsedate_to_datetime(text)
        return mailed.astimezone(UTC) if mailed.tzinfo else None
    return None


def agent_of(agent: object, tags: Iterable[str]) -> str:
    """The name of the agent: the one that is given, else that of the first tag that names one; "" without any. Nobody
    is `unknown`, and an agent by the name of the program is none."""
    named = [agent] if isinstance(agent, str) else []
    for each in (*named, *(tag for tag in tags if tag.startswith(AGENT))):
        name = each.removeprefix(AGENT).strip()
        with suppress(UsageError):
            if name:
                return Session.task(name).agent
    return ""


def _shown(value: object) -> str:
    return "missing" if value in (None, "") else repr(str(value)[:40])
