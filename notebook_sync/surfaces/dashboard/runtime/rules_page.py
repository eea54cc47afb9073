"""The rules, the standing orders and the reminders as they hold now. The pages change nothing: each has a link to the
editor of its file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Annotated, Any, Final

from fastapi import Query
from fastapi.responses import HTMLResponse

from notebook_sync.errors import NoSuchNote
from notebook_sync.notebook import Notebook
from notebook_sync.notes.runtime import reminders, rules
from notebook_sync.sessions import OWNER, Session
from notebook_sync.surfaces.dashboard.asking import Asking, Served, pages_router
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.runtime.prompt_view import Shown, Stretch, shown_of
from notebook_sync.surfaces.dashboard.runtime.rules_view import STATES, days_left, due_at, rule_rows, rules_meant
from prompt import Part, PromptError, count_tokens

pages = pages_router()
# A page shows no more rows; the file has them all.
MOST_ROWS: Final = 200
Identity = Annotated[str, Query(max_length=256)]


@dataclass(frozen=True, slots=True)
class RuntimeFile:
    """A file of the prompt, and the address of its page."""

    path: str
    address: str
    name: str


_RULES: Final = RuntimeFile(rules.PATH, "/rules", "Who may be answered")
_ORDERS: Final = RuntimeFile("runtime/standing-orders.md", "/rules/orders", "Standing orders")
_REMINDERS: Final = RuntimeFile(reminders.PATH, "/reminders", "Reminders")


@dataclass(frozen=True, slots=True)
class Opened:
    """A runtime file now. `use` is None where it is in no prompt of the owner's, or the prompt cannot be made; `unseen`
    are the lines that its cap leaves out, in part or whole. `is_external`: its provenance is external."""

    text: str
    use: Shown | None = None
    unseen: frozenset[int] = frozenset()
    is_missing: bool = False
    is_external: bool = False


@pages.get("/rules")
def rules_page(notebook: Served, asking: Asking, identity: Identity = "", channel: Identity = "") -> HTMLResponse:
    """All rules, and the one that holds for an identity."""
    found, now = _opened(notebook, asking, _RULES), notebook.settings.local_now()
    rows = rule_rows(found.text, now)
    return _page(
        "rules.html",
        _RULES,
        found,
        groups=[(name, [*same]) for name, same in groupby(rows[:MOST_ROWS], lambda row: row.section)],
        more=len(rows) - MOST_ROWS,
        today=now.date(),
        days_left=days_left,
        identity=identity,
        channel=channel,
        standing=notebook.prompts.rules(identity, asking, channel=channel) if identity.strip() else None,
        meant=rules_meant(found.text, identity, now),
    )


@pages.get("/rules/orders")
def orders_page(notebook: Served, asking: Asking) -> HTMLResponse:
    """All standing orders, with what the prompt leaves out."""
    found = _opened(notebook, asking, _ORDERS)
    return _page("orders.html", _ORDERS, found, stretches=found.use.stretches if found.use else [Stretch(found.text)])


@pages.get("/reminders")
def reminders_page(notebook: Served, asking: Asking) -> HTMLResponse:
    """All reminders, the most pressing first."""
    found, timezone = _opened(notebook, asking, _REMINDERS), notebook.settings.timezone
    due, unread = due_at(found.text, datetime.now(timezone), timezone)
    return _page(
        "reminders.html",
        _REMINDERS,
        found,
        groups=[(STATES[state], state, [*same]) for state, same in groupby(due[:MOST_ROWS], lambda one: one.state)],
        more=len(due) - MOST_ROWS,
        unread=unread[:MOST_ROWS],
        timezone=timezone,
    )


def _page(template: str, file: RuntimeFile, found: Opened, **values: Any) -> HTMLResponse:
    return page(template, here="rules", files=(_RULES, _ORDERS, _REMINDERS), file=file, found=found, **values)


def _opened(notebook: Notebook, asking: Session, file: RuntimeFile) -> Opened:
    """The file now. Raises UnreadableFile, UnsafePath."""
    try:
        note = notebook.file(file.path, asking)
    except NoSuchNote:
        return Opened("", is_missing=True)
    try:
        parts = notebook.prompt(OWNER).parts
    except PromptError:
        parts = ()
    part = next((part for part in parts if part.path == file.path), None)
    if part is None:
        return Opened(note.text, is_external=note.external)
    is_current = part.digest == note.digest
    count = partial(count_tokens, encoding=notebook.settings.prompt.encoding)
    use = shown_of(part, note.text if is_current else None, count)
    return Opened(note.text, use, _unseen(note.text, part) if is_current else frozenset(), is_external=note.external)


def _unseen(text: str, part: Part) -> frozenset[int]:
    lines: set[int] = set()
    for gap in part.gaps:
        if gap.reason == "cap":
            cut = text[gap.start : gap.end]
            first = text.count("\n", 0, gap.start + len(cut) - len(cut.lstrip())) + 1
            lines.update(range(first, first + cut.strip().count("\n") + 1))
    return frozenset(lines)
