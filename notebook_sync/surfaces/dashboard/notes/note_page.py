"""One note, as it is read: from its file, so that it is there also while the mirror is away. It changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Final

from fastapi import Query
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.responses import Response

from notebook_sync.errors import BackendDown, NoSuchNote, NotebookError, UnreadableFile, UnsafePath
from notebook_sync.files.note import Note
from notebook_sync.notebook import Notebook
from notebook_sync.notes.links import folded
from notebook_sync.search.searching import KEYWORD
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.asking import Asking, Served, pages_router
from notebook_sync.surfaces.dashboard.notes.note_view import (
    InPrompt,
    Link,
    address_of,
    asked_links,
    in_prompt_of,
    view_of,
)
from notebook_sync.surfaces.dashboard.notes.tree import folder_address
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.rendering import rendered
from notebook_sync.surfaces.dashboard.trouble import advice_for_owner
from notebook_sync.surfaces.errors import kind_of
from prompt.errors import PromptError

pages = pages_router()
_DEEPEST: Final = 16
_MOST_OF_A_NAME: Final = 20
# What a page that led here did.
_SAID: Final = {
    "saved": "Saved.",
    "unchanged": "Nothing was changed, so nothing was written.",
    "made": "Made.",
    "back": "Brought back: the note says what it said before it was deleted.",
    "restored": "Put back: the note says what it said in that version.",
    "renamed": "Renamed. Links to it in other notes are as they were.",
}


@pages.get("/notes/{note:path}")
def note_page(note: str, notebook: Served, asking: Asking, done: Annotated[str, Query(max_length=16)] = "") -> Response:
    """The note with this path, id or file name."""
    try:
        path = notebook.find_path(note, asking)
    except NoSuchNote:
        if gone := _gone(note, notebook, asking):
            return gone
        if meant := _meant(note, notebook, asking):
            return RedirectResponse(address_of(meant), 303)
        return _folder(note, notebook, asking) or _missing(note)
    except UnsafePath as error:
        return _unreadable(note, error, None)
    if path != note:
        return RedirectResponse(address_of(path), 303)
    document, trouble, refused = _mirrored(notebook, path, asking)
    try:
        file = notebook.file(path, asking)
    except (UnreadableFile, UnsafePath) as error:
        return _unreadable(path, error, document)
    from notebook_sync.files.parse import parse  # counts tokens, for which a vocabulary is read

    found = parse(path, file.text.encode(errors="replace"), encoding=notebook.settings.prompt.encoding)
    broken = {} if trouble else _broken(notebook, found, asking)
    return page(
        "note.html",
        here="notes",
        said=_SAID.get(done, ""),
        note=view_of(found, file.text, document, refused, broken),
        zone=notebook.settings.timezone,
        trouble=trouble,
        in_prompt=_in_prompt(notebook, path, asking),
        linking=_linking(notebook, path, asking) if document else [],
    )


def _mirrored(notebook: Notebook, path: str, asking: Session) -> tuple[Mapping[str, Any] | None, str, str]:
    """What the mirror has of a note; why it does not answer; and why it does not take the file."""
    try:
        return notebook.read(path, asking), "", ""
    except BackendDown as error:
        return None, str(error), ""
    except UnreadableFile as error:
        return None, "", error.reason
    except NoSuchNote:  # it is being written: what it says now is shown
        return None, "", ""


def _broken(notebook: Notebook, note: Note, asking: Session) -> Mapping[str, str]:
    """Which of its links lead nowhere, and why; none where nobody can tell."""
    try:
        return notebook.broken_links(note.path, asked_links(note), asking)
    except BackendDown:
        return {}


def _linking(notebook: Notebook, path: str, asking: Session) -> list[Link]:
    """The notes that lead here."""
    try:
        return [Link(row["title"], address_of(row["path"])) for row in notebook.linking_to(path, asking) if row["path"]]
    except (
        BackendDown,
        NoSuchNote,
        UnreadableFile,
    ):  # it went away since it was read; the page says so where it matters
        return []


def _in_prompt(notebook: Notebook, path: str, asking: Session) -> InPrompt | None:
    try:
        return in_prompt_of(notebook.prompt(asking).parts, path)
    except (PromptError, NotebookError):  # the page of the prompt says what is wrong with it
        return None


def _meant(name: str, notebook: Notebook, asking: Session) -> str:
    """The note that a link means where none has this path: one whose path it tells from the notebook itself, though it
    stands in a note below, or the only one with this title; "" for none."""
    parts = name.split("/")
    for depth in range(1, min(len(parts) - 1, _DEEPEST)):
        with suppress(NoSuchNote, UnsafePath):
            return notebook.find_path("/".join(parts[depth:]), asking)
    rows = notebook.search(name, _MOST_OF_A_NAME, asking, mode=KEYWORD)
    titled = [row["path"] for row in rows if row["path"] and folded(row["title"]) == folded(name)]
    return titled[0] if len(titled) == 1 else ""


def _folder(name: str, notebook: Notebook, asking: Session) -> RedirectResponse | None:
    """The way to the folder that has this name, if one has."""
    try:
        return RedirectResponse(folder_address(notebook.shelf(name, asking).path), 303)
    except (NoSuchNote, UnsafePath):
        return None


def _gone(path: str, notebook: Notebook, asking: Session) -> HTMLResponse | None:
    """What is known of a note that was at this path; None for one that never was."""
    if not path.endswith(".md"):
        return None
    try:
        last = notebook.history(path, asking, 1)
    except (NoSuchNote, UnsafePath, BackendDown):
        return None
    if not last:
        return None
    return page("note_gone.html", status=404, here="notes", path=path, last=last[0], zone=notebook.settings.timezone)


def _missing(name: str) -> HTMLResponse:
    return page("note_missing.html", status=404, here="notes", name=name.strip("/"))


def _unreadable(path: str, error: UnreadableFile | UnsafePath, document: Mapping[str, Any] | None) -> HTMLResponse:
    why = f"It {error.reason}" if isinstance(error, UnsafePath) else error.reason
    last_good = rendered(document["content"]) if document else None
    return page(
        "note_unreadable.html",
        status=kind_of(error).status,
        here="notes",
        path=path,
        why=why,
        next_step=advice_for_owner(error),
        last_good=last_good,
    )
