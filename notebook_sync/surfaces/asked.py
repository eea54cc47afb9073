"""What every edge makes of an argument before it asks a use case: the note that a name means, the moment that a text
does."""

from __future__ import annotations

from datetime import UTC, datetime

from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.moments import moment


def note_to_change(notebook: Notebook, name: str, session: Session, tool: str) -> str:
    """The path of one note. A name that the session may not change is refused before it is looked up.

    Raises NotPermitted, NoSuchNote, UnsafePath.
    """
    notebook.guard.require_change(session, name, tool)
    with notebook.guard.telling(session, tool):
        return notebook.find_path(name, session)


def moment_given(notebook: Notebook, text: str | None) -> datetime | None:
    """A day, a moment or how long ago, in the notebook's timezone; None for nothing. Raises UsageError."""
    return None if text is None else moment(text, notebook.settings.timezone, datetime.now(UTC))
