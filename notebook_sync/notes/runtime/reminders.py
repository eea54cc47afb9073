"""The grammar of runtime/reminders.md: tasks with a date, recurrences, and what one waits for. Pure.

    ## Today, ## This Week      - [ ] Task [due: 2026-03-01 09:00]
    ## Recurring                - Every Monday at 09:00: Weekly status
    ## Waiting For              - Thing [expected: Feb 28]

Dates and times are local to the notebook; a date without a year is the one nearest to today.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from notebook_sync.notes.runtime.entries import Contents, Entry, Malformed, read_entries
from prompt.dates import read_moment, suggested_moment

PATH = "runtime/reminders.md"
SECTIONS = ("Today", "This Week", "Recurring", "Waiting For")

Kind = Literal["task", "recurring", "waiting"]


@dataclass(frozen=True, slots=True)
class Reminder:
    """One reminder. `when` is when it is due or expected, at midnight where there is no time; None for no date.

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
_EXAMPLES: dict[Kind, str] = {
    "task": "- [ ] Task [due: {} 09:00]",
    "recurring": "- Every Monday at 09:00: Weekly status",
    "waiting": "- Thing [expected: {}]",
}


def read_reminders(contents: Contents, today: date) -> tuple[list[Reminder], list[Malformed]]:
    """The reminders under the known sections, and what is malformed."""
    return read_entries(contents, today, read_reminder)


_BOX = re.compile(r"\[([ xX]?)\]\s*")
_EVERY = re.compile(r"every\s+(.+?)\s*:\s+(.+)", re.IGNORECASE)
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_RECURRENCE = re.compile(
    rf"(?:day|weekday|week|(?:{_WEEKDAYS})(?:(?:\s*,\s*|\s+and\s+|\s*,\s*and\s+)(?:{_WEEKDAYS}))*"
    r"|month(?:\s+on\s+the\s+(?:[12]?\d|3[01])(?:st|nd|rd|th)?)?|year)"
    r"(?:\s+at\s+(?:[01]?\d|2[0-3]):[0-5]\d)?",
    re.IGNORECASE,
)
# No bracket inside and a limit: a line of nothing but openings would be searched to its end from each.
_WHEN = re.compile(r"\[ ?(due|expected)\b:? ?([^\[\]]{0,80})\]", re.IGNORECASE)


def read_reminder(entry: Entry, today: date) -> Reminder | Malformed | None:
    """One entry as a reminder of its section's kind; None in a section without reminders."""
    section = entry.headings[0]
    kind = KINDS.get(section.casefold())
    if kind is None:
        return None
    box = _BOX.match(entry.text)
    text = entry.text[box.end() :] if box else entry.text
    done = box is not None and box[1] in ("x", "X")
    dates = _WHEN.findall(text)
    said = " ".join(_WHEN.sub(" ", text).split())
    when = read_moment(dates[-1][1], today) if dates else None
    recurring = _EVERY.fullmatch(text) if kind == "recurring" else None
    write = _EXAMPLES[kind].format(suggested_moment("", today))
    if not entry.in_list:
        reason = "is not a list item, so it is not a reminder"
    elif kind == "recurring":
        if recurring and _RECURRENCE.fullmatch(recurring[1]):
            return Reminder(entry.line, section, kind, recurring[2], done, every=recurring[1])
        reason = "has no recurrence that can be read"
    elif kind == "task" and box is None:
        reason = "has no checkbox"
    elif box is not None and not box[1]:
        reason = "has a checkbox without a space in it"
    elif not said:
        reason = "has no text"
    elif dates and when is None:
        word, unread = dates[-1]
        reason, write = f"[{word}: {unread}] is not a date", f"[{word}: {suggested_moment(unread, today)}]"
    else:
        return Reminder(entry.line, section, kind, said, done, when)
    return Malformed(entry.line, reason, write, entry.text)
