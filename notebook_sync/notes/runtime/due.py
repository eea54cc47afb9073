"""When reminders fall due: their occurrences as moments, in the notebook's timezone. Pure.

An hour that the clock skips is the hour after it, and one that it shows twice is the first: each occurrence is one.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from typing import Any, Literal
from zoneinfo import ZoneInfo

from notebook_sync.notes.runtime.reminders import Kind, Reminder

# overdue: its day is over, or the time that it names. due: its moment has come, today. open: no day is named.
State = Literal["overdue", "due", "upcoming", "open", "done"]
_ORDER: tuple[State, ...] = ("overdue", "due", "upcoming", "open", "done")

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_AT = re.compile(r"\s+at\s+(\d{1,2}):(\d{2})$", re.IGNORECASE)
# For as long a named time is now, and not over.
_A_MINUTE = timedelta(minutes=1)
_DAY_OF_MONTH = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Due:
    """A reminder as it stands at one moment. `when` is its occurrence in the notebook's timezone: of a recurring one
    today's, where its moment has come, else the next; None for no day.

    `occurrence` names it, so that it is told of once; moving the line does not change it.
    """

    line: int
    section: str
    kind: Kind
    text: str
    state: State
    when: datetime | None
    every: str = ""

    @property
    def is_due(self) -> bool:
        """Due or overdue."""
        return self.state in ("due", "overdue")

    @property
    def occurrence(self) -> str:
        """The same for the same reminder at the same moment."""
        when = self.when.astimezone(UTC).isoformat() if self.when else ""
        return sha256("\0".join((self.kind, self.every, self.text, when)).encode()).hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {
            "line": self.line,
            "section": self.section,
            "kind": self.kind,
            "text": self.text,
            "state": self.state,
            "when": self.when.isoformat() if self.when else None,
            "every": self.every or None,
            "occurrence": self.occurrence,
        }


def standing_at(now: datetime, reminders: Iterable[Reminder], timezone: ZoneInfo) -> list[Due]:
    """Each reminder as it stands at the moment `now`: what is overdue first, then by time, then by line."""
    found = [_standing(reminder, now.astimezone(timezone), timezone) for reminder in reminders]
    return sorted(found, key=lambda due: (_ORDER.index(due.state), _moment(due), due.line))


def seconds_until_next(now: datetime, reminders: Iterable[Due], timezone: ZoneInfo) -> float:
    """From `now` until one that is upcoming falls due, or until the day ends: what recurs then comes round again."""
    tomorrow = now.astimezone(timezone).date() + timedelta(1)
    moments = [one.when for one in reminders if one.state == "upcoming" and one.when is not None]
    moments.append(in_zone(datetime.combine(tomorrow, time()), timezone))
    return max(0.0, min((moment.astimezone(UTC) - now).total_seconds() for moment in moments))


def _standing(reminder: Reminder, now: datetime, timezone: ZoneInfo) -> Due:
    when, state = _recurring(reminder.every, now, timezone) if reminder.every else _once(reminder, now, timezone)
    if reminder.done:
        state = "done"
    return Due(reminder.line, reminder.section, reminder.kind, reminder.text, state, when, reminder.every)


def _once(reminder: Reminder, now: datetime, timezone: ZoneInfo) -> tuple[datetime | None, State]:
    if reminder.when is None:
        # What stands under Today is for today, whenever that is.
        return None, "due" if reminder.section.casefold() == "today" else "open"
    when = in_zone(reminder.when, timezone)
    if when.date() < now.date() or (reminder.when.time() > time() and _is_over(when, now)):
        return when, "overdue"
    return when, "due" if _has_come(when, now) else "upcoming"


def _recurring(every: str, now: datetime, timezone: ZoneInfo) -> tuple[datetime, State]:
    at = _AT.search(every)
    clock = time(int(at[1]), int(at[2])) if at else time()
    pattern = (every[: at.start()] if at else every).casefold()
    today = now.date()
    if _falls_on(pattern, today):
        when = in_zone(datetime.combine(today, clock), timezone)
        return when, "due" if _has_come(when, now) else "upcoming"
    return in_zone(datetime.combine(_next(pattern, today), clock), timezone), "upcoming"


def _next(pattern: str, after: date) -> date:
    # Every recurrence that the grammar knows comes round within a year and a day.
    return next(day for n in range(1, 368) if _falls_on(pattern, day := after + timedelta(n)))


def _falls_on(pattern: str, day: date) -> bool:
    """Whether a recurrence falls on this day. A week begins on Monday; the 31st of a shorter month is its last day."""
    if pattern == "day":
        return True
    if pattern == "weekday":
        return day.weekday() < _WEEKDAYS.index("saturday")
    if pattern == "week":
        return day.weekday() == 0
    if pattern == "year":
        return (day.month, day.day) == (1, 1)
    if pattern.startswith("month"):
        named = _DAY_OF_MONTH.search(pattern)
        return day.day == min(int(named[0]) if named else 1, calendar.monthrange(day.year, day.month)[1])
    return _WEEKDAYS[day.weekday()] in pattern


def in_zone(local: datetime, timezone: ZoneInfo) -> datetime:
    """The moment at which clocks in `timezone` show `local`, or would show it if they did not skip it."""
    return local.replace(tzinfo=timezone, fold=0).astimezone(UTC).astimezone(timezone)


# Two moments of one timezone are compared by what its clocks show, and those go back once a year.
def _has_come(when: datetime, now: datetime) -> bool:
    return when.astimezone(UTC) <= now.astimezone(UTC)


def _is_over(when: datetime, now: datetime) -> bool:
    return when.astimezone(UTC) + _A_MINUTE <= now.astimezone(UTC)


def _moment(due: Due) -> datetime:
    return due.when.astimezone(UTC) if due.when else datetime.max.replace(tzinfo=UTC)
