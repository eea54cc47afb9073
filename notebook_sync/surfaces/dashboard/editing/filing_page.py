"""Taking a note away, after asking, and giving it another path. What it said is kept, and can be brought back."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import quote

from fastapi import Path
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from notebook_sync.errors import Conflict, NotebookError, NotPermitted
from notebook_sync.files.note import collection_of
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
Name = Annotated[str, Path(max_length=4096)]
# How much of a note is shown before it is deleted.
_FIRST: Final = 12
_LONGEST_LINE: Final = 200


@pages.get("/delete/{note:path}")
def deletion_page(notebook: Served, asking: Asking, note: Name) -> Response:
    """What would go."""
    return _deletion_page(notebook, asking, note)


@pages.post("/delete/{note:path}")
def delete(notebook: Served, asking: Asking, note: Name, form: Form) -> Response:
    """Take it away, if it is still what the page showed."""
    try:
        notebook.delete(note, asking, expected_digest=form.get("digest", ""))
    except Conflict as conflict:
        return _deletion_page(notebook, asking, note, conflict)
    return RedirectResponse(f"/history/{quote(note)}?done=deleted", 303)


def _deletion_page(notebook: Served, asking: Asking, note: str, conflict: Conflict | None = None) -> Response:
    file = notebook.file(note, asking)
    lines = file.text.splitlines()
    shown = [line[:_LONGEST_LINE] for line in lines[:_FIRST]]
    return page(
        "delete.html",
        here="notes",
        status=409 if conflict else 200,
        path=file.path,
        digest=file.digest,
        size=len(file.text),
        first_lines="\n".join(shown),
        is_cut=shown != lines,
        is_runtime=collection_of(file.path) == "runtime",
        is_stale=conflict is not None,
    )


@pages.get("/rename/{note:path}")
def renaming_page(notebook: Served, asking: Asking, note: Name) -> Response:
    """The path it has, to be changed."""
    found = notebook.file(note, asking).path
    return page(
        "rename.html", here="notes", path=found, wanted=found, is_runtime=collection_of(found) == "runtime", wrong=""
    )


@pages.post("/rename/{note:path}")
def rename(notebook: Served, asking: Asking, note: Name, form: Form) -> Response:
    """Give it the path, where nothing is yet."""
    wanted = form.get("to", "").strip()
    try:
        notebook.rename(note, wanted, asking)
    except NotebookError as error:
        return page(
            "rename.html",
            here="notes",
            status=kind_of(error).status,
            path=note,
            wanted=wanted,
            is_runtime=collection_of(note) == "runtime",
            wrong=_wording(error, wanted),
        )
    return RedirectResponse(f"/notes/{quote(wanted)}?done=renamed", 303)


def _wording(error: NotebookError, wanted: str) -> str:
    match error:
        case Conflict(base=""):
            return f"There is a note at {wanted} already; choose another path"
        case NotPermitted():
            return "No note can be there; use a plain path below the notebook that ends in .md, like pages/plan.md"
    return str(error)
