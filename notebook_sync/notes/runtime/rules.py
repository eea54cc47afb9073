"""The grammar of runtime/external-communications.md: who may write, and what an agent does then. Pure.

    ## Permanent Rules
    - **Name** (identity): action [until 2026-02-25]

The same under `## Temporary Instructions`, and under `### channel` headings in `## Channel-Specific`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta

from notebook_sync.notes.runtime.entries import Contents, Entry

PATH = "runtime/external-communications.md"
SECTIONS = ("Permanent Rules", "Temporary Instructions", "Channel-Specific")
GRAMMAR = "- **Name** (identity): action [until YYYY-MM-DD]"

_RULE = re.compile(r"\*\*([^*]+)\*\*\s*\(((?:[^()]|\([^()]*\))+)\)\s*:\s*(.+)")
# No bracket within, and an end to it: a line of nothing but openings would be searched to its end from each of them.
_UNTIL = re.compile(r"\[until\b([^\[\]]{0,80})\]", re.IGNORECASE)
# As the prompt reads it, so that a rule holds for as long as it is shown.
_DATED = re.compile(r":? (\d{4}-\d{2}-\d{2})")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `channel` is "" outside of Channel-Specific; `until` is the last day on which it holds.

    `unread_until` is what stands in place of that day and is none: the rule holds, and never ends.
    """

    line: int
    section: str
    channel: str
    name: str
    identity: str
    action: str
    until: date | None = None
    unread_until: str = ""


@dataclass(frozen=True, slots=True)
class Malformed:
    """An entry that does not read as its grammar says, and an example of one that does. It still reaches the prompt.

    `text` is the entry, `day` what stands in it where a date should, and `rule` the rule that it is all the same.
    """

    line: int
    reason: str
    example: str
    text: str
    day: str = ""
    rule: Rule | None = None

    @property
    def message(self) -> str:
        """The reason and the next step."""
        return f"{self.reason}; write: {self.example}"

    def message_on(self, today: date) -> str:
        """The same, with a day to come where the example has one: the one that the entry names, if it does."""
        soon = day_named(self.day, today) or today + SOON
        dated = self.example.replace("YYYY-MM-DD", soon.isoformat()).replace("Mon DD", f"{soon:%b} {soon.day}")
        return replace(self, example=dated).message


SOON = timedelta(days=14)
_WEEKDAY = re.compile(r"\b(mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|ur)?(?:day)?\b", re.IGNORECASE)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def day_named(words: str, today: date) -> date | None:
    """The day to come that `tomorrow` or the name of a weekday means; None for other words."""
    if words.strip().casefold() == "tomorrow":
        return today + timedelta(1)
    found = _WEEKDAY.search(words)
    if found is None:
        return None
    ahead = (_WEEKDAYS.index(found[1].casefold()) - today.weekday()) % len(_WEEKDAYS)
    return today + timedelta(ahead or len(_WEEKDAYS))


def read_rules(contents: Contents) -> tuple[list[Rule], list[Malformed]]:
    """The rules under the known sections, and what looks like one there and is none."""
    rules: list[Rule] = []
    malformed: list[Malformed] = []
    for entry in contents.entries:
        if entry.headings[0].casefold() not in _KNOWN:
            continue
        read = read_rule(entry)
        if isinstance(read, Rule):
            rules.append(read)
        else:
            malformed.append(read)
    return rules, malformed


_KNOWN = {section.casefold() for section in SECTIONS}


def read_rule(entry: Entry) -> Rule | Malformed:
    """One entry as a rule."""
    if not entry.in_list:
        return Malformed(entry.line, "not a list item at the start of its line, so no rule", GRAMMAR, entry.text)
    found = _RULE.fullmatch(entry.text)
    if found is None:
        return Malformed(entry.line, "does not read as a rule", GRAMMAR, entry.text)
    name, identity, rest = (part.strip() for part in found.groups())
    days = _UNTIL.findall(rest)
    action = " ".join(_UNTIL.sub(" ", rest).split())
    if not action:
        return Malformed(entry.line, "says nothing to do", GRAMMAR, entry.text)
    section, channel = entry.headings
    rule = Rule(entry.line, section, channel, name, identity, action)
    if not days:
        return rule
    dated = [day[1] for each in days if (day := _DATED.fullmatch(each))]
    until = _day(dated[-1]) if dated else None
    if until is not None:
        return replace(rule, until=until)
    unread = (dated or days)[-1].lstrip(":").strip()
    reason = f"[until {unread}] is no day, so the rule never ends as written"
    endless = replace(rule, unread_until=unread)
    return Malformed(entry.line, reason, "[until YYYY-MM-DD]", entry.text, day=unread, rule=endless)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
