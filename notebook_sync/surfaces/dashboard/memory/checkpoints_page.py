"""Checkpoints: which are kept, making one, and going back to one after asking what that would do. What is now is kept
first each time, so that going back is undone from here too."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Annotated, Final, cast

from fastapi import Path, Query
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from notebook_sync.errors import BackendDown, GitFailed, NotebookError, Refused, UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.notes.stream.rolled_back import Checkpoint
from notebook_sync.operations.stream import Plan
from notebook_sync.refs.base import CHECKPOINTS_KEPT
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.memory.stream_view import row_of
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.trouble import Trouble, trouble_of
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
CHECKPOINTS: Final = "/memory/checkpoints"
# How many lines of each list a question shows before it only counts.
SHOWN: Final = 50
Id = Annotated[str, Path(max_length=64)]
Short = Annotated[str, Query(max_length=64)]
_SAID: Final = {
    "made": "Kept: you can go back to how things are now.",
    "back": "You went back. The notes are left as they are.",
    "back-files": "You went back, and the notes with you.",
}


@pages.get(CHECKPOINTS)
def checkpoints_page(notebook: Served, asking: Asking, done: Short = "") -> Response:
    """The checkpoints, the latest first."""
    return _checkpoints(notebook, asking, done)


@pages.post(CHECKPOINTS)
def make(notebook: Served, asking: Asking, form: Form) -> Response:
    """Keep what is now."""
    name = form.get("name", "")
    try:
        made = notebook.stream.checkpoint(name, asking)
    except (UsageError, BackendDown) as error:
        return _checkpoints(notebook, asking, "", name=name, error=error)
    if made.warnings:
        return _checkpoints(notebook, asking, "made", warnings=made.warnings)
    return RedirectResponse(f"{CHECKPOINTS}?done=made", 303)


@pages.get(CHECKPOINTS + "/{checkpoint}")
def question_page(notebook: Served, asking: Asking, checkpoint: Id, files: Short = "") -> Response:
    """What going back would do."""
    return _question(notebook, asking, checkpoint, files=bool(files))


@pages.post(CHECKPOINTS + "/{checkpoint}")
def go_back(notebook: Served, asking: Asking, checkpoint: Id, form: Form) -> Response:
    """Go back, if that does what the question told, and no checkpoint was made since: sent twice, it is done once, and
    what was before is not taken for what is to be undone."""
    files = bool(form.get("files"))
    latest = next((one.id for one in notebook.stream.checkpoints(asking).results), "")
    if form.get("latest") != latest:
        late = UsageError("Nothing was brought back: a checkpoint was made since this page was. Look again.")
        return _question(notebook, asking, checkpoint, files=files, error=late, status=409)
    try:
        rolled = notebook.stream.rollback(checkpoint, asking, files=files, expected_digest=form.get("foreseen", ""))
    except (Refused, GitFailed, UsageError) as error:
        return _question(notebook, asking, checkpoint, files=files, error=error, status=kind_of(error).status)
    done = "back-files" if files else "back"
    if rolled.warnings:
        return _checkpoints(notebook, asking, done, warnings=rolled.warnings)
    return RedirectResponse(f"{CHECKPOINTS}?done={done}", 303)


def _checkpoints(
    notebook: Notebook,
    asking: Session,
    done: str,
    *,
    name: str = "",
    error: NotebookError | None = None,
    warnings: Sequence[str] = (),
) -> Response:
    checkpoints: Sequence[Checkpoint] = ()
    lost = None
    trouble: Trouble | None = None
    try:
        found = notebook.stream.checkpoints(asking)
        checkpoints, lost = found.results, found.degraded
    except BackendDown as down:
        trouble = trouble_of(down)
    with_files = done == "back-files"
    undo = checkpoints[0] if done in ("back", "back-files") and checkpoints else None
    return page(
        "checkpoints.html",
        status=kind_of(error).status if error else 200,
        here="memory",
        checkpoints=checkpoints,
        lost=lost,
        trouble=trouble,
        refused=trouble_of(error) if error else None,
        name=name,
        most=CHECKPOINTS_KEPT,
        said=_SAID.get(done, ""),
        undo=_undo(notebook, asking, undo, files=with_files) if undo and undo.is_before_rollback else None,
        with_files=with_files,
        warnings=warnings,
        zone=notebook.settings.timezone,
    )


def _undo(notebook: Notebook, asking: Session, latest: Checkpoint, *, files: bool) -> Plan | None:
    try:
        return notebook.stream.rollback(latest.id, asking, files=files, dry_run=True).plan
    except (BackendDown, GitFailed, UsageError):
        return None


def _question(
    notebook: Notebook,
    asking: Session,
    checkpoint: str,
    *,
    files: bool,
    error: NotebookError | None = None,
    status: int = 200,
) -> Response:
    try:
        found = notebook.stream.rollback(checkpoint, asking, files=files, dry_run=True)
    except (GitFailed, UsageError) as lacking:
        if not files:
            raise
        return _question(notebook, asking, checkpoint, files=False, error=error or lacking, status=status)
    zone, plan = notebook.settings.timezone, cast("Plan", found.plan)
    return page(
        "checkpoint.html",
        status=status,
        here="memory",
        found=found,
        plan=plan,
        since=plan.checkpoint.at.astimezone(zone),
        files=files,
        lists=_lists(plan, zone),
        most=SHOWN,
        error=error,
        zone=zone,
    )


def _lists(plan: Plan, zone: tzinfo) -> list[tuple[str, Sequence[object], int]]:
    """The entries that go and come back, as far as they are shown, and how many they are."""
    named = (
        ("go from the stream", plan.stream.gone),
        ("come back into the stream", plan.stream.back),
        ("go from what is kept for long", plan.longterm.gone),
        ("come back into what is kept for long", plan.longterm.back),
    )
    return [
        (name, [row_of(one, zone) for one in reversed(entries[-SHOWN:])], len(entries))
        for name, entries in named
        if entries
    ]
