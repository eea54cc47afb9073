"""The grammar of runtime/external-communications.md: who may write, and what an agent does then. Pure.

    ## Permanent Rules
    - **Name** (identity): action [until 2026-02-25]

The same under `## Temporary Instructions`, and under `### channel` headings in `## Channel-Specific`. The date may also
come before the colon; a rule with a date needs no identity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from notebook_sync.notes.runtime.entries import Contents, Entry, Malformed, read_entries
from prompt.dates import Validity, suggested_moment

PATH = "runtime/external-communications.md"
SECTIONS = ("Permanent Rules", "Temporary Instructions", "Channel-Specific")

_KNOWN = {section.casefold() for section in SECTIONS}
_RULE = re.compile(r"\*\*([^*]+)\*\*\s*(?:\(((?:[^()]|\([^()]*\))+)\)\s*)?:\s*(.+)")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `channel` is "" outside of Channel-Specific, `identity` where the name alone says whose it is;
    `validity` is None for a rule without a date."""

    line: int
    section: str
    channel: str
    name: str
    identity: str
    action: str
    validity: Validity | None = None

    @property
    def until(self) -> str:
        """The last day on which it holds, or the time at which it ends: `2026-02-25`, `2026-02-25 18:00`, "" for no
        end."""
        return suggested_moment(self.validity.until, date.min) if self.validity and self.validity.ends else ""


def read_rules(contents: Contents, today: date) -> tuple[list[Rule], list[Malformed]]:
    """The rules under the known sections, and what is malformed. A rule whose date cannot be read is in both."""
    return read_entries(contents, today, read_rule)


def read_rule(entry: Entry, today: date) -> Rule | Malformed | None:
    """One entry as a rule; None in a section without rules."""
    section, channel = entry.headings
    if section.casefold() not in _KNOWN:
        return None
    text, validity = entry.text, entry.validity
    if validity:
        text = f"{text[: validity.start]} {text[validity.end :]}".strip()
    found = _RULE.fullmatch(text) if entry.in_list else None
    name, identity, action = (" ".join((part or "").split()) for part in found.groups()) if found else ("", "", "")
    if action and (identity or validity):
        return Rule(entry.line, section, channel, name, identity, action, validity)
    reason = "is not a rule" if entry.in_list else "is not a list item at the start of its line, so it is not a rule"
    example = f"- **Name** (identity): action [until {suggested_moment('', today)}]"
    return Malformed(entry.line, reason, example, entry.text)
