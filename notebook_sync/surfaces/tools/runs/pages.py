"""What the tools for pages, code snippets and research notes do: one use case each."""

from __future__ import annotations

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.notebook import Notebook
from notebook_sync.notes.editing.written import Written
from notebook_sync.sessions import Session
from notebook_sync.surfaces.tools.schemas import agents as schemas


def create(notebook: Notebook, wanted: schemas.CreateArguments, session: Session) -> schemas.WrittenResult:
    """A new note of one of the collections that agents write to."""
    return as_result(made(notebook, wanted, session))


def made(notebook: Notebook, wanted: schemas.CreateArguments, session: Session) -> Written:
    """What became of the note that is wanted."""
    return notebook.create(
        wanted.collection,
        wanted.title,
        wanted.content,
        session,
        summary=wanted.summary or "",
        tags=wanted.tags or (),
        status=wanted.status or "",
        fields=wanted.fields(),
    )


def update(notebook: Notebook, wanted: schemas.UpdateArguments, session: Session) -> schemas.WrittenResult:
    """What is given of a note, anew."""
    written = notebook.update(
        wanted.id,
        session,
        content=wanted.content,
        title=wanted.title,
        tags=wanted.tags,
        summary=wanted.summary,
        status=wanted.status,
        fields=wanted.fields() or None,
        expected_digest=wanted.expected_digest,
    )
    return as_result(written)


def delete(notebook: Notebook, wanted: schemas.DeleteArguments, session: Session) -> schemas.DeletedResult:
    """One note, by any of its names; never a folder."""
    path = notebook.find_path(wanted.id, session, "write", "notebook_delete")
    entered = notebook.delete(path, session, expected_digest=wanted.expected_digest)
    return schemas.DeletedResult(path=path, warnings=list(entered.warnings), commit=entered.commit)


def as_result(written: Written) -> schemas.WrittenResult:
    """The result; of a note that somebody else wrote, without their words."""
    result = schemas.WrittenResult.model_validate(written.as_dict())
    if not written.external:
        return result
    return result.model_copy(update={"notebook_id": result.path, "title": result.path, "provenance": EXTERNAL})
