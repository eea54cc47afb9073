"""The grammar of runtime/reminders.md: tasks with a day, recurrences, and what is waited for. Pure.

    ## Today, ## This Week      - [ ] Task [due: 2026-03-01 09:00]
    ## Recurring                - Every Monday at 09:00: Weekly status
    ## Waiting For              - Thing [expected: Feb 28]

Days and times are the notebook's own, without a timezone; a day without a year is the one nearest to today.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Literal

from notebook_sync.notes.runtime.entries import Contents, Entry
from notebook_sync.notes.runtime.rules import Malformed

PATH = "runtime/reminders.md"
SECTIONS = ("Today", "This Week", "Recurring", "Waiting For")

Kind = Literal["task", "recurring", "waiting"]


@dataclass(frozen=True, slots=True)
class Reminder:
    """One reminder. `when` is the day it is due or expected, at midnight where no time is named; None for no day.

    A recurring one has `every`, as it is written ("Monday at 09:00"), and no `when`.
    """

    line: int
    section: str
    kind: Kind
    text: str
    done: bool = False
    when: datetime | None = None
    every: str = ""


KINDS: dict[str, Kind] = {
    "today": "task",
    "this week": "task",
    "recurring": "recurring",
    "waiting for": "waiting",
}
_GRAMMAR: dict[Kind, str] = {
    "task": "- [ ] Task [due: YYYY-MM-DD 09:00]",
    "recurring": "- Every Monday at 09:00: Weekly status",
    "waiting": "- Thing [expected: Mon DD]",
}


def read_reminders(contents: Contents, today: date) -> tuple[list[Reminder], list[Malformed]]:
    """The reminders under the known sections, and what looks like one there and is none."""
    reminders: list[Reminder] = []
    malformed: list[Malformed] = []
    for entry in contents.entries:
        kind = KINDS.get(entry.headings[0].casefold())
        if kind is None:
            continue
        read = read_reminder(entry, kind, today)
        if isinstance(read, Reminder):
            reminders.append(read)
        else:
            malformed.append(read)
    return reminders, malformed


_BOX = re.compile(r"\[([ xX]?)\]\s*")
_EVERY = re.compile(r"every\s+(.+?)\s*:\s+(.+)", re.IGNORECASE)
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_RECURRENCE = re.compile(
    rf"(?:day|weekday|week|(?:{_WEEKDAYS})(?:(?:\s*,\s*|\s+and\s+|\s*,\s*and\s+)(?:{_WEEKDAYS}))*"
    r"|month(?:\s+on\s+the\s+(?:[12]?\d|3[01])(?:st|nd|rd|th)?)?|year)"
    r"(?:\s+at\s+(?:[01]?\d|2[0-3]):[0-5]\d)?",
    re.IGNORECASE,
)
# No bracket within, and an end to it: a line of nothing but openings would be searched to its end from each of them.
_WHEN = re.compile(r"\[(due|expected)\b:? ?([^\[\]]{0,80})\]", re.IGNORECASE)


def read_reminder(entry: Entry, kind: Kind, today: date) -> Reminder | Malformed:
    """One entry as a reminder of its section's kind."""
    example = _GRAMMAR[kind]
    if not entry.in_list:
        return Malformed(entry.line, "not a list item, so no reminder", example, entry.text)
    box = _BOX.match(entry.text)
    text = entry.text[box.end() :] if box else entry.text
    done = box is not None and box[1] in ("x", "X")
    if kind == "recurring":
        found = _EVERY.fullmatch(text)
        if found is None or not _RECURRENCE.fullmatch(found[1]):
            return Malformed(entry.line, "names no recurrence that can be read", example, entry.text)
        return Reminder(entry.line, entry.headings[0], kind, found[2], done, every=found[1])
    if kind == "task" and box is None:
        return Malformed(entry.line, "has no box to tick", example, entry.text)
    if box is not None and not box[1]:
        return Malformed(entry.line, "has a box without a space in it", example, entry.text)
    days = _WHEN.findall(text)
    told = " ".join(_WHEN.sub(" ", text).split())
    if not told:
        return Malformed(entry.line, "says nothing", example, entry.text)
    when = read_when(days[-1][1], today) if days else None
    if days and when is None:
        kind_of_day, day = days[-1]
        reason = f"[{kind_of_day}: {day}] is no day that can be read"
        return Malformed(entry.line, reason, example, entry.text, day=day)
    return Reminder(entry.line, entry.headings[0], kind, told, done, when)


_DAY_FORMATS = ("%Y-%m-%d", "%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y")
_TIME = re.compile(r"(?:\s+(?:at\s+)?|T)([01]?\d|2[0-3]):([0-5]\d)$")
_YEAR = re.compile(r"\b\d{4}\b")


def read_when(text: str, today: date) -> datetime | None:
    """`2026-03-01 09:00`, `2026-03-01`, `Feb 28`, `28 February 2026`, `Feb 28 at 9:00`; None for anything else."""
    text = " ".join(text.replace(",", " ").split())
    clock = _TIME.search(text)
    at = time(int(clock[1]), int(clock[2])) if clock else time()
    day_text = text[: clock.start()] if clock else text
    if _YEAR.search(day_text):
        day = _day(day_text)
        return datetime.combine(day, at) if day else None
    years = (today.year - 1, today.year, today.year + 1)
    days = [day for year in years if (day := _day(f"{day_text} {year}"))]
    nearest = min(days, key=lambda day: abs((day - today).days), default=None)
    return datetime.combine(nearest, at) if nearest else None


def _day(text: str) -> date | None:
    for form in _DAY_FORMATS:
        try:
            return datetime.strptime(text, form).date()  # noqa: DTZ007 - the notebook's own day
        except ValueError:
            continue
    return None
