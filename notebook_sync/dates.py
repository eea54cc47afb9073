"""Moments as people and models write them in arguments: a day, a moment of ISO 8601, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo

from notebook_sync.errors import UsageError

_AGO = re.compile(r"([0-9]{1,6})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_DAYS_AGO = {"today": 0, "yesterday": 1}


def moment(given: str, zone: tzinfo, now: datetime) -> datetime:
    """The moment in UTC. A day is its first moment, and a time without an offset is in `zone`. Raises UsageError."""
    text = given.strip()
    try:
        if ago := _AGO.fullmatch(text):
            found = now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        elif text.casefold() in _DAYS_AGO:
            day = now.astimezone(zone).date() - timedelta(days=_DAYS_AGO[text.casefold()])
            found = datetime.combine(day, time.min)
        else:
            found = datetime.fromisoformat(text)
        return in_utc(found, zone)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is not a date",
            next="write a day like 2026-02-18, a moment like 2026-02-18T09:30, today, yesterday, or 12h, 7d",
        ) from None


def in_utc(found: datetime, zone: tzinfo) -> datetime:
    """The moment in UTC; one without an offset is in `zone`."""
    return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
