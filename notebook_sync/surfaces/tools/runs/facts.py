"""What the tools for facts do: one use case each. Words that somebody else wrote are told in a fence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.tools.schemas import facts as schemas
from prompt import fence_external

_FOUND = 10


def memory_add(notebook: Notebook, wanted: schemas.AddArguments, session: Session) -> schemas.ChangedResult:
    """One more fact, or one that is known already and counts for more."""
    section = {} if wanted.section is None else {"section": wanted.section}
    added = notebook.fact_add(wanted.content, session, importance=wanted.importance, **section)
    return schemas.ChangedResult.model_validate(_told(added))


def memory_query(notebook: Notebook, wanted: schemas.QueryArguments, session: Session) -> schemas.FactRows:
    """Facts like a text; without one, those that count for most."""
    scope, limit = wanted.scope or "notes", wanted.limit or _FOUND
    if wanted.query and wanted.query.strip():
        found = notebook.fact_search(wanted.query, session, scope=scope, limit=limit)
        return schemas.FactRows(results=_rows(found), degraded=found.degraded or None)
    return schemas.FactRows(results=_rows(notebook.facts(session, scope=scope, limit=limit)))


def memory_verify(notebook: Notebook, wanted: schemas.VerifyArguments, session: Session) -> schemas.VerdictResult:
    """Whether it is known."""
    found = notebook.fact_verify(wanted.content, session)
    return schemas.VerdictResult(
        verdict=found["verdict"],
        similarity=found["similarity"],
        matches=_rows(found["matches"]),
        degraded=found["degraded"] or None,
    )


def memory_reinforce(notebook: Notebook, wanted: schemas.ReinforceArguments, session: Session) -> schemas.ChangedResult:
    """One fact that counts for more."""
    return schemas.ChangedResult.model_validate(_told(notebook.fact_reinforce(wanted.fact, session)))


def fact_extract(notebook: Notebook, wanted: schemas.ExtractArguments, session: Session) -> schemas.ExtractResult:
    """What of a conversation is worth keeping, and what it says of what is kept."""
    messages = [message.model_dump() for message in wanted.messages]
    found = notebook.fact_extract(messages, session, dry_run=bool(wanted.dry_run))
    told = {name: [_told(fact) for fact in found[name]] for name in ("additions", "removals")}
    return schemas.ExtractResult.model_validate({**found, **told})


def _rows(facts: Sequence[Mapping[str, Any]]) -> list[schemas.FactRow]:
    return [schemas.FactRow.model_validate(_told(fact)) for fact in facts]


def _told(fact: Mapping[str, Any]) -> dict[str, Any]:
    """A fact as a model is told it: a long text cut, somebody else's in a fence and without the heading above it."""
    text = str(fact["content"])
    shown = text if len(text) <= schemas.LONGEST_SHOWN else f"{text[: schemas.LONGEST_SHOWN - 1].rstrip()}…"
    if fact.get("provenance") != EXTERNAL:
        return {**fact, "content": shown}
    return {**fact, "content": fence_external(shown, EXTERNAL), "section": ""}
