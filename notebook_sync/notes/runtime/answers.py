"""What is answered about rules and trust: values that Python and JSON share. Nothing of the notebook is imported."""

from __future__ import annotations

import msgspec


class RuleEntry(msgspec.Struct):
    """A rule. `until` is its last day, or the time at which it ends; None for no end."""

    line: int
    section: str
    channel: str | None
    name: str
    identity: str
    action: str
    until: str | None


class OtherRule(RuleEntry):
    """A rule about the same identity that does not apply here now, and why."""

    reason: str


class Standing(msgspec.Struct, omit_defaults=True):
    """The rule that applies, None for none, and why. `others` are first the rules that rank lower, then those of other
    channels, then those that have ended or not begun.

    `unread` are lines that name the identity and cannot be read as rules, and marks of a merge conflict: one of these
    may be the rule that was meant. Where no identity was given, `results` are all rules in force.
    """

    identity: str
    channel: str | None
    rule: RuleEntry | None
    reason: str
    others: list[OtherRule]
    unread: list[int]
    results: list[RuleEntry] | None = None


class WaitingLine(msgspec.Struct):
    """A line that waits for trust: 1-based in the file as it is, or, when `removed`, where the trusted line was."""

    path: str
    line: int
    text: str
    removed: bool

    @property
    def what(self) -> str:
        """The line, in words."""
        return f"{'the removal of' if self.removed else 'the line'} `{self.text.strip()}`"


class TrustedFile(msgspec.Struct):
    """A file with lines that waited. `diff` is unified, from the trusted version; `digest` is that of the file now, ""
    for one that does not exist."""

    path: str
    digest: str
    lines: list[WaitingLine]
    diff: str
    accepted: bool
