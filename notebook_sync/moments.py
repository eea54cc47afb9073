"""Moments as people and models write them: a day, a moment of ISO 8601, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any

from notebook_sync.errors import UsageError

_AGO = re.compile(r"([0-9]{1,6})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_DAYS_AGO = {"today": 0, "yesterday": 1}


def moment(given: str | date, zone: tzinfo, now: datetime) -> datetime:
    """The moment in UTC. A day is its first moment, and a time without an offset is in `zone`. Raises UsageError."""
    if isinstance(given, date):
        found = given if isinstance(given, datetime) else datetime.combine(given, time.min)
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    text = given.strip()
    try:
        if ago := _AGO.fullmatch(text):
            return (now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).astimezone(UTC)
        if text.casefold() in _DAYS_AGO:
            day = now.astimezone(zone).date() - timedelta(days=_DAYS_AGO[text.casefold()])
            return moment(day, zone, now)
        return moment(datetime.fromisoformat(text), zone, now)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is not a date; write a day like 2026-02-18, a moment like 2026-02-18T09:30, today, yesterday, "
            "or how long ago: 12h, 7d"
        ) from None


def moment_given(notebook: Any, text: str | None) -> datetime | None:
    """A day, a moment or how long ago, in the notebook's timezone; None for nothing. Raises UsageError."""
    return None if text is None else moment(text, notebook.settings.timezone, datetime.now(UTC))
