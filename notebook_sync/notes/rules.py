"""The grammar of runtime/external-communications.md: who may write, and what an agent does then. Pure.

    ## Permanent Rules
    - **Name** (identity): action [until 2026-02-25]

The same under `## Temporary Instructions`, and under `### channel` headings in `## Channel-Specific`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta

from notebook_sync.notes.entries import Contents, Entry

PATH = "runtime/external-communications.md"
SECTIONS = ("Permanent Rules", "Temporary Instructions", "Channel-Specific")
GRAMMAR = "- **Name** (identity): action [until YYYY-MM-DD]"

_RULE = re.compile(r"\*\*([^*]+)\*\*\s*\(((?:[^()]|\([^()]*\))+)\)\s*:\s*(.+)")
# No bracket within, and an end to it: a line of nothing but openings would be searched to its end from each of them.
_UNTIL = re.compile(r"\[until\b:? ?([^\[\]]{0,80})\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `channel` is "" outside of Channel-Specific; `until` is the last day on which it holds."""

    line: int
    section: str
    channel: str
    name: str
    identity: str
    action: str
    until: date | None = None


@dataclass(frozen=True, slots=True)
class Malformed:
    """An entry that does not read as its grammar says, and an example of one that does. It still reaches the prompt."""

    line: int
    reason: str
    example: str

    @property
    def message(self) -> str:
        """The reason and the next step."""
        return f"{self.reason}; write: {self.example}"

    def message_on(self, today: date) -> str:
        """The same, with a day to come where the example has one."""
        soon = today + _SOON
        dated = self.example.replace("YYYY-MM-DD", soon.isoformat()).replace("Mon DD", f"{soon:%b} {soon.day}")
        return replace(self, example=dated).message


_SOON = timedelta(days=14)


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
        return Malformed(entry.line, "not a list item at the start of its line, so no rule", GRAMMAR)
    found = _RULE.fullmatch(entry.text)
    if found is None:
        return Malformed(entry.line, "does not read as a rule", GRAMMAR)
    name, identity, rest = (part.strip() for part in found.groups())
    days = _UNTIL.findall(rest)
    action = " ".join(_UNTIL.sub(" ", rest).split())
    if not action:
        return Malformed(entry.line, "says nothing to do", GRAMMAR)
    until = None
    if days:
        until = _day(days[-1])
        if until is None:
            reason = f"[until {days[-1].strip()}] is no day, so the rule never ends"
            return Malformed(entry.line, reason, "[until YYYY-MM-DD]")
    section, channel = entry.headings
    return Rule(entry.line, section, channel, name, identity, action, until)


_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _day(text: str) -> date | None:
    text = text.strip()
    try:
        return date.fromisoformat(text) if _ISO_DAY.fullmatch(text) else None
    except ValueError:
        return None
