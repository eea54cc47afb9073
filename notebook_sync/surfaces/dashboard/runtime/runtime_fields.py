"""An entry of a runtime file as the fields of a form, and the entry that other fields make of it. Pure; what would not
be read back as a rule or a reminder is refused, so that no rule is tied to nobody by a slip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from notebook_sync.errors import UsageError
from notebook_sync.files.commonmark import block_tokens
from notebook_sync.notes.runtime import reminders, rules
from notebook_sync.notes.runtime.entries import contents_of
from notebook_sync.notes.runtime.reminders import KINDS, read_reminders
from notebook_sync.notes.runtime.rules import read_rules
from notebook_sync.surfaces.dashboard.runtime.runtime_entries import (
    LIST_MARK,
    Item,
    moment_shown_in,
    sections_of,
    until_in,
    with_until,
)
from notebook_sync.surfaces.dashboard.runtime.runtime_lines import Fields, day_in, reminder_line, rule_line

_SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {"rules": rules.SECTIONS, "reminders": reminders.SECTIONS}
_KINDS: Final[Mapping[str, str]] = {"rules": "rule", "reminders": "reminder"}


class LineUnread(UsageError):
    """It would stand there, and be no rule or reminder; a person may want that."""


@dataclass(frozen=True, slots=True)
class Place:
    """The headings of level 2 and 3 above an entry, "" for none."""

    above: str
    below: str = ""

    def page(self, raw: str) -> str:
        """A file in which the entry alone stands there."""
        headings = [f"## {self.above}", *([f"### {self.below}"] if self.below else [])]
        return "\n\n".join([*headings, f"{raw}\n"])


def place_of(text: str, anchor: str) -> Place:
    """Where an entry in the section with this anchor stands."""
    above = ""
    for section in sections_of(text):
        above = section.title if section.level == 2 else "" if section.level < 2 else above
        if section.anchor == anchor:
            return Place(above, section.title if section.level == 3 else "")
    return Place("")


def fields_of(key: str, raw: str, place: Place, today: date) -> dict[str, str]:
    """What the form has for an entry; nothing where it reads as no rule or reminder, or says more than fields hold."""
    if "<!--" in _paragraph(raw):
        return {}
    if key == "rules":
        found, malformed = read_rules(contents_of(place.page(raw)))
        if malformed or len(found) != 1:
            return {}
        until = found[0].until.isoformat() if found[0].until else ""
        return {"name": found[0].name, "identity": found[0].identity, "action": found[0].action, "until": until}
    if key == "reminders":
        told, unread = read_reminders(contents_of(place.page(raw)), today)
        if unread or len(told) != 1:
            return {}
        day, clock = moment_shown_in(told[0].when)
        return {
            "text": told[0].text,
            "day": day,
            "clock": clock,
            "every": told[0].every,
            **({"done": "on" if told[0].done else ""} if _item(raw).done is not None else {}),
        }
    plain = with_until(raw, None)
    if plain.rstrip() != raw.rstrip() and not until_in(_paragraph(raw)):
        return {}
    return {"text": _item(plain).text, "until": until_in(_paragraph(raw))}


def entry_with(key: str, raw: str, fields: Fields, place: Place, today: date) -> str:
    """The entry with other fields, as it is written at `place`: its mark and what stands below its first paragraph
    stay. Raises UsageError for what would not be read back."""
    mark = LIST_MARK.match(raw)
    if mark is None:
        raise UsageError("the line is no entry of a list; mend the line itself")
    if key == "orders":
        if not fields["text"].strip():
            raise UsageError("say what the order is")
        first, *more = fields["text"].strip().split("\n")
        indent = " " * len(mark[0].expandtabs(4))
        lines = [mark[0] + first, *(f"{indent}{line}".rstrip() for line in more)]
        return with_until("\n".join(lines), day_in(fields["until"]))
    section = next((one for one in _SECTIONS[key] if one.casefold() == place.above.casefold()), "")
    if not section:
        raise LineUnread(f"no {_KINDS[key]} is read in that section; choose one of {', '.join(_SECTIONS[key])}")
    if key == "rules":
        # A day that stands there already may be past; only a new one may not.
        since = date.min if fields["until"] == until_in(raw) else today
        line = rule_line({**fields, "section": section, "channel": place.below or place.above}, since).text
    else:
        line = reminder_line({**fields, "section": section}, today).text
        box = "done" in fields or KINDS[section.casefold()] == "task"
        own = line.removeprefix("- ").removeprefix("[ ] ")
        line = f"- [{'x' if fields.get('done') == 'on' else ' '}] {own}" if box else f"- {own}"
    rest = raw.split("\n")[_paragraph(raw).count("\n") + 1 :]
    return "\n".join([mark[0] + line.removeprefix("- "), *rest])


def changed_entry(key: str, item: Item, fields: Fields, typed: Fields, here: Place, there: Place, today: date) -> str:
    """The lines of an entry after what was `typed` into its form. Raises UsageError."""
    is_line_typed = typed["raw"].rstrip() != item.raw.rstrip()
    is_field_typed = any(typed[name] != said for name, said in fields.items())
    if is_line_typed and is_field_typed:
        raise UsageError("both the fields and the line below them were changed; take one of the two back")
    if is_line_typed:
        return typed["raw"].strip("\n").rstrip()
    is_moved = there != here and key != "orders" and "unread" not in typed
    if fields and (is_field_typed or is_moved):
        return entry_with(key, item.raw, {name: typed[name] for name in fields}, there, today)
    return item.raw


def refuse_unread(key: str, raw: str, was_read: bool, place: Place, today: date) -> None:
    """Raise LineUnread for what is no rule or reminder at `place`, where it was one or such are read."""
    if key == "orders" or not (was_read or _is_read_in(key, place)):
        return
    if reason := _unread(key, raw, place, today):
        raise LineUnread(f"that would not be read as a {_KINDS[key]}: {reason}")


def _is_read_in(key: str, place: Place) -> bool:
    return place.above.casefold() in {one.casefold() for one in _SECTIONS[key]}


def _unread(key: str, raw: str, place: Place, today: date) -> str:
    contents = contents_of(place.page(raw))
    read = read_rules(contents) if key == "rules" else read_reminders(contents, today)
    if read[1]:
        return read[1][0].message_on(today)
    return "" if read[0] else f"it stands in none of the sections {', '.join(_SECTIONS[key])}"


def _paragraph(raw: str) -> str:
    """The first paragraph of an entry, which is all that is read of it, with its mark."""
    first = next((token for token in block_tokens(raw) if token.type == "paragraph_open" and token.map), None)
    end = first.map[1] if first and first.map else 1
    return "\n".join(raw.split("\n")[:end])


def _item(raw: str) -> Item:
    return next(item for section in sections_of(f"{raw}\n") for item in section.items)
