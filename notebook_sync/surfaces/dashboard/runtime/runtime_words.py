"""What pages call an entry of a runtime file, and what they say was done to it: fixed words, and what the file itself
says. Pure; nothing here comes from an address."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final

from notebook_sync.notes.runtime.entries import contents_of
from notebook_sync.notes.runtime.reminders import read_reminders
from notebook_sync.notes.runtime.rules import read_rules
from notebook_sync.surfaces.dashboard.runtime.runtime_entries import (
    Item,
    moment_shown_in,
    sections_of,
    until_in,
    with_until,
)

_LONGEST: Final = 80
_KINDS: Final[Mapping[str, str]] = {"rules": "Rule", "orders": "Order", "reminders": "Reminder"}
# By the code that an address has. Where the entry stands there still, the page says which it is.
DONE: Final[Mapping[str, str]] = {
    "added": "{kind} added.",
    "changed": "{kind} changed.",
    "removed": "{kind} removed.",
    "moved": "{kind} moved.",
    "ticked": "{kind} ticked, or not any more.",
    "pinned": "Pinned: the section is kept whole when the file is cut.",
    "unpinned": "Not pinned any more.",
    "undone": "The last change is taken back.",
    "same": "It says that already; nothing was changed.",
}
_WHICH: Final[Mapping[str, str]] = {
    "added": "{subject} added to {section}{when}.",
    "changed": "{subject} changed: it stands in {section}{when}.",
    "moved": "{subject} moved to {section}{when}.",
}


def said_of(key: str, done: str, text: str, line: int, today: date) -> str:
    """What was done, and to which entry, if there is one on this line of `text`; "" for a code that is none."""
    item = next((one for section in sections_of(text) for one in section.items if one.line == line), None)
    if item is None or done not in (*_WHICH, "ticked"):
        return DONE.get(done, "").format(kind=_KINDS[key])
    subject = subject_of(key, text, item, today)
    if done == "ticked":
        return f"{subject} is done." if item.done else f"{subject} is not done any more."
    return _WHICH[done].format(subject=subject, section=_section(text, item), when=_when(key, text, item, today))


def subject_of(key: str, text: str, item: Item, today: date) -> str:
    """Whose rule, which order or which reminder an entry of `text` is."""
    if key == "rules":
        found, malformed = read_rules(contents_of(text))
        rules = [*found, *(one.rule for one in malformed if one.rule)]
        names = [rule.name for rule in rules if rule.line == item.line]
        return f"Rule for {names[0]}" if names else f"Line “{_short(item.said)}”"
    if key == "reminders":
        reminders, _ = read_reminders(contents_of(text), today)
        told = [one.text for one in reminders if one.line == item.line]
        return f"Reminder “{_short(told[0])}”" if told else f"Line “{_short(item.said)}”"
    return f"Order “{_short(with_until(item.said, None))}”"


def new_line(before: str, after: str) -> int:
    """The line of the first entry of `after` that did not stand there `before`; 0 for none."""
    known = [(section.anchor, item.raw) for section in sections_of(before) for item in section.items]
    for section in sections_of(after):
        for item in section.items:
            if (section.anchor, item.raw) not in known:
                return item.line
            known.remove((section.anchor, item.raw))
    return 0


def _when(key: str, text: str, item: Item, today: date) -> str:
    if key != "reminders":
        until = until_in(item.raw)
        return f", until {until}" if until else ""
    found, _ = read_reminders(contents_of(text), today)
    one = next((one for one in found if one.line == item.line), None)
    if one is None or not (one.every or one.when):
        return ""
    if one.every:
        return f", every {one.every}"
    moment = " ".join(filter(None, moment_shown_in(one.when)))
    return f", {'expected' if one.kind == 'waiting' else 'due'} {moment}"


def _section(text: str, item: Item) -> str:
    titles = [section.title for section in sections_of(text) if section.anchor == item.anchor]
    return titles[0] if titles and titles[0] else "the beginning of the file"


def _short(said: str) -> str:
    return said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1].rstrip()}…"
