"""What the tools for private notes do: one use case each."""

from __future__ import annotations

from typing import Any

from notebook_sync.agent_notebook import BALANCED, GENERAL
from notebook_sync.moments import moment_given
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.tools.runs.notes import ours
from notebook_sync.surfaces.tools.runs.pages import as_result
from notebook_sync.surfaces.tools.schemas import agents as schemas

_FOUND, _RECENT = 50, 20


def write_note(notebook: Notebook, wanted: schemas.WriteNoteArguments, session: Session) -> schemas.WrittenResult:
    """One more private note of the session's agent."""
    written = notebook.write_note(
        wanted.content,
        session,
        topic=wanted.topic or GENERAL,
        tags=wanted.tags or (),
        session_id=wanted.session_id or "",
        project=wanted.project or "",
        metadata=wanted.metadata or {},
    )
    return as_result(written)


def search_my_notes(notebook: Notebook, wanted: schemas.SearchNotesArguments, session: Session) -> schemas.NoteRows:
    """Private notes by their words, ranked as `profile` says."""
    found = notebook.search_notes(
        wanted.query,
        session,
        tags=wanted.tags or (),
        since=moment_given(notebook, wanted.since),
        until=moment_given(notebook, wanted.until),
        topic=wanted.topic or "",
        session_id=wanted.session_id or "",
        project=wanted.project or "",
        profile=wanted.profile or BALANCED,
        limit=wanted.limit or _FOUND,
    )
    return _rows(found, found.degraded)


def get_recent_notes(notebook: Notebook, wanted: schemas.RecentNotesArguments, session: Session) -> schemas.NoteRows:
    """Private notes by their time."""
    found = notebook.recent_notes(
        session,
        limit=wanted.limit or _RECENT,
        session_id=wanted.session_id or "",
        topic=wanted.topic or "",
        project=wanted.project or "",
    )
    return _rows(found)


def peek_agent_notes(notebook: Notebook, wanted: schemas.PeekArguments, session: Session) -> schemas.NoteRows:
    """Notes of another agent, as far as it lets this one look."""
    found = notebook.peek_notes(
        wanted.agent,
        session,
        query=wanted.query or "",
        tags=wanted.tags or (),
        topic=wanted.topic or "",
        project=wanted.project or "",
        limit=wanted.limit or _RECENT,
    )
    return _rows(found, found.degraded)


def _rows(notes: list[dict[str, Any]], degraded: str = "") -> schemas.NoteRows:
    rows = [_row(schemas.NoteRow.model_validate(note)) for note in notes]
    return schemas.NoteRows(results=rows, degraded=degraded or None)


def _row(row: schemas.NoteRow) -> schemas.NoteRow:
    if row.provenance is None:
        return row
    return row.model_copy(update={**ours(row), "topic": None, "session_id": None})
