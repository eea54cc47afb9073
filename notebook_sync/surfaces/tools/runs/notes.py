"""What each tool does: one use case of the notebook, its answer cut to what a model can take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from notebook_sync.files.edits import Action, Edit
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.moments import moment_given
from notebook_sync.notebook import Notebook
from notebook_sync.notes import places
from notebook_sync.sessions import Session
from notebook_sync.surfaces.tools.schemas import notes as schemas
from prompt import count_tokens, fence_external, trim

_Document = dict[str, Any]


def edit(notebook: Notebook, wanted: schemas.EditArguments, session: Session) -> schemas.Result:
    """One edit, or several of the same file, all or nothing."""
    if wanted.action == "read":
        return read(notebook, schemas.ReadArguments(id=wanted.file, section=wanted.section), session)
    edited = notebook.edit(
        wanted.file,
        [_step(wanted.action, wanted, wanted.reason), *(_step(each.action, each) for each in wanted.more or ())],
        session,
        expected_digest=wanted.expected_digest,
        allow_over_cap=bool(wanted.allow_over_cap),
        preview=bool(wanted.preview),
    )
    result = schemas.EditResult.model_validate(edited.as_dict())
    if not edited.external:
        return result
    return result.model_copy(update={"diff": fence_external(result.diff, EXTERNAL)})


def read(notebook: Notebook, wanted: schemas.ReadArguments, session: Session) -> schemas.Result:
    """A note or a section of it, at most so many tokens of it."""
    if wanted.omitted:
        return _omitted(notebook, wanted, session)
    document, named = places.found(lambda note: notebook.read(note, session), wanted.id)
    name = wanted.section or named
    section = notebook.section(document, name) if name else None
    text = section["content"] if section else document["content"]
    encoding = notebook.settings.prompt.encoding

    def count(text: str) -> int:
        return count_tokens(text, encoding)

    # The lines that a cut leaves name places in the whole note, which a section by itself knows nothing of.
    path = "" if section else document["path"]
    external = document["external"]
    shown, truncated = _within(wanted.max_tokens or _TOKENS, text, count, path, external)
    tokens = count(text)
    return schemas.ReadResult(
        id=document["path"] if external else document["id"],
        path=document["path"],
        title=document["path"] if external else document["title"],
        section=section["anchor"] if section else None,
        digest=document["source"]["digest"],
        version=document["metadata"]["version"],
        text=shown,
        tokens=tokens,
        truncated=truncated,
        stale=document["stale"],
        provenance=EXTERNAL if external else None,
        next=_next(document, section, tokens) if truncated else None,
    )


def search(notebook: Notebook, wanted: schemas.SearchArguments, session: Session) -> schemas.Result:
    """Notes by their words and by what they mean."""
    searched = notebook.search_report(
        wanted.query,
        wanted.limit or _FOUND,
        session,
        mode=wanted.mode or "",
        section=wanted.section or "",
        snippet=bool(wanted.snippet),
        **_narrowed(notebook, wanted),
    )
    return schemas.Search(
        results=[_found(schemas.Found.model_validate(row)) for row in searched.results],
        mode=searched.mode,
        degraded=searched.degraded or None,
        behind=searched.behind or None,
    )


def list_notes(notebook: Notebook, wanted: schemas.ListArguments, session: Session) -> schemas.Result:
    """Notes by their last change."""
    return _rows(notebook.list(limit=wanted.limit or _LISTED, session=session, **_narrowed(notebook, wanted)))


def ours(row: schemas.Row) -> dict[str, Any]:
    """What is told of a note that somebody else wrote, in place of what they chose of it: that stands in a fence."""
    told = fence_external(f"{row.title}\n\n{row.summary}", EXTERNAL)
    return {"id": row.path, "title": row.path, "summary": told, "tags": [], "created_by": EXTERNAL}


_TOKENS, _FOUND, _LISTED = 4_000, 10, 50


def _step(action: Action, wanted: schemas.EditArguments | schemas.Step, reason: str | None = None) -> Edit:
    return Edit(
        action,
        section=wanted.section or "",
        content=wanted.content or "",
        entry_match=wanted.entry_match or "",
        to=wanted.to or "",
        reason=reason or "",
    )


def _rows(notes: list[_Document]) -> schemas.Rows:
    return schemas.Rows(results=[_row(schemas.Row.model_validate(note)) for note in notes])


def _row(row: schemas.Row) -> schemas.Row:
    return row if row.provenance is None else row.model_copy(update=ours(row))


def _found(row: schemas.Found) -> schemas.Found:
    if row.provenance is None:
        return row
    quoted = row.snippet and row.snippet.model_copy(
        update={"text": fence_external(row.snippet.text, EXTERNAL), "section": ""}
    )
    return row.model_copy(update={**ours(row), "snippet": quoted})


def _narrowed(notebook: Notebook, wanted: schemas.ListArguments) -> dict[str, Any]:
    return {
        "collection": wanted.collection,
        "status": wanted.status,
        "tags": wanted.tags or (),
        "created_by": wanted.author or "",
        "since": moment_given(notebook, wanted.since),
    }


def _within(most: int, text: str, count: Callable[[str], int], path: str, external: bool) -> tuple[str, bool]:
    """The text in at most so many tokens, its fence included, and whether some of it is left out."""
    room = most
    while True:
        cut = trim(text, max(room, 0), count, path=path)
        shown = fence_external(cut.text, EXTERNAL) if external else cut.text
        over = count(shown) - most
        if over <= 0 or room <= 0:
            return shown, bool(cut.cut)
        room -= over


def _omitted(notebook: Notebook, wanted: schemas.ReadArguments, session: Session) -> schemas.OmittedResult:
    page = notebook.prompts.omitted(
        wanted.id,
        session,
        section=wanted.section or "",
        max_tokens=wanted.max_tokens or _TOKENS,
        offset=wanted.offset or 0,
    )
    following = f"the same call with offset {page.next}" if page.next else None
    return schemas.OmittedResult(
        path=page.path,
        digest=page.digest,
        text=page.text,
        tokens=page.tokens,
        truncated=bool(page.next),
        section=page.section or None,
        next=following if page.tokens else "nothing is left out here: your prompt shows all of it",
    )


def _next(document: _Document, section: _Document | None, tokens: int) -> str:
    """How to read what was cut: a part of it by itself, or all."""
    whole = f"max_tokens {tokens + _FRAME} for all of it"
    if document["external"]:  # its headings are not the owner's words
        return whole
    parts = [each["anchor"] for each in document["sections"] if section is None or _is_inside(each, section)]
    return f"{whole}, or one section: {', '.join(parts[:_MOST_PARTS])}" if parts else whole


def _is_inside(one: _Document, other: _Document) -> bool:
    return bool(other["start"] < one["start"] and one["end"] <= other["end"])


# What a fence may cost.
_FRAME = 64
_MOST_PARTS = 12
