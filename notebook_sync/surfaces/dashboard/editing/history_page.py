"""What a note said before: its versions, what changed since each, and a button that takes the last change back."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import quote

from fastapi import Path, Query
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from notebook_sync.errors import Conflict, EditFailed, NoSuchNote
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.editing.diff_view import difference_in
from notebook_sync.surfaces.dashboard.pages import page

pages = pages_router()
Name = Annotated[str, Path(max_length=4096)]
MOST: Final = 50
_SAID: Final = {
    "undone": "Undone: the note says again what it said before.",
    "deleted": "Deleted. What it said is kept: undo brings it back.",
}
_STALE: Final = (
    "Nothing was undone: the note is not as this page showed it. Look at its last change, below, and decide again."
)


@pages.get("/history/{note:path}")
def history_page(
    notebook: Served,
    asking: Asking,
    note: Name,
    since: Annotated[str, Query(max_length=128)] = "",
    done: Annotated[str, Query(max_length=16)] = "",
) -> Response:
    """The versions, the latest first, and what changed since one of them: the one before unless another is named."""
    return _history_page(notebook, asking, note, since=since, said=_SAID.get(done, ""))


@pages.post("/undo/{note:path}")
def undo(notebook: Served, asking: Asking, note: Name, form: Form) -> Response:
    """Take the last change back, if the note is as the page showed it: sent twice, it is done once."""
    try:
        notebook.undo(note, asking, expected_digest=form.get("digest", ""))
    except Conflict:
        return _history_page(notebook, asking, note, wrong=_STALE, status=409)
    except EditFailed as failed:
        return _history_page(notebook, asking, note, wrong=failed.reason, status=422)
    if not form.get("digest"):  # it was gone
        return RedirectResponse(f"/notes/{quote(note)}?done=back", 303)
    return RedirectResponse(f"/history/{quote(note)}?done=undone", 303)


def _history_page(
    notebook: Notebook,
    asking: Session,
    note: str,
    *,
    since: str = "",
    said: str = "",
    wrong: str = "",
    status: int = 200,
) -> Response:
    revisions = notebook.history(note, asking, MOST + 1)
    digest = _digest(notebook, note, asking)
    why = ""
    try:
        unified = notebook.diff(note, since, asking)
    except EditFailed as nothing:  # there is no version before this one
        unified, why = "", nothing.reason
    zone = notebook.settings.timezone
    return page(
        "history.html",
        here="notes",
        status=status,
        path=note,
        revisions=[{**each.as_dict(), "at": each.timestamp.astimezone(zone)} for each in revisions[:MOST]],
        has_more=len(revisions) > MOST,
        since=since,
        difference=difference_in(unified),
        why=why,
        digest=digest,
        is_gone=not digest,
        said=said,
        wrong=wrong,
    )


def _digest(notebook: Notebook, path: str, asking: Session) -> str:
    """Of what the note says now; "" where it is gone."""
    try:
        return notebook.file(path, asking).digest
    except NoSuchNote:
        return ""
