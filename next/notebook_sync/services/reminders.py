"""The reminders of runtime/reminders.md: how they are written, which are due, and one event for each that falls due.

    ## Today, ## This Week      - [ ] Task [due: 2026-03-01 09:00]
    ## Recurring                - Every Monday at 09:00: Weekly status
    ## Waiting For              - Thing [expected: Feb 28]

Dates and times are local to the notebook; a date without a year is the one nearest to today. The dates of Dataview and
of Obsidian's Tasks are understood, and so are their states. An hour that the clock skips is the hour after it, and one
that it shows twice is the first.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from typing import Literal
from zoneinfo import ZoneInfo

from notebook_sync.services.assembling import REMINDERS, read_runtime, require_runtime
from notebook_sync.services.core import Core
from notebook_sync.services.grammar import Entry, Malformed, plain_heading, read_entries
from notebook_sync.sessions import PROGRAM, Session
from prompt.dates import read_moment, suggested_moment, task_dates

SECTIONS = ("Today", "This Week", "Recurring", "Waiting For")
# A clock may be set and a machine may sleep, and no timer notices either.
LONGEST_SECONDS = 60.0

Kind = Literal["task", "recurring", "waiting"]
State = Literal["overdue", "due", "upcoming", "open", "done"]

_ORDER: tuple[State, ...] = ("overdue", "due", "upcoming", "open", "done")
_KINDS: dict[str, Kind] = {"today": "task", "this week": "task", "recurring": "recurring", "waiting for": "waiting"}
_EXAMPLES: dict[Kind, str] = {
    "task": "- [ ] Task [due: {} 09:00]",
    "recurring": "- Every Monday at 09:00: Weekly status",
    "waiting": "- Thing [expected: {}]",
}
_BOX = re.compile(r"\[(.?)\](?:\s+|$)")
# Ticked, cancelled and forwarded; any other mark is a state of an open task.
_DONE = ("x", "X", "-", ">")
# Which date of an entry counts, the first that it has.
_DATES: dict[Kind, tuple[str, ...]] = {
    "task": ("due", "scheduled", "expected"),
    "recurring": (),
    "waiting": ("expected", "due", "scheduled"),
}
_MARKUP = re.compile(
    r"[\[(]\s*+(?:due|expected|scheduled|start|completion|created|cancelled)\s*+::?[^\[\]()]*+[\])]"
    r"|[📅⏳🛫✅➕❌]\ufe0f?\s*+\d{4}-\d{2}-\d{2}",
    re.IGNORECASE,
)
_RECURRING = re.compile(
    r"(?:every\s+(.+?)|(daily|weekly|monthly|yearly|weekdays)(\s+at\s+[^:]+?(?::\d\d)?)?)\s*:\s+(.+)", re.IGNORECASE
)
_ADVERBS = {"daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "weekdays": "weekday"}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = rf"(?:{'|'.join(_WEEKDAYS)})s?"
_EVERY = re.compile(
    rf"(day|weekday|week|{_WEEKDAY}(?:(?:\s*,\s*and\s+|\s*,\s*|\s+and\s+|\s*&\s*){_WEEKDAY})*"
    r"|month(?:\s+on\s+the\s+(?:[12]?\d|3[01])(?:st|nd|rd|th)?)?|year)(?:\s+at\s+(\S.*))?",
    re.IGNORECASE,
)
_DAY_OF_MONTH = re.compile(r"\d+")
# A time is now, and not past, for as long.
_A_MINUTE = timedelta(minutes=1)
# Of the lines that cannot be read, an answer names so many.
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class Reminder:
    """One reminder as it is written. `when` is when it is due or expected, at midnight where there is no time; None for
    no date. A recurring one has `every` as written ("Monday at 09:00"), and no `when`."""

    line: int
    section: str
    kind: Kind
    text: str
    done: bool = False
    when: datetime | None = None
    every: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A reminder at one moment. `when` is a day, or a moment in the notebook's time zone, as ISO 8601 text; of a
    recurring one, today's if it has come, else the next; None for no date. `occurrence` is the same for the same
    reminder at the same moment, wherever its line is."""

    line: int
    section: str
    kind: Kind
    text: str
    state: State
    when: str | None
    every: str
    occurrence: str

    @property
    def is_due(self) -> bool:
        """Due or overdue."""
        return self.state in ("due", "overdue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminders:
    """A list of reminders. `unread` are lines that look like reminders and cannot be read; `problems` say why."""

    results: list[Due]
    degraded: str | None
    next: str | None
    unread: list[int]
    problems: list[str]


def read_reminders(text: str, now: datetime) -> tuple[list[Reminder], list[Malformed]]:
    """The reminders of a text that hold now, and the entries that look like reminders and cannot be read. `now` is
    local to the notebook."""
    return read_entries(text, SECTIONS, now, read_reminder)


def read_reminder(entry: Entry, today: date) -> Reminder | Malformed | None:
    """One entry as a reminder of its section's kind; None for one that is no attempt at a reminder."""
    kind, box = _KINDS.get(plain_heading(entry.section)), _BOX.match(entry.text)
    text = entry.text[box.end() :] if box else entry.text
    dates = task_dates(text)
    if kind is None:
        if not box and dates.keys().isdisjoint(("due", "expected", "scheduled")):
            return None
        where = f"is under `{entry.section}`" if entry.section else "is under no heading"
        return Malformed(entry.line, f"{where}, so it is not a reminder", f"it under {' or '.join(SECTIONS)}")
    if entry.within is not None and not box:
        return None  # a remark on the reminder around it
    said, every = " ".join(_MARKUP.sub(" ", text).split()), ""
    name = next((name for name in _DATES[kind] if name in dates), "")
    when = read_moment(dates[name], today) if name else None
    if when and not date.min.year < when.year < date.max.year:  # no moment in every time zone
        when = None
    if kind == "recurring" and (found := _RECURRING.fullmatch(text)):
        every, said = found[1] or f"{_ADVERBS[found[2].casefold()]}{found[3] or ''}", found[4]
    reason, write = "", _EXAMPLES[kind].format(suggested_moment("", today))
    if not entry.in_list:
        reason = "is not a list item, so it is not a reminder"
    elif kind == "recurring" and _days_of(every) is None:
        reason = "has no recurrence that can be read"
    elif kind == "task" and box is None:
        reason = "has no checkbox"
    elif box is not None and not box[1]:
        reason = "has a checkbox without a space in it"
    elif not said:
        reason = "has no text"
    elif name and when is None:
        reason, write = f"[{name}: {dates[name]}] is not a date", f"[{name}: {suggested_moment(dates[name], today)}]"
    if reason:
        return Malformed(entry.line, reason, write)
    return Reminder(entry.line, entry.section, kind, said, box is not None and box[1] in _DONE, when, every)


def list_reminders(core: Core, session: Session, *, due: bool) -> Reminders:
    """All reminders, or those that are due or overdue, the most urgent first. Raises NotPermitted, NoSuchNote."""
    require_runtime(core, session, REMINDERS, "notebook_reminders")
    found, malformed, problems = _reminders_now(core)
    shown, unread = [one for one in found if one.is_due or not due], sorted({one.line for one in malformed})
    named = ", ".join(map(str, unread[:_MOST_NAMED])) + (", …" if len(unread) > _MOST_NAMED else "")
    lack = f"line {named} of {REMINDERS} cannot be read, and may be due" if unread else None
    problems += [f"{REMINDERS}:{one.line}: {one.message}" for one in malformed[:_MOST_NAMED]]
    if len(malformed) > _MOST_NAMED:
        problems.append(f"{REMINDERS}: {len(malformed) - _MOST_NAMED:,} more are named by: notebook-sync check")
    degraded = None if shown else lack or next(iter(problems), None)
    return Reminders(results=shown, degraded=degraded, next=None, unread=unread, problems=problems)


def announce_due(core: Core) -> tuple[list[Due], float]:
    """Record an event for each reminder that has fallen due, once over all processes: which those are, and in how many
    seconds to ask again."""
    from notebook_sync.store.rows import Is  # only who follows a notebook asks

    found, _, _ = _reminders_now(core)
    pressing = {f"reminder:{one.occurrence}": one for one in found if one.is_due and one.when is not None}
    known = {key for (key,) in core.index.events.tuples(("key",), Is("key", "in", tuple(pressing)))}
    new = {key: one for key, one in pressing.items() if key not in known}
    for key, one in new.items():
        said = {"when": one.when, "state": one.state, "occurrence": one.occurrence}
        core.events.record("reminder_due", PROGRAM, path=REMINDERS, key=key, line=one.line, section=one.section, **said)
    seconds = seconds_until_next(datetime.now(UTC), found, core.settings.timezone)
    return list(new.values()), min(seconds, LONGEST_SECONDS)


def due_at(now: datetime, reminders: Iterable[Reminder], zone: ZoneInfo) -> list[Due]:
    """Each reminder at the moment `now`: overdue ones first, then by time, then by line."""
    found = [_due(reminder, now.astimezone(zone), zone) for reminder in reminders]
    never = datetime.max.replace(tzinfo=UTC)
    return sorted(found, key=lambda due: (_ORDER.index(due.state), _moment_of(due, zone) or never, due.line))


def seconds_until_next(now: datetime, reminders: Iterable[Due], zone: ZoneInfo) -> float:
    """From `now` until an upcoming one falls due, or until the day ends and those that recur come again."""
    tomorrow = datetime.combine(now.astimezone(zone).date() + timedelta(1), time())
    upcoming = (_moment_of(one, zone) for one in reminders if one.state == "upcoming")
    moments = [in_zone(tomorrow, zone).astimezone(UTC), *(moment for moment in upcoming if moment)]
    return max(0.0, min((moment - now).total_seconds() for moment in moments))


def in_zone(local: datetime, zone: ZoneInfo) -> datetime:
    """The moment at which clocks in `zone` show `local`, or would show it if they did not skip it."""
    return local.replace(tzinfo=zone, fold=0).astimezone(UTC).astimezone(zone)


def _reminders_now(core: Core) -> tuple[list[Due], list[Malformed], list[str]]:
    """Each reminder as it is now, what cannot be read, and what is wrong with the file."""
    (_, text, problems), zone = read_runtime(core, REMINDERS), core.settings.timezone
    now = datetime.now(zone)
    found, malformed = read_reminders(text, now.replace(tzinfo=None))
    return due_at(now, found, zone), malformed, problems


def _due(reminder: Reminder, now: datetime, zone: ZoneInfo) -> Due:
    """A reminder at the moment `now`, which is in `zone`. Moments are compared in UTC: what clocks show goes back
    once a year."""
    when, is_timed, today = reminder.when, bool(reminder.every), now.date()
    state: State = "open"
    if days := _days_of(reminder.every):
        # Each recurrence falls within a year and a day.
        ahead = (today + timedelta(number) for number in range(368))
        when = datetime.combine(next(day for day in ahead if _falls_on(days[0], day)), days[1])
    moment = in_zone(when, zone) if when else None
    if moment and when:
        is_timed = is_timed or when.time() > time()
        state = "due" if moment.astimezone(UTC) <= now.astimezone(UTC) else "upcoming"
        is_over = is_timed and moment.astimezone(UTC) + _A_MINUTE <= now.astimezone(UTC)
        if not reminder.every and (moment.date() < today or is_over):
            state = "overdue"
    elif plain_heading(reminder.section) == "today":
        state = "due"  # whenever today is
    at = moment.astimezone(UTC).isoformat() if moment else ""
    shown = moment if is_timed or when is None else when.date()
    occurrence = "\0".join((reminder.kind, reminder.every, reminder.text, at))
    return Due(
        line=reminder.line,
        section=reminder.section,
        kind=reminder.kind,
        text=reminder.text,
        state="done" if reminder.done else state,
        when=shown.isoformat() if shown else None,
        every=reminder.every,
        occurrence=sha256(occurrence.encode(errors="replace")).hexdigest()[:16],
    )


def _moment_of(due: Due, zone: ZoneInfo) -> datetime | None:
    """When a reminder falls due, in UTC; None for no date."""
    if due.when is None:
        return None
    moment = datetime.fromisoformat(due.when)
    return (moment if moment.tzinfo else in_zone(moment, zone)).astimezone(UTC)


def _days_of(every: str) -> tuple[str, time] | None:
    """The days that a recurrence names, and the time of day; None for one that cannot be read."""
    found = _EVERY.fullmatch(every)
    moment = read_moment(f"2000-01-01 at {found[2] or '00:00'}") if found else None
    return (found[1].casefold(), moment.time()) if found and moment else None


def _falls_on(days: str, day: date) -> bool:
    """Whether a recurrence falls on this day. A week begins on Monday; the 31st of a shorter month is its last day."""
    if days.startswith("month"):
        named = _DAY_OF_MONTH.search(days)
        return day.day == min(int(named[0]) if named else 1, calendar.monthrange(day.year, day.month)[1])
    whole = {
        "day": True,
        "weekday": day.weekday() < 5,
        "week": day.weekday() == 0,
        "year": (day.month, day.day) == (1, 1),
    }
    return whole.get(days, _WEEKDAYS[day.weekday()] in days)
