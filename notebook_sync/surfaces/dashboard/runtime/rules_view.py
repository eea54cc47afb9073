"""The runtime files as pages show them: rows of rules, orders and reminders, and how each of them stands. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Final, Literal, TypeVar
from zoneinfo import ZoneInfo

from notebook_sync.notes.runtime.due import Due, State, standing_at
from notebook_sync.notes.runtime.entries import contents_of
from notebook_sync.notes.runtime.reminders import read_reminders
from notebook_sync.notes.runtime.rules import Malformed, Rule, read_rules
from notebook_sync.notes.runtime.standing import plain_identity
from notebook_sync.surfaces.dashboard.runtime.runtime_entries import (
    Item,
    Section,
    moment_shown_in,
    sections_of,
    until_in,
)

Standing = Literal["holds", "ended", "unread"]
# In the order in which a person wants to know of them.
_STATES: Mapping[State, str] = {
    "overdue": "Overdue",
    "due": "Due today",
    "upcoming": "Later",
    "open": "No day named",
    "done": "Done",
}
_SOON_DAYS: Final = 14
# On one page; whoever has more of them reads the file.
MOST_ROWS: Final = 200
# Of those that words may mean: more of them are no help.
MOST_MEANT: Final = 10


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule, or what should be one: then `rule` is None and `trouble` says what to write."""

    item: Item
    rule: Rule | None
    standing: Standing
    until: str
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """The rules below one heading. A channel's is named by it. `more` rows follow that are not among these."""

    section: Section
    name: str
    rows: tuple[RuleRow, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class OrderRow:
    """One order. `until` is "" where it does not end."""

    item: Item
    has_ended: bool
    until: str


@dataclass(frozen=True, slots=True)
class OrderGroup:
    """The orders below one heading; `more` as for rules."""

    section: Section
    rows: tuple[OrderRow, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class ReminderRow:
    """One reminder as it stands now. `when` is its day, and the time where one is named."""

    item: Item
    due: Due
    when: str


@dataclass(frozen=True, slots=True)
class ReminderGroup:
    """Reminders that stand alike; `more` as for rules."""

    state: State
    name: str
    rows: tuple[ReminderRow, ...]
    more: int = 0


_Group = TypeVar("_Group", RuleGroup, OrderGroup, ReminderGroup)


@dataclass(frozen=True, slots=True)
class Unread:
    """A line that looks like an entry and is not read as one, and what to write. `item` is None where it is in no
    list."""

    line: int
    text: str
    trouble: str
    item: Item | None


def rule_groups(text: str, today: date) -> tuple[list[RuleGroup], list[Unread]]:
    """The rules by section, and the lines that are read as none."""
    rules, malformed = read_rules(contents_of(text))
    rules += [one.rule for one in malformed if one.rule is not None]
    by_line = {rule.line: rule for rule in rules}
    wrong = {one.line: one for one in malformed}
    groups, parent = [], ""
    for section in sections_of(text):
        parent = section.title if section.level <= 2 else parent
        rows = tuple(_rule_row(item, by_line.get(item.line), wrong.get(item.line), today) for item in section.items)
        if section.level or rows:
            name = section.title if section.level <= 2 else f"{parent}: {section.title}"
            groups.append(RuleGroup(section, name or "Above all headings", rows))
    return _first(groups), _outside(text, malformed, today)[:MOST_ROWS]


def rules_meant(text: str, asked: str, today: date) -> list[tuple[str, str]]:
    """For words that are the identity of no rule: the names and identities that contain them, as far as they hold."""
    wanted = " ".join(asked.casefold().split())
    found, malformed = read_rules(contents_of(text))
    rules = [*found, *(one.rule for one in malformed if one.rule)]
    known = [
        (rule.name, identity)
        for rule in rules
        if not (rule.until and rule.until < today)
        for identity in filter(None, map(str.strip, re.split(r"[,;]", rule.identity)))
    ]
    if not wanted or plain_identity(asked) in {plain_identity(identity) for _, identity in known}:
        return []
    near = [one for one in known if any(wanted in said.casefold() for said in one)]
    return list(dict.fromkeys(near))[:MOST_MEANT]


def order_groups(text: str, today: date) -> list[OrderGroup]:
    """The orders by section; what is in no list stays prose."""
    groups = [
        OrderGroup(section, tuple(_order_row(item, today) for item in section.items))
        for section in sections_of(text)
        if section.level or section.items or section.prose
    ]
    return _first(groups)


def reminder_groups(text: str, now: datetime, timezone: ZoneInfo) -> tuple[list[ReminderGroup], list[Unread]]:
    """The reminders by how they stand, the most pressing first, and the lines that are read as none."""
    items = {item.line: item for section in sections_of(text) for item in section.items}
    found, malformed = read_reminders(contents_of(text), now.astimezone(timezone).date())
    standing = standing_at(now, found, timezone)
    groups = [
        ReminderGroup(
            state,
            name,
            tuple(_reminder_row(items[due.line], due) for due in standing if due.state == state and due.line in items),
        )
        for state, name in _STATES.items()
    ]
    today = now.astimezone(timezone).date()
    unread = [Unread(one.line, one.text, one.message_on(today), items.get(one.line)) for one in malformed]
    return _first([group for group in groups if group.rows]), unread[:MOST_ROWS]


def days_left(until: str, today: date) -> str:
    """How long a rule holds yet, where that is soon over; "" else."""
    try:
        left = (date.fromisoformat(until) - today).days
    except ValueError:
        return ""
    if left < 0 or left > _SOON_DAYS:
        return ""
    return "last day" if left == 0 else "1 day left" if left == 1 else f"{left} days left"


def _first(groups: Sequence[_Group]) -> list[_Group]:
    """The first rows of all, and in `more` how many there are beyond them."""
    kept: list[_Group] = []
    room = MOST_ROWS
    for group in groups[:MOST_ROWS]:
        rows = group.rows[:room]
        kept.append(replace(group, rows=rows, more=len(group.rows) - len(rows)))
        room -= len(rows)
    if beyond := sum(len(group.rows) for group in groups[MOST_ROWS:]):
        kept[-1] = replace(kept[-1], more=kept[-1].more + beyond)
    return kept


def _reminder_row(item: Item, due: Due) -> ReminderRow:
    return ReminderRow(item, due, " ".join(filter(None, moment_shown_in(due.when))))


def _rule_row(item: Item, rule: Rule | None, wrong: Malformed | None, today: date) -> RuleRow:
    trouble = wrong.message_on(today) if wrong else ""
    until = rule.until.isoformat() if rule and rule.until else until_in(item.raw)
    if _is_past(until, today):
        return RuleRow(item, rule, "ended", until, trouble)
    if rule is None:
        return RuleRow(item, None, "unread", until, trouble or "no heading of rules is above it, so it is read as none")
    return RuleRow(item, rule, "holds", until, trouble)


def _order_row(item: Item, today: date) -> OrderRow:
    until = until_in(item.raw.split("\n\n")[0])
    return OrderRow(item, _is_past(until, today), until)


def _outside(text: str, malformed: Sequence[Malformed], today: date) -> list[Unread]:
    listed = {item.line for section in sections_of(text) for item in section.items}
    return [Unread(one.line, one.text, one.message_on(today), None) for one in malformed if one.line not in listed]


def _is_past(day: str, today: date) -> bool:
    try:
        return date.fromisoformat(day) < today
    except ValueError:
        return False
