"""What the tools for the stream and for checkpoints do: one use case each."""

from __future__ import annotations

from typing import Any

from notebook_sync.agent_notebook import USUAL_SCORE
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.moments import moment_given
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.tools.schemas import agents as schemas
from prompt import fence_external

_FOUND, _RECALLED = 50, 10


def recall(notebook: Notebook, wanted: schemas.RecallArguments, session: Session) -> schemas.RecallResult:
    """Entries by their words, which are told: they are what was put there to be recalled."""
    found = notebook.recall(
        wanted.query,
        session,
        tags=wanted.tags or (),
        since=moment_given(notebook, wanted.since),
        limit=wanted.limit or _RECALLED,
    )
    entries = [_entry(schemas.EntryResult.model_validate(each)) for each in found["results"]]
    return schemas.RecallResult(results=entries, partial=found["partial"] or None)


def today(notebook: Notebook, wanted: schemas.TodayArguments, session: Session) -> schemas.TodayResult:
    """The entries of a day."""
    day = notebook.today(session, wanted.day or "", wanted.limit or _FOUND)
    entries = [_entry(schemas.EntryResult.model_validate(each)) for each in day.entries]
    return schemas.TodayResult(day=day.day, results=entries, earlier=day.earlier, lost=day.lost or None)


def log(notebook: Notebook, wanted: schemas.LogArguments, session: Session) -> schemas.LogResult:
    """One more entry."""
    score = USUAL_SCORE if wanted.score is None else wanted.score
    entry = notebook.log(wanted.content, session, tags=wanted.tags or (), score=score, keep=bool(wanted.keep))
    return schemas.LogResult.model_validate(entry)


def checkpoint(notebook: Notebook, wanted: schemas.CheckpointArguments, session: Session) -> schemas.CheckpointResult:
    """How things are now, to go back to."""
    return schemas.CheckpointResult.model_validate(notebook.checkpoint(session, wanted.name or "").as_dict())


def rollback(
    notebook: Notebook, wanted: schemas.RollbackArguments, session: Session
) -> schemas.RolledBackResult | schemas.CheckpointsResult:
    """Back to a checkpoint; or, where none is named, which there are."""
    if wanted.id is None:
        kept = [schemas.CheckpointResult.model_validate(each.as_dict()) for each in notebook.checkpoints(session)]
        return schemas.CheckpointsResult(checkpoints=kept, lost=notebook.checkpoints_lost(session) or None)
    rolled = notebook.rollback(wanted.id, session, files=bool(wanted.files))
    return schemas.RolledBackResult.model_validate(rolled.as_dict())


def _entry(entry: schemas.EntryResult) -> schemas.EntryResult:
    """The entry; of a note that somebody else wrote, what they chose of it stands in a fence, or is left out."""
    if entry.provenance is None:
        return entry
    told: dict[str, Any] = {"content": fence_external(entry.content, EXTERNAL), "provenance": EXTERNAL}
    if entry.ref is not None:
        ref = entry.ref.model_copy(update={"notebook_id": entry.ref.path, "title": entry.ref.path})
        told |= {"ref": ref, "id": entry.ref.path if entry.id == entry.ref.notebook_id else entry.id}
    return entry.model_copy(update=told)
