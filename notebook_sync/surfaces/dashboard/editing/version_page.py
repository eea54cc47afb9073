"""One version of a note's history: as it was then, to be read, and a button that gives the note that text again."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import quote

from fastapi import Path, Query
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from notebook_sync.errors import Conflict, EditFailed, NoSuchNote, NotebookError
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.notebook import Notebook
from notebook_sync.notes.editing.undoing import Revision
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.rendering import rendered
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
Name = Annotated[str, Path(max_length=4096)]
_STALE: Final = (
    "Nothing was put back: the note is not as this page showed it. Look at what it says now, and decide again."
)
_FARTHEST: Final = 1000


@pages.get("/version/{note:path}")
def version_page(
    notebook: Served, asking: Asking, note: Name, rev: Annotated[str, Query(min_length=1, max_length=128)]
) -> Response:
    """What it said."""
    return _version_page(notebook, asking, note, rev)


@pages.post("/version/{note:path}")
def put_back(notebook: Served, asking: Asking, note: Name, form: Form) -> Response:
    """Give the note this text again, if it is as the page showed it: a new edit, to be undone as any other."""
    rev = form.get("rev", "")
    if not rev:
        return RedirectResponse(f"/history/{quote(note)}", 303)
    try:
        notebook.undo(note, asking, expected_digest=form.get("digest", ""), rev=rev)
    except (Conflict, EditFailed) as error:
        wrong = _STALE if isinstance(error, Conflict) else error.reason
        return _version_page(notebook, asking, note, rev, error=error, wrong=wrong)
    return RedirectResponse(f"/notes/{quote(note)}?done=restored", 303)


def _version_page(
    notebook: Notebook, asking: Session, note: str, rev: str, *, error: NotebookError | None = None, wrong: str = ""
) -> Response:
    known = next((each for each in notebook.history(note, asking, _FARTHEST) if each.rev == rev), None)
    try:
        then = notebook.version(note, rev, asking)
    except NoSuchNote:  # the version in which it was deleted, or one that is kept no longer
        return page("version_gone.html", here="notes", status=404, path=note, version=_told(notebook, known))
    digest = _digest(notebook, note, asking)
    return page(
        "version.html",
        here="notes",
        status=kind_of(error).status if error else 200,
        path=note,
        rev=rev,
        version=_told(notebook, known),
        text=rendered(read_frontmatter(then.text).content),
        source=then.text,
        is_external=then.external,
        is_now=then.digest == digest,
        digest=digest,
        wrong=wrong,
    )


def _told(notebook: Notebook, version: Revision | None) -> dict[str, object] | None:
    if version is None:
        return None
    return {**version.as_dict(), "at": version.timestamp.astimezone(notebook.settings.timezone)}


def _digest(notebook: Notebook, path: str, asking: Session) -> str:
    """Of what the note says now; "" where it is gone."""
    try:
        return notebook.file(path, asking).digest
    except NoSuchNote:
        return ""
