"""The line that a form means in a runtime file: a rule, an order, a reminder. Pure; a line that would not be read back
as what was filled in is refused, and the reason says which field to mend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from notebook_sync.errors import UsageError
from notebook_sync.files.edits import Edit
from notebook_sync.notes.runtime import reminders, rules
from notebook_sync.notes.runtime.entries import contents_of
from notebook_sync.notes.runtime.reminders import read_reminders, read_when
from notebook_sync.notes.runtime.rules import read_rules
from notebook_sync.surfaces.dashboard.runtime.runtime_entries import Section, sections_of

Fields = Mapping[str, str]
# What the grammar knows by name; other words are taken as they are.
ACTIONS: Final = ("always respond", "draft only", "observe only", "block", "never respond")


@dataclass(frozen=True, slots=True)
class Line:
    """An entry, and the section that it goes to; `channel` is the heading below that, "" for none."""

    section: str
    text: str
    channel: str = ""


def rule_line(form: Fields, today: date) -> Line:
    """From name, identity, action, until, section and channel. Without a section it goes where it fits: a channel's to
    the channels, one with a last day to those for a time."""
    name, identity, action = (_said(form, field) for field in ("name", "identity", "action"))
    until, channel = _day(form.get("until", ""), today), _said(form, "channel")
    permanent, temporary, channels = rules.SECTIONS
    fitting = channels if channel else temporary if until else permanent
    section = _known(form.get("section", "") or fitting, rules.SECTIONS)
    for said, what in ((name, "a name"), (identity, "an identity"), (action, "what is to be done")):
        if not said:
            raise UsageError(f"a rule needs {what}")
    if section == channels and not channel:
        raise UsageError("say for which channel the rule is")
    text = f"- **{name}** ({identity}): {action}" + (f" [until {until}]" if until else "")
    found, malformed = read_rules(contents_of(f"## {section}\n\n{text}\n"))
    meant = [(name, identity, action, until)]
    if malformed or [(one.name, one.identity, one.action, one.until) for one in found] != meant:
        raise UsageError(
            "that would not be read as this rule: leave ** out of the name, ( ) out of the identity unless they come "
            "in pairs, and [until …] out of what is to be done"
        )
    return Line(section, text, channel if section == channels else "")


def reminder_line(form: Fields, today: date) -> Line:
    """From text, section, day, clock and every. Without a section it goes where it fits, by its day."""
    said, every = _said(form, "text"), _said(form, "every")
    day, clock = form.get("day", "").strip(), form.get("clock", "").strip()
    section = _known(form.get("section", "") or _fitting(every, day, today), reminders.SECTIONS)
    kind = reminders.KINDS[section.casefold()]
    if not said:
        raise UsageError("say what is not to be forgotten")
    if clock and not day:
        raise UsageError("a time needs a day")
    if bool(every) != (kind == "recurring") or (every and day):
        raise UsageError(
            "what comes again stands under Recurring and says under Every how often, as in: Monday at 09:00; no day"
        )
    when = f"{day} {clock}".strip()
    if when and read_when(when, today) is None:
        raise UsageError(f"{when} is no day that can be read; write it as 2027-03-01, and the time as 09:00")
    if kind == "recurring":
        text = f"- Every {every}: {said}"
    elif kind == "waiting":
        text = f"- {said}" + (f" [expected: {when}]" if when else "")
    else:
        text = f"- [ ] {said}" + (f" [due: {when}]" if when else "")
    found, malformed = read_reminders(contents_of(f"## {section}\n\n{text}\n"), today)
    if malformed and kind == "recurring":
        raise UsageError(f"“{every}” is no recurrence that can be read; say under Every, for example: Monday at 09:00")
    if malformed:
        raise UsageError(f"the text of the reminder cannot be read: {malformed[0].reason}")
    wanted = None if kind == "recurring" or not when else read_when(when, today)
    if [(one.text, one.every, one.when) for one in found] != [(said, every if kind == "recurring" else "", wanted)]:
        raise UsageError("that would not be read as this reminder: leave [due: …] and [expected: …] out of its text")
    return Line(section, text)


def _fitting(every: str, day: str, today: date) -> str:
    """What is for no day, and for whichever day to come, is not for today."""
    if every:
        return "Recurring"
    when = read_when(day, today) if day else None
    return "Today" if when and when.date() <= today else "This Week"


def order_line(form: Fields, today: date) -> Line:
    """From text, section and until."""
    said = form.get("text", "").strip()
    until = _day(form.get("until", ""), today)
    section = form.get("section", "").strip()
    if not said:
        raise UsageError("say what the order is")
    if not section:
        raise UsageError("say to which section the order belongs")
    first, *more = said.removeprefix("- ").split("\n")
    text = "\n".join([f"- {first.rstrip()}" + (f" [until {until}]" if until else ""), *(f"  {line}" for line in more)])
    return Line(section, "\n".join(line.rstrip() for line in text.split("\n")))


def edits_for(line: Line, text: str) -> Sequence[Edit]:
    """What puts it into a file that says `text`: sections that are not there yet are added."""
    sections = sections_of(text)
    above = _called(sections, line.section)
    missing = [] if above else [Edit("add_section", section=line.section)]
    target = above.anchor if above else line.section
    if not line.channel:
        return [*missing, Edit("append_to_section", section=target, content=line.text)]
    below = _called(_children(sections, above), line.channel) if above else None
    if below:
        return [Edit("append_to_section", section=below.anchor, content=line.text)]
    content = f"### {line.channel}\n\n{line.text}"
    return [*missing, Edit("append_to_section", section=target, content=content)]


def _children(sections: Sequence[Section], above: Section) -> Sequence[Section]:
    after = list(sections[sections.index(above) + 1 :])
    end = next((at for at, section in enumerate(after) if section.level <= above.level), len(after))
    return after[:end]


def _called(sections: Sequence[Section], name: str) -> Section | None:
    wanted = name.casefold()
    return next((one for one in sections if one.level and wanted in (one.title.casefold(), one.anchor)), None)


def _said(form: Fields, field: str) -> str:
    return " ".join(form.get(field, "").split())


def _known(section: str, known: Sequence[str]) -> str:
    if section not in known:
        raise UsageError(f"there is no section {section!r}; use one of {', '.join(known)}")
    return section


def day_in(said: str) -> date | None:
    """A day as a form has it; None for none. Raises UsageError for what is no day."""
    if not said.strip():
        return None
    try:
        return date.fromisoformat(said.strip())
    except ValueError:
        raise UsageError(f"{said.strip()!r} is no day; write it as 2027-03-01") from None


def _day(said: str, today: date) -> date | None:
    day = day_in(said)
    if day is not None and day < today:
        raise UsageError(f"{day} is past; a rule holds until a day to come, or has none")
    return day
