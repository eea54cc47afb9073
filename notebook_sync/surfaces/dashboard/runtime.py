"""Reminders by when they are due, and the rules: pages on files of runtime/, each change one edit that is taken back.

What is typed becomes one list item; it never opens a heading, a comment or code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from starlette.responses import Response

from notebook_sync.errors import NoSuchNote, UsageError
from notebook_sync.services.assembling import REMINDERS, RULES
from notebook_sync.services.reminders import SECTIONS, Due
from notebook_sync.surfaces.dashboard.notes import undo_of
from notebook_sync.surfaces.dashboard.shell import Ask, Shell, Undo, route

_PAGE = "/reminders"
_GROUPS = ("Overdue", "Today", "This week", "Later", "Waiting", "Done")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(\[.\]\s+)?(.+)")
WEEK = 7


@dataclass(frozen=True, slots=True)
class Row:
    """A reminder with the words that name it for an edit, "" where none do. `has_box`: it can be ticked."""

    due: Due
    entry: str
    has_box: bool
    digest: str


def rows_of(shell: Shell, reminders: Iterable[Due]) -> list[Row]:
    """Reminders with the words that name each in its file as it is now."""
    try:
        note = shell.call("read", {"id": REMINDERS})
    except NoSuchNote:  # the last good text is listed, and cannot be changed
        return [Row(each, "", has_box=False, digest="") for each in reminders]
    lines = dict(enumerate(note.text.split("\n"), 1))
    items = [(each, _ITEM.match(lines.get(each.line, ""))) for each in reminders]
    return [Row(each, item[2] if item else "", bool(item and item[1]), note.digest) for each, item in items]


def groups_of(rows: Sequence[Row], now: datetime) -> dict[str, list[Row]]:
    """Reminders by when they are due, the groups in their order; no empty ones."""
    groups: dict[str, list[Row]] = {name: [] for name in _GROUPS}
    for row in rows:
        groups[_group_of(row.due, now)].append(row)
    return {name: found for name, found in groups.items() if found}


def _group_of(due: Due, now: datetime) -> str:
    known = {"done": "Done", "overdue": "Overdue", "due": "Today"}
    if due.state in known:
        return known[due.state]
    left = days_left(due.when or "", now)
    if due.kind == "waiting":
        return "Waiting"
    if left == 0:
        return "Today"
    is_near = due.section.casefold() == "this week" if left is None else left < WEEK
    return "This week" if is_near else "Later"


def days_left(moment: str, now: datetime) -> int | None:
    """In how many days a day or moment of ISO 8601 is, by the calendar; None for what is neither."""
    try:
        return (date.fromisoformat(moment[:10]) - now.date()) // timedelta(days=1)
    except ValueError:
        return None


@route(_PAGE, link=("Notebook", "Reminders"))
def show_reminders(shell: Shell, ask: Ask) -> Response:
    """All reminders, by when they are due."""
    found, trouble = shell.tried("reminders")
    note, unread = shell.tried("read", {"id": REMINDERS})
    now = datetime.now(shell.notebook.settings.timezone)
    return shell.page(
        ask,
        "reminders.html",
        groups=groups_of(rows_of(shell, found.results), now) if found else {},
        sections=[each.heading for each in note.sections if each.heading in SECTIONS] if note else [],
        problems=found.problems if found else [],
        trouble=trouble or unread,
        path=REMINDERS,
    )


@route(f"{_PAGE}/add", "POST")
def add(shell: Shell, ask: Ask) -> Response:
    """Add a reminder on one line."""
    section, due = ask.form.get("section", ""), _one_line(ask.form.get("due", ""))
    text = _one_line(ask.form.get("text", ""))
    if not text:
        raise UsageError("the reminder has no text", next="write what is to be done")
    box = "" if section in ("Recurring", "Waiting For") else "[ ] "
    dated = f" [{'expected' if section == 'Waiting For' else 'due'}: {due}]" if due and section != "Recurring" else ""
    given = {"action": "append_to_section", "section": section, "content": f"- {box}{text}{dated}"}
    return _edit(shell, ask, given, "added a reminder")


@route(f"{_PAGE}/tick", "POST")
def tick(shell: Shell, ask: Ask) -> Response:
    """Tick a reminder, or take its tick back."""
    entry = ask.form.get("entry", "")
    undo = Undo(f"{_PAGE}/tick", {"entry": entry})
    return _edit(shell, ask, {"action": "toggle_checkbox", "entry_match": entry}, "ticked a reminder", undo)


@route(f"{_PAGE}/move", "POST")
def move(shell: Shell, ask: Ask) -> Response:
    """Move a reminder to another section."""
    entry, to, section = (ask.form.get(name, "") for name in ("entry", "to", "section"))
    undo = Undo(f"{_PAGE}/move", {"entry": entry, "to": section, "section": to})
    return _edit(shell, ask, {"action": "move_entry", "entry_match": entry, "to": to}, "moved a reminder", undo)


def _edit(shell: Shell, ask: Ask, given: dict[str, Any], what: str, undo: Undo | None = None) -> Response:
    digest = {"expected_digest": ask.form["digest"]} if ask.form.get("digest") else {}
    done = shell.call("edit", {"id": REMINDERS, **given, **digest})
    to = ask.back_to(_PAGE, "/")
    return shell.done(to, f"Done: {what}", warnings=done.warnings, undo=undo or undo_of(done))


def _one_line(text: str) -> str:
    return " ".join(text.split())


@route("/rules", link=("Notebook", "Rules"))
def show_rules(shell: Shell, ask: Ask) -> Response:
    """The rules in force, or what applies to somebody and why."""
    given = ask.asked("identity", "channel")
    standing, trouble = shell.tried("rules", given)
    now = datetime.now(shell.notebook.settings.timezone)
    rules = [(each, days_left(each.until, now)) for each in standing.results] if standing else []
    return shell.page(
        ask, "rules.html", given=given, standing=standing, rules=rules, trouble=trouble, path=RULES, week=WEEK
    )
