"""The rules and the reminders of a runtime file, each with whether it holds now. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final, Literal
from zoneinfo import ZoneInfo

from notebook_sync.notes.runtime.due import Due, State, standing_at
from notebook_sync.notes.runtime.entries import Entry, Malformed, contents_of
from notebook_sync.notes.runtime.reminders import read_reminders
from notebook_sync.notes.runtime.rules import Rule, read_rules
from notebook_sync.notes.runtime.standing import plain_identity
from prompt.dates import Validity, suggested_moment

Standing = Literal["holds", "upcoming", "ended", "unread"]
STATES: Final[Mapping[State, str]] = {
    "overdue": "Overdue",
    "due": "Due today",
    "upcoming": "Later",
    "open": "No day named",
    "done": "Done",
}
_SOON_DAYS: Final = 14
# Suggestions for a name that is no identity.
_MOST_MEANT: Final = 10


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One entry of the rules. `rule` is None where it is not read as one; `problem` says what to write instead. `since`
    and `until` are its first and last day, with the time if one is given; "" for no limit."""

    entry: Entry
    rule: Rule | None
    standing: Standing
    since: str
    until: str
    problem: str

    @property
    def section(self) -> str:
        """The headings above it."""
        return ": ".join(filter(None, self.entry.headings)) or "Above all headings"


def rule_rows(text: str, now: datetime) -> list[RuleRow]:
    """The rules at `now`, a local time, and the entries and lines that look like rules and are not read as such."""
    contents = contents_of(text)
    rules, malformed = read_rules(contents, now.date())
    by_line = {rule.line: rule for rule in rules}
    problems = {one.line: one.message for one in malformed}
    return [
        _rule_row(entry, by_line.get(entry.line), problems.get(entry.line, ""), now)
        for entry in contents.entries
        if entry.in_list or entry.line in problems
    ]


def rules_meant(text: str, asked: str, now: datetime) -> list[tuple[str, str]]:
    """For words that are the identity of no rule: the names and identities that contain them, as far as they hold."""
    wanted = " ".join(asked.casefold().split())
    rules, _ = read_rules(contents_of(text), now.date())
    known = [
        (rule.name, identity)
        for rule in rules
        if rule.validity is None or rule.validity.holds_at(now)
        for identity in filter(None, map(str.strip, re.split(r"[,;]", rule.identity or rule.name)))
    ]
    if not wanted or plain_identity(asked) in {plain_identity(identity) for _, identity in known}:
        return []
    near = [one for one in known if any(wanted in said.casefold() for said in one)]
    return list(dict.fromkeys(near))[:_MOST_MEANT]


def due_at(text: str, now: datetime, timezone: ZoneInfo) -> tuple[list[Due], list[Malformed]]:
    """The reminders at `now`, the most pressing first, and the lines that are not read as reminders."""
    local = now.astimezone(timezone).replace(tzinfo=None)
    found, malformed = read_reminders(contents_of(text).holding_at(local), local.date())
    return standing_at(now, found, timezone), malformed


def days_left(until: str, today: date) -> str:
    """How long a rule holds yet, where that is soon over; "" else. `until` may have a time."""
    try:
        left = (date.fromisoformat(until[:10]) - today).days
    except ValueError:
        return ""
    if left < 0 or left > _SOON_DAYS:
        return ""
    return "last day" if left == 0 else "1 day left" if left == 1 else f"{left} days left"


def _rule_row(entry: Entry, rule: Rule | None, problem: str, now: datetime) -> RuleRow:
    standing, since, until = _limits(entry.validity, now)
    if rule is None and standing != "ended":
        problem = problem or "no heading of rules is above it, so it is not read as a rule"
        standing = "unread"
    return RuleRow(entry, rule, standing, since, until, problem)


def _limits(validity: Validity | None, now: datetime) -> tuple[Standing, str, str]:
    """Whether an entry holds, since when and until when."""
    if validity is None or validity.problem:
        return "holds", "", ""
    since, until = (suggested_moment(day, date.min) if day else "" for day in (validity.since, validity.until))
    return "ended" if validity.is_past(now) else "upcoming" if validity.is_upcoming(now) else "holds", since, until
