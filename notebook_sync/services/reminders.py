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
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from hashlib import sha256
from typing import Literal, NamedTuple, get_args

from notebook_sync.registry import Results
from notebook_sync.services.assembling import REMINDERS, read_runtime
from notebook_sync.services.core import Core
from notebook_sync.services.grammar import Entry, Grammar, Malformed, misplaced, plain_heading
from notebook_sync.sessions import PROGRAM, Session
from prompt.dates import read_moment, suggested_moment, task_dates

Kind = Literal["task", "recurring", "waiting"]
State = Literal["overdue", "due", "upcoming", "open", "done"]


class _Form(NamedTuple):
    """How the reminders below a heading are written; of `dates`, the first that an entry has counts."""

    kind: Kind
    dates: tuple[str, ...]
    example: str


SECTIONS = ("Today", "This Week", "Recurring", "Waiting For")
# A clock may be set and a machine may sleep, and no timer notices either.
LONGEST_SECONDS = 60.0

_TASK = _Form("task", ("due", "scheduled", "expected"), "- [ ] Task [due: {} 09:00]")
_FORMS = {
    "today": _TASK,
    "this week": _TASK,
    "recurring": _Form("recurring", (), "- Every Monday at 09:00: Weekly status"),
    "waiting for": _Form("waiting", ("expected", "due", "scheduled"), "- Thing [expected: {}]"),
}
_BOX = re.compile(r"\[(.?)\](?:\s+|$)")
# Ticked, cancelled and forwarded; any other mark is a state of an open task.
_DONE = ("x", "X", "-", ">")
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
# A time is now, and not past, for as long.
_A_MINUTE = timedelta(minutes=1)
# Of the lines that cannot be read, an answer words so many.
_MOST_NAMED = 20
# Behind every date.
_NEVER = "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A reminder at one moment. `when` is a day, or a moment in the notebook's time zone, as ISO 8601 text, None for no
    date; of a recurring one, today's if it has come, else the next. `every` is a recurrence as written ("Monday at
    09:00"). `occurrence` is the same for the same reminder at the same moment, wherever its line is."""

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


@dataclass(frozen=True, kw_only=True)
class Reminders(Results[Due]):
    """A list of reminders. `unread` are lines that look like reminders and cannot be read; `problems` say why, of the
    first 20."""

    unread: list[int]
    problems: list[str]


def read_reminder(entry: Entry, now: datetime) -> Due | Malformed | None:
    """One entry as a reminder of its section's kind at the moment `now`; None for one that is no attempt at one."""
    form, box, today = _FORMS.get(plain_heading(entry.section)), _BOX.match(entry.text), now.date()
    text = entry.text[box.end() :] if box else entry.text
    dates = task_dates(text)
    if form is None:
        if not box and dates.keys().isdisjoint(_TASK.dates):
            return None
        return misplaced(entry, "reminder", SECTIONS)
    if entry.is_nested and not box:
        return None  # a remark on the reminder around it
    said, every = " ".join(_MARKUP.sub(" ", text).split()), ""
    name = next((name for name in form.dates if name in dates), "")
    when = read_moment(dates[name], today) if name else None
    if when and not date.min.year < when.year < date.max.year:  # no moment in every time zone
        when = None
    if form.kind == "recurring" and (found := _RECURRING.fullmatch(text)):
        every, said = found[1] or f"{_ADVERBS[found[2].casefold()]}{found[3] or ''}", found[4]
        when = _occurrence(every, today)
    written = dates.get(name, "")
    faults = {
        "is not a list item, so it is not a reminder": not entry.in_list,
        "has no recurrence that can be read": form.kind == "recurring" and when is None,
        "has no checkbox": form.kind == "task" and box is None,
        "has a checkbox without a space in it": box is not None and not box[1],
        "has no text": not said,
        f"[{name}: {written}] is not a date": bool(name) and when is None,
    }
    if reason := next((reason for reason, is_so in faults.items() if is_so), ""):
        is_date = reason.endswith("not a date")
        write = f"[{name}: {{}}]" if is_date else form.example
        return Malformed(entry.line, f"{reason}; write: {write.format(suggested_moment(written * is_date, today))}")
    is_done = box is not None and box[1] in _DONE
    return _due(entry, form.kind, said, every, when, now, is_done=is_done)


GRAMMAR = Grammar(SECTIONS, read_reminder)


def read_reminders(text: str, now: datetime) -> tuple[list[Due], list[Malformed]]:
    """The reminders of a text that hold now, overdue ones first, then by time, then by line; and the entries that look
    like reminders and cannot be read. `now` is in the notebook's time zone."""
    found, malformed, _ = GRAMMAR.contents(text, now)
    order = get_args(State)
    found.sort(key=lambda one: (order.index(one.state), one.when or _NEVER, one.line))
    return found, malformed


def list_reminders(core: Core, session: Session, *, due: bool) -> Reminders:
    """All reminders, or those that are due or overdue, the most urgent first. Raises NotPermitted, NoSuchNote."""
    text, now, problems = read_runtime(core, session, REMINDERS, "notebook_reminders")
    found, malformed = read_reminders(text, now)
    shown, unread = [one for one in found if one.is_due or not due], sorted({one.line for one in malformed})
    named = ", ".join(map(str, unread[:_MOST_NAMED])) + (", …" if len(unread) > _MOST_NAMED else "")
    lack = f"line {named} of {REMINDERS} cannot be read, and may be due" if unread else None
    problems += [f"{REMINDERS}:{one.line}: {one.message}" for one in malformed[:_MOST_NAMED]]
    degraded = None if shown else lack or next(iter(problems), None)
    return Reminders(results=shown, degraded=degraded, unread=unread, problems=problems)


def announce_due(core: Core) -> tuple[list[Due], float]:
    """Record an event for each reminder that has fallen due, once over all processes: which those are, and in how many
    seconds to ask again."""
    from notebook_sync.store.rows import Is  # only who follows a notebook asks

    text, now, _ = read_runtime(core, PROGRAM, REMINDERS, "reminders")
    found, _ = read_reminders(text, now)
    pressing = {f"reminder:{one.occurrence}": one for one in found if one.is_due and one.when is not None}
    known = {key for (key,) in core.index.events.tuples(("key",), Is("key", "in", tuple(pressing)))}
    new = {key: one for key, one in pressing.items() if key not in known}
    for key, one in new.items():
        said = {"when": one.when, "state": one.state, "occurrence": one.occurrence}
        core.events.record("reminder_due", PROGRAM, path=REMINDERS, key=key, line=one.line, section=one.section, **said)
    return list(new.values()), min(seconds_until_next(now, found), LONGEST_SECONDS)


def seconds_until_next(now: datetime, reminders: Iterable[Due]) -> float:
    """From `now`, in the notebook's time zone, until an upcoming one falls due, or until the day ends and those that
    recur come again."""
    upcoming = (datetime.fromisoformat(one.when) for one in reminders if one.state == "upcoming" and one.when)
    moments = (datetime.combine(now.date() + timedelta(1), time()), *upcoming)
    aware = (each if each.tzinfo else in_zone(each, now.tzinfo) for each in moments)
    return max(0.0, min((each.astimezone(UTC) - now.astimezone(UTC)).total_seconds() for each in aware))


def in_zone(local: datetime, zone: tzinfo | None) -> datetime:
    """The moment at which clocks in `zone` show `local`, or would show it if they did not skip it."""
    return local.replace(tzinfo=zone, fold=0).astimezone(UTC).astimezone(zone)


def _due(
    entry: Entry, kind: Kind, text: str, every: str, when: datetime | None, now: datetime, *, is_done: bool
) -> Due:
    """A reminder at the moment `now`. Moments are compared in UTC: what clocks show goes back once a year."""
    moment = in_zone(when, now.tzinfo) if when else None
    at = moment.astimezone(UTC) if moment else None
    is_timed = bool(every) or (when is not None and when.time() > time())
    state: State = "due" if plain_heading(entry.section) == "today" else "open"  # due whenever today is
    if moment and at:
        is_over = moment.date() < now.date() or (is_timed and at + _A_MINUTE <= now)
        state = "upcoming" if at > now else "overdue" if is_over and not every else "due"
    shown = moment if is_timed or when is None else when.date()
    occurrence = "\0".join((kind, every, text, at.isoformat() if at else ""))
    return Due(
        line=entry.line,
        section=entry.section,
        kind=kind,
        text=text,
        state="done" if is_done else state,
        when=shown.isoformat() if shown else None,
        every=every,
        occurrence=sha256(occurrence.encode(errors="replace")).hexdigest()[:16],
    )


def _occurrence(every: str, today: date) -> datetime | None:
    """The occurrence of a recurrence that is today's, else the next; None for one that cannot be read."""
    found = _EVERY.fullmatch(every)
    moment = read_moment(f"2000-01-01 at {found[2] or '00:00'}") if found else None
    if not found or not moment:
        return None
    ahead = (today + timedelta(number) for number in range(368))  # each comes within a year and a day
    return datetime.combine(next(day for day in ahead if _falls_on(found[1].casefold(), day)), moment.time())


def _falls_on(days: str, day: date) -> bool:
    """Whether a recurrence falls on this day. A week begins on Monday; the 31st of a shorter month is its last day."""
    if days.startswith("month"):
        named = re.search(r"\d+", days)
        return day.day == min(int(named[0]) if named else 1, calendar.monthrange(day.year, day.month)[1])
    whole = {
        "day": True,
        "weekday": day.weekday() < 5,
        "week": day.weekday() == 0,
        "year": (day.month, day.day) == (1, 1),
    }
    return whole.get(days, _WEEKDAYS[day.weekday()] in days)
