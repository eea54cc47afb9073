"""Dates as people write them in rules, reminders and headings: one reader for the prompt and for the notebook.

A datetime here is naive and local to the notebook's timezone. No search backtracks, so hostile text takes linear time.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_NAMED = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\.? {_MONTH}\.?|{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?)"
_DAY = rf"(?:\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}\.\d{{1,2}}\.\d{{4}}|{_NAMED} \d{{4}})"
_DATED = re.compile(rf"(?<![\w.]){_DAY}(?=T\d|\b)(?!\.\d)", re.IGNORECASE)
_YEAR = re.compile(r"\d{4}")
_CLOCK = re.compile(r"(?<!\d)([01]?\d|2[0-3]):([0-5]\d)(?!\d)")
_MOMENT = re.compile(rf"(?:({_DAY})|({_NAMED}))(?:(?: (?:at )?|T){_CLOCK.pattern})?", re.IGNORECASE)
_MONTH_NAME = re.compile(rf"(?<![^\W\d_]){_MONTH}(?![^\W\d_])", re.IGNORECASE)
_WEEKDAY = re.compile(r"\b(mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|ur)?(?:day)?\b", re.IGNORECASE)
_COMPACT = re.compile(r"\b(\d{4})(\d\d)(\d\d)\b")
# Possessive quantifiers give nothing back, and a bracket's content ends where the next bracket of its kind opens.
_BRACKET = re.compile(
    r"\[\s*+(due|expected|from|until)(?![^\W\d])([^\[\]]*+)\]|\(\s*+(from|until)(?![^\W\d])([^()]*+)\)", re.IGNORECASE
)
_SEPARATOR = re.compile(r"\b(?:until|to)\b|[–—]| - ", re.IGNORECASE)
# In characters: a longer bracket is prose.
_LONGEST = 80
_DEFAULT_DAYS = 14


@dataclass(frozen=True, slots=True)
class Validity:
    """From when until when an entry holds: `begins <= now < ends`, None for no limit.

    A day includes its last minute: `until 2026-02-25` ends at 2026-02-26T00:00. A time is itself the end:
    `until 2026-02-25 18:00` ends at 18:00. `start` and `end` are the bracket's characters, `since` and `until` its two
    dates as written, "" for none. `problem` says what cannot be read, "" for nothing; with a problem there is no limit.
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
        return not (self.is_past(now) or self.is_upcoming(now))

    def is_past(self, now: datetime) -> bool:
        """The end has come."""
        return self.ends is not None and self.ends <= now

    def is_upcoming(self, now: datetime) -> bool:
        """The beginning has not come."""
        return self.begins is not None and now < self.begins

    def corrected(self, today: date) -> str:
        """The bracket with the dates that were most likely meant: `[until 2026-02-28]` for `[until 2026-02-30]`."""
        since, until = (suggested_moment(part, today) if part else "" for part in (self.since, self.until))
        if since and until:
            return f"[from {min(since, until)} until {max(since, until)}]"
        return f"[from {since}]" if since else f"[until {until or suggested_moment('', today)}]"


def validity_of(text: str, skip: Sequence[tuple[int, int]] = ()) -> Validity | None:
    """The last bracket in one entry's text that can be read, else the last that cannot; None for none.

    Brackets are `[until DATE]`, `[from DATE until DATE]` and `[from DATE]`, also round ones; a DATE is what
    `read_moment` reads, with its year. What begins in a span `[start, end)` of `skip` (code, links, comments) is text.
    """
    found = [one for match in _BRACKET.finditer(_without(text, skip)) if (one := _validity(match))]
    return next((one for one in reversed(found) if not one.problem), found[-1] if found else None)


def date_in(line: str) -> date | None:
    """The first date, with its year, that a heading or an entry carries.

    A date in `[due …]`, `[until …]`, `[expected …]`, `[from …]` or `(until …)` says nothing of its age.
    """
    if not _YEAR.search(line):
        return None
    text = _spaced(_BRACKET.sub(lambda match: match[0] if _is_prose(match[0]) else " ", line))
    days = (_day(match[0]) for match in _DATED.finditer(text))
    return next((day for day in days if day), None)


def read_moment(text: str, today: date | None = None) -> datetime | None:
    """`2026-03-01`, `01.03.2026`, `1 March 2026` or `Mar 1, 2026`, each also with `09:00` or `at 9:00`; midnight where
    there is no time. A date without a year is the one nearest to `today`. None for anything else."""
    found = _MOMENT.fullmatch(_spaced(text))
    if found is None:
        return None
    if found[1]:
        day = _day(found[1])
    else:
        years = (today.year - 1, today.year, today.year + 1) if today else ()
        days = [day for year in years if (day := _day(f"{found[2]} {year:04}"))]
        day = min(days, key=lambda one: abs(one.toordinal() - (today or one).toordinal()), default=None)
    return datetime.combine(day, time(int(found[3] or 0), int(found[4] or 0))) if day else None


def suggested_moment(text: str, today: date) -> str:
    """The date that `text` most likely means, with its time if it has one: `2026-02-28` for `2026-02-30`, the next
    Friday for `Friday`, two weeks from `today` where there is no hint."""
    day = _likely_day(text, today) or today + timedelta(_DEFAULT_DAYS)
    clock = _CLOCK.search(text)
    return f"{day} {clock[0].zfill(5)}" if clock else f"{day}"


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in sorted(spans):
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
    if unread and (bracket[3] or (word == "from" and not until)) and not _likely_day(unread[0], date.min):
        return None
    begins, ends = read_moment(since), read_moment(until)
    if ends and not _CLOCK.search(until):
        ends = datetime.combine(ends, time.max) if ends.date() == date.max else ends + timedelta(1)
    problem = (
        _why_unread(unread[0]) if unread else "ends before it begins" if begins and ends and ends <= begins else ""
    )
    if problem:
        begins = ends = None
        problem = f"{_spaced(bracket[0])} {problem}"
    return Validity(begins, ends, *bracket.span(), since, until, problem)


def _why_unread(text: str) -> str:
    year, month, _ = _numbers(text) or (0, 0, 0)
    if not (_MOMENT.fullmatch(text) and year and 1 <= month <= 12):
        return "is not a date"
    return f"is not a date: {calendar.month_name[month]} {year} has {calendar.monthrange(year, month)[1]} days"


def _likely_day(text: str, today: date) -> date | None:
    """The date that unreadable text hints at: numbers in some order, the name of a month or of a day of the week."""
    words = _COMPACT.sub(r"\1-\2-\3", _CLOCK.sub(" ", _spaced(text.casefold())))
    # 15.1. and 1/15; in prose, which is asked about without a day, they are numbers.
    is_yearless = today > date.min and bool(re.fullmatch(r"\d{1,2} ?[./-] ?\d{1,2}\.?", words.strip()))
    years = ("", today.year, today.year + 1) if is_yearless or _MONTH_NAME.search(words) else ("",)
    for numbers in filter(None, (_numbers(f"{words} {year}") for year in years)):
        day = _clamped(*numbers)
        if day >= today or (len(re.findall(r"\d+", words)) > 1 and not is_yearless):
            return day
    weekday = _WEEKDAY.search(words)
    if weekday is None:
        return today + timedelta(1) if words.strip() == "tomorrow" else None
    return today + timedelta((_WEEKDAYS.index(weekday[1]) - today.weekday()) % 7 or 7)


def _clamped(year: int, month: int, day: int) -> date:
    if month > 12:
        month, day = day, month
    year, month = min(max(year + 2000 if year < 100 else year, 1), 9999), min(max(month, 1), 12)
    return date(year, month, min(max(day, 1), calendar.monthrange(year, month)[1]))


def _day(text: str) -> date | None:
    numbers = _numbers(text)
    try:
        return date(*numbers) if numbers else None
    except ValueError:
        return None


def _numbers(text: str) -> tuple[int, int, int] | None:
    """Year, month and day of a date in any order that people write; None where there are fewer than three."""
    name, numbers = _MONTH_NAME.search(text), re.findall(r"\d+", text)
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
    return " ".join(text.replace(",", " ").split())
