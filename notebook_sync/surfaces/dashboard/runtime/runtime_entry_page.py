"""One entry of a runtime file: its words, its last day, its place; done, removed. And pins, and taking a change back.

An entry is found by what it said when the page was made. Where it says something else by now, nothing is written, and
what was typed is shown beside that.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Final

from fastapi import Query
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from notebook_sync.errors import Conflict, NotebookError, OverCap, UsageError
from notebook_sync.files.edits import Action, Edit
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.pages import page, trouble
from notebook_sync.surfaces.dashboard.runtime.runtime_entries import (
    Item,
    item_at,
    sections_of,
    with_item,
    with_pin,
)
from notebook_sync.surfaces.dashboard.runtime.runtime_fields import (
    LineUnread,
    changed_entry,
    entry_with,
    fields_of,
    place_of,
    refuse_unread,
)
from notebook_sync.surfaces.dashboard.runtime.runtime_files import (
    MENDABLE,
    Opened,
    changed,
    file_named,
    led_to,
    opened,
    section_names,
    values_of,
    written,
)
from notebook_sync.surfaces.dashboard.runtime.runtime_lines import ACTIONS, Fields
from notebook_sync.surfaces.dashboard.runtime.runtime_words import subject_of
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
Key = Annotated[str, Query(alias="file", max_length=16)]
Number = Annotated[int, Query(ge=1)]
_GONE: Final = "that entry is not there any more"
_ALWAYS: Final = frozenset({"raw", "to"})
_BACK: Final = "go back to the list, which shows what is there now"


@pages.get("/rules/entry")
def entry_page(notebook: Served, asking: Asking, key: Key, line: Number) -> HTMLResponse:
    """The entry that begins on this line."""
    found = opened(notebook, asking, file_named(key))
    item = _item_on(found, line)
    if item is None:
        return trouble(404, _GONE, _BACK)
    return _entry(found, item, date_of(notebook))


@pages.post("/rules/entry")
def change_entry(notebook: Served, asking: Asking, form: Form) -> Response:
    """Give an entry other words, another day, another place: whatever of its form was changed."""
    found = opened(notebook, asking, file_named(form.get("file", "")))
    item = item_at(found.text, _line_in(form), form.get("was", ""))
    if item is None:
        return _conflict(notebook, found, form)
    key, path, today, to = found.file.key, found.file.path, date_of(notebook), form.get("to", item.anchor)
    here, there = place_of(found.text, item.anchor), place_of(found.text, to)
    fields = fields_of(key, item.raw, here, today)
    before = {**fields, "raw": item.raw}
    try:
        raw = changed_entry(key, item, fields, {**before, **form}, here, there, today)
        text = with_item(path, found.text, item, raw)
        if "unread" not in form:
            refuse_unread(key, raw, bool(fields), there, today)
        moves = _moved(text, item, to)
        allow_over_cap = "allow_over_cap" in form
        done = "moved" if moves and text == found.text else "changed"
        return written(notebook, asking, found, text, done, then=moves, allow_over_cap=allow_over_cap)
    except MENDABLE as error:
        return _entry(found, item, today, form=form, error=error)


@pages.post("/rules/entry/remove")
def remove_entry(notebook: Served, asking: Asking, form: Form) -> Response:
    """Take an entry out."""
    return _edited(notebook, asking, form, "remove_entry", "removed")


@pages.post("/rules/entry/done")
def tick_entry(notebook: Served, asking: Asking, form: Form) -> Response:
    """Tick its box, or take the tick away."""
    return _edited(notebook, asking, form, "toggle_checkbox", "ticked")


@pages.post("/rules/pin")
def pin(notebook: Served, asking: Asking, form: Form) -> Response:
    """Pin a section, or take the pin away."""
    found = opened(notebook, asking, file_named(form.get("file", "")))
    is_pinned = form.get("pin") == "on"
    text = with_pin(found.file.path, found.text, form.get("anchor", ""), is_pinned=is_pinned)
    return written(notebook, asking, found, text, "pinned" if is_pinned else "unpinned")


@pages.post("/rules/undo")
def undo(notebook: Served, asking: Asking, form: Form) -> Response:
    """Take the last change back, if it is the last one still."""
    file = file_named(form.get("file", ""))
    try:
        undone = notebook.undo(file.path, asking, expected_digest=form.get("digest", ""))
    except Conflict as conflict:
        advice = "so the change before is not taken back; its history shows both"
        raise Conflict(file.path, conflict.base, conflict.current, advice=advice) from None
    return led_to(file, "undone", undone.digest)


def date_of(notebook: Notebook) -> date:
    """Today, as the notebook counts days."""
    return datetime.now(notebook.settings.timezone).date()


@pages.post("/rules/entry/add")
def add_again(notebook: Served, asking: Asking, form: Form) -> Response:
    """Put what was typed into a section, where the entry that it was for is gone."""
    found = opened(notebook, asking, file_named(form.get("file", "")))
    anchor, raw, today = form.get("anchor", ""), form.get("raw", ""), date_of(notebook)
    edit = Edit("append_to_section", section=anchor, content=raw)
    try:
        if "unread" not in form:
            refuse_unread(found.file.key, raw, False, place_of(found.text, anchor), today)
        return changed(notebook, asking, found.file, [edit], "added", allow_over_cap="allow_over_cap" in form)
    except MENDABLE as error:
        return _entry(found, None, today, form=form, error=error)


def _moved(text: str, item: Item, to: str) -> list[Edit]:
    """What puts the entry that stands in the place of `item` into another section."""
    if to == item.anchor:
        return []
    now = next(one for section in sections_of(text) for one in section.items if one.line == item.line)
    return [Edit("move_entry", section=now.anchor, entry_match=now.match, to=to)]


def _edited(notebook: Notebook, asking: Session, form: Fields, action: Action, done: str) -> Response:
    """Edit the entry that a form is about, which is found by its words: a change elsewhere is no matter."""
    found = opened(notebook, asking, file_named(form.get("file", "")))
    item = item_at(found.text, _line_in(form), form.get("was", ""))
    if item is None:
        return _conflict(notebook, found, form)
    edit = Edit(action, section=item.anchor, entry_match=item.match)
    try:
        if _is_typed_in(form, _values(found, item, date_of(notebook))):
            raise UsageError("what you wrote here is not saved yet: save it first, or take it back")
        return changed(notebook, asking, found.file, [edit], done, allow_over_cap="allow_over_cap" in form)
    except MENDABLE as error:
        return _entry(found, item, date_of(notebook), form=form, error=error)


def _conflict(notebook: Notebook, found: Opened, form: Fields) -> HTMLResponse:
    """What is there now, and what was typed."""
    item = _item_on(found, _line_in(form))
    advice = "look at what stands there now, and save again" if item else "the entry is gone: add it again, or leave it"
    error = Conflict(found.file.path, "another text", found.digest, advice=advice)
    return _entry(found, item, date_of(notebook), form=form, error=error)


def _entry(
    found: Opened, item: Item | None, today: date, *, form: Fields | None = None, error: NotebookError | None = None
) -> HTMLResponse:
    now = _values(found, item, today) if item else {"raw": (form or {}).get("was", ""), "to": ""}
    return page(
        "runtime_entry.html",
        status=kind_of(error).status if error else 200,
        **values_of(found),
        item=item,
        subject=subject_of(found.file.key, found.text, item, today) if item else "",
        form=_shown(found, now, form, today) if form else now,
        is_read=len(now) > len(_ALWAYS),
        is_line_typed=bool(form) and (form or {}).get("raw", "") not in ("", now["raw"], (form or {}).get("was")),
        error=error,
        is_conflict=isinstance(error, Conflict),
        is_over_cap=isinstance(error, OverCap),
        is_unread=isinstance(error, LineUnread),
        sections=section_names(found),
        actions=ACTIONS,
    )


def _values(found: Opened, item: Item, today: date) -> dict[str, str]:
    """What the form of an entry has before anybody types."""
    fields = fields_of(found.file.key, item.raw, place_of(found.text, item.anchor), today)
    return {**fields, "raw": item.raw, "to": item.anchor}


def _is_typed_in(form: Fields, before: Fields) -> bool:
    return any(form.get(name, said) != said for name, said in before.items())


def _shown(found: Opened, now: Fields, form: Fields, today: date) -> dict[str, str]:
    """What was typed, and what is there now of all else. Fields that the entry has no more are told as a line."""
    key, under = found.file.key, form.get("under", "")
    place = place_of(found.text, under)
    said = form.get("was", "")
    fields = fields_of(key, said, place, today) if said.strip() else {}
    before = {**fields, "raw": said, "to": under}
    typed = {name: form[name] for name, was in before.items() if name in form and form[name] != was}
    if not typed.keys() & now.keys() - _ALWAYS and typed.keys() - _ALWAYS:
        try:
            typed["raw"] = entry_with(key, said, {**fields, **typed}, place, today)
        except UsageError:
            typed["raw"] = "\n".join([said, *(typed[name] for name in typed.keys() - _ALWAYS)])
    return {name: typed.get(name, is_now) for name, is_now in now.items()}


def _item_on(found: Opened, line: int) -> Item | None:
    items = (item for section in sections_of(found.text) for item in section.items)
    return next((item for item in items if item.line == line), None)


def _line_in(form: Fields) -> int:
    said = form.get("line", "")
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 9 else 0
