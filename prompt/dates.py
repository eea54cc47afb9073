"""The one reader of dates in rules, reminders and headings, for the prompt and for the notebook.

A datetime here is naive and local to the notebook's timezone. No search backtracks, so hostile text takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_NAMED = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\.? {_MONTH}\.?|{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?)"
# The largest patterns are texts: `re` compiles them for the first date, 2 ms that most commands do not wait for.
_DAY = rf"(?:\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}\.\d{{1,2}}\.\d{{4}}|{_NAMED} \d{{4}})"
_DATED = rf"(?i)(?<![\w.]){_DAY}(?=T\d|\b)(?!\.\d)"
# What each line with a date has, next to a year: most lines with a number of four digits have no date.
_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_PART_OF_DATE = re.compile(rf"\d[-.\u2010\u2011\u2212]\d|{'|'.join(_MONTHS)}", re.IGNORECASE)
_MOMENT = (
    rf"(?i)(?:(?P<day>{_DAY})|(?P<named>{_NAMED}))"
    r"(?:(?: (?:at )?|T)(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::\d{2})?)?(?: ?(?P<half>[ap])\.?m\.?)?)?"
)
_CLOCK = re.compile(r"(?<!\d)(?:[01]?\d|2[0-3]):[0-5]\d(?!\d)")
_MONTH_NAME = re.compile(rf"(?<![^\W\d_]){_MONTH}(?![^\W\d_])", re.IGNORECASE)
# Possessive quantifiers give nothing back, and a bracket's content ends where the next bracket of its kind opens.
_BRACKET = re.compile(
    r"\[\s*+(due|expected|from|until)(?![^\W\d])([^\[\]]*+)\]|\(\s*+(from|until)(?![^\W\d])([^()]*+)\)", re.IGNORECASE
)
_SEPARATOR = re.compile(r"\b(?:until|to)\b|[–—]| - ", re.IGNORECASE)
# Dates of a task: brackets of this project and of Dataview, and the signs of Obsidian's Tasks.
_SIGNS = {"📅": "due", "⏳": "scheduled", "🛫": "start", "✅": "completion", "➕": "created", "❌": "cancelled"}
_FIELD = r"(due|expected|scheduled|start|completion|created|cancelled)\s*+::?"
_TASK_DATE = (
    rf"(?i)\[\s*+{_FIELD}([^\[\]]*+)\]|\(\s*+{_FIELD}([^()]*+)\)"
    rf"|([{''.join(_SIGNS)}])\ufe0f?\s*+(\d{{4}}-\d{{2}}-\d{{2}})"
)
_HYPHENS = str.maketrans({"\u2010": "-", "\u2011": "-", "\u2212": "-", ",": " "})
# In characters: a longer bracket is prose.
_LONGEST = 80
_DEFAULT_DAYS = 14


class Validity(NamedTuple):
    """When an entry holds: `begins <= now < ends`, None for no limit.

    A day includes its last minute: `until 2026-02-25` ends at 2026-02-26T00:00. A time is itself the end:
    `until 2026-02-25 18:00` ends at 18:00. `start` and `end` are the bracket's characters, `since` and `until` its two
    dates as written, "" for none. `problem` says what cannot be read; with a problem there is no limit.
    """

    begins: datetime | None
    ends: datetime | None
    start: int
    end: int
    since: str
    until: str
    problem: str = ""

    def holds_at(self, now: datetime) -> bool:
        """Neither past nor upcoming."""
        return not self.is_past(now) and (self.begins is None or self.begins <= now)

    def is_past(self, now: datetime) -> bool:
        """The end has come."""
        return self.ends is not None and self.ends <= now

    def corrected(self, today: date) -> str:
        """The bracket with the dates that were most likely meant: `[until 2026-02-28]` for `[until 2026-02-30]`."""
        since, until = (suggested_moment(part, today) if part else "" for part in (self.since, self.until))
        if since and until:
            return f"[from {min(since, until)} until {max(since, until)}]"
        return f"[from {since}]" if since else f"[until {until or suggested_moment('', today)}]"


def validity_of(text: str, skip: Sequence[tuple[int, int]] = ()) -> Validity | None:
    """The last readable date bracket in one entry's text, else the last unreadable one; None without any.

    Brackets are `[until DATE]`, `[from DATE until DATE]` and `[from DATE]`, also round ones; a DATE is what
    `read_moment` reads, with its year. What begins in a range `[start, end)` of `skip` (code, links, comments) is text.
    """
    found = [one for match in _BRACKET.finditer(blanked(text, skip)) if (one := _validity(match))]
    return next((one for one in reversed(found) if not one.problem), found[-1] if found else None)


def date_in(line: str) -> date | None:
    """The first date, with its year, that says how old a heading or an entry is: none of a task or of a validity."""
    if not (_YEAR.search(line) and _PART_OF_DATE.search(line)):
        return None
    text = _BRACKET.sub(lambda match: match[0] if _is_prose(match[0]) else " ", re.sub(_TASK_DATE, " ", line))
    days = (_day(match[0]) for match in re.finditer(_DATED, _spaced(text)))
    return next((day for day in days if day), None)


def task_dates(text: str) -> dict[str, str]:
    """The dates of a task as written, by name: due, expected, scheduled, start, completion, created, cancelled.

    `[due: DATE]`, `(due: DATE)`, Dataview's `[due:: DATE]`, and the signs of Obsidian's Tasks, such as `📅 2026-03-01`.
    The last of a name counts. `read_moment` reads the values.
    """
    found: dict[str, str] = {}
    for match in re.finditer(_TASK_DATE, text):
        name, value = (group for group in match.groups() if group is not None)
        found[_SIGNS.get(name, name.casefold())] = _spaced(value)
    return found


def read_moment(text: str, today: date | None = None) -> datetime | None:
    """`2026-03-01`, `01.03.2026`, `1 March 2026` or `Mar 1, 2026`, each also with `09:00`, `at 9:00` or `9am`.

    Midnight without a time. A date without a year is the one nearest to `today`. None for anything else.
    """
    found = re.fullmatch(_MOMENT, _spaced(text))
    if found is None:
        return None
    if found["day"]:
        day = _day(found["day"])
    else:
        years = (today.year - 1, today.year, today.year + 1) if today else ()
        days = [day for year in years if (day := _day(f"{found['named']} {year:04}"))]
        day = min(days, key=lambda one: abs(one.toordinal() - (today or one).toordinal()), default=None)
    clock = _clock(found)
    return datetime.combine(day, clock) if day and clock else None


def suggested_moment(text: str, today: date) -> str:
    """The date that `text` most likely means, with its time if it has one; two weeks from `today` without any hint."""
    numbers = _numbers(_CLOCK.sub(" ", text))
    day = _clamped(*numbers) if numbers else today + timedelta(_DEFAULT_DAYS)
    clock = _CLOCK.search(text)
    return f"{day} {clock[0].zfill(5)}" if clock else f"{day}"


def blanked(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    """The text with spaces for these ranges of it."""
    pieces, at = [], 0
    for start, end in sorted(ranges):
        pieces += [text[at:start], " " * (end - max(at, start))]
        at = max(at, end)
    return "".join([*pieces, text[at:]])


def _is_prose(bracket: str) -> bool:
    return bracket[0] == "(" and "until" not in bracket.casefold()


def _validity(bracket: re.Match[str]) -> Validity | None:
    word, inner = (bracket[1] or bracket[3]).casefold(), _spaced(bracket[4] if bracket[3] else bracket[2])
    if word in ("due", "expected") or len(inner) > _LONGEST:
        return None
    since, until = "", inner
    if word == "from":
        separator = _SEPARATOR.search(inner)
        since, until = (inner[: separator.start()], inner[separator.end() :]) if separator else (inner, "")
    since, until = since.strip(" :\\"), until.strip(" :\\")
    unread = [part for part in [since, until] if part and not read_moment(part)] if since or until else [""]
    # `(until further notice)` and `[from the harbour]` are prose.
    if unread and (bracket[3] or (word == "from" and not until)) and not _numbers(unread[0]):
        return None
    begins, ends = read_moment(since), _end(until)
    problem = "is not a date" if unread else "ends before it begins" if begins and ends and ends <= begins else ""
    if problem:
        begins = ends = None
        problem = f"{_spaced(bracket[0])} {problem}"
    return Validity(begins, ends, *bracket.span(), since, until, problem)


def _end(until: str) -> datetime | None:
    """The moment, or the end of the day if no time is given."""
    moment, found = read_moment(until), re.fullmatch(_MOMENT, _spaced(until))
    if moment is None or found is None or found["hour"]:
        return moment
    return datetime.combine(moment, time.max) if moment.date() == date.max else moment + timedelta(1)


def _clock(found: re.Match[str]) -> time | None:
    """The time of a `_MOMENT`, midnight without one; None for a time that no clock shows."""
    hour, minute, half = int(found["hour"] or 0), int(found["minute"] or 0), (found["half"] or "").casefold()
    if half and 1 <= hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    elif half or (found["hour"] and not found["minute"]):
        return None
    return time(hour, minute) if hour < 24 and minute < 60 else None


def _clamped(year: int, month: int, day: int) -> date:
    if month > 12:
        month, day = day, month
    year, month = min(max(year + 2000 if year < 100 else year, 1), 9999), min(max(month, 1), 12)
    last = 31 if month == 12 else (date(year, month + 1, 1) - timedelta(1)).day
    return date(year, month, min(max(day, 1), last))


def _day(text: str) -> date | None:
    numbers = _numbers(text)
    try:
        return date(*numbers) if numbers else None
    except ValueError:
        return None


def _numbers(text: str) -> tuple[int, int, int] | None:
    """Year, month and day of a date in any order that people write; None for fewer than three numbers."""
    name, numbers = _MONTH_NAME.search(text), re.findall(r"\d{1,9}", text)
    if name:
        numbers.insert(1, str(_MONTHS.index(name[0].casefold()[:3]) + 1))
    if len(numbers) < 3:
        return None
    first, second, third = map(int, numbers[:3])
    if len(numbers[0]) == 4:
        return first, second, third
    # With slashes the month is first: 02/28/2026.
    return (third, first, second) if "/" in text and not name else (third, second, first)


def _spaced(text: str) -> str:
    return " ".join(text.translate(_HYPHENS).split())
