"""Moments as people and models write them: a day, a moment of ISO 8601, or how long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo

from notebook_sync.errors import UsageError
from notebook_sync.notebook import Notebook

_AGO = re.compile(r"([0-9]{1,6})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def moment_given(notebook: Notebook, text: str | None) -> datetime | None:
    """A day, a moment or how long ago, in the notebook's timezone; None for nothing. Raises UsageError."""
    return None if text is None else moment(text, notebook.settings.timezone, datetime.now(UTC))


def moment(text: str, zone: tzinfo, now: datetime) -> datetime:
    """The moment in UTC. A day is its first moment, and what names no offset is meant, in `zone`. Raises UsageError."""
    text = text.strip()
    try:
        if ago := _AGO.fullmatch(text):
            return (now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})).astimezone(UTC)
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is no date; write a day as 2026-02-18, a moment as 2026-02-18T09:30, or how long ago: 12h, 7d"
        ) from None
