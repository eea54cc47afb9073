"""The routes of the HTTP API for facts: each calls one use case, and gives what that gives; a route decides nothing."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from notebook_sync.errors import UsageError
from notebook_sync.surfaces.http.asking import CONFLICT, Asking, Limit, Served, Words, router
from notebook_sync.surfaces.http.beside import DEGRADED
from notebook_sync.surfaces.http.models import facts as models
from notebook_sync.surfaces.http.picture import PICTURE, picture
from notebook_sync.surfaces.tools.schemas.facts import Scope

fact_routes = router()

Heading = Annotated[str, Query(max_length=256, description="only those under this heading")]


@fact_routes.get("/facts", responses=DEGRADED.documented)
def facts(
    notebook: Served,
    asking: Asking,
    response: Response,
    query: Words = "",
    scope: Annotated[Scope, Query()] = "notes",
    section: Heading = "",
    stale: bool = False,
    limit: Limit = 50,
) -> list[models.Fact]:
    """Facts, those that count for most first; with `query`, those most like it first."""
    if not query.strip():
        listed = notebook.facts(asking, scope=scope, section=section, stale=stale, limit=limit)
        return [models.Fact.model_validate(each) for each in listed]
    if section or stale:
        raise UsageError("a query is narrowed by scope alone; leave section and stale out, or the query")
    found = notebook.fact_search(query, asking, scope=scope, limit=limit)
    DEGRADED.tell(response, found.degraded)
    return [models.Fact.model_validate(each) for each in found]


@fact_routes.post("/facts", status_code=201, responses=CONFLICT)
def add(notebook: Served, asking: Asking, wanted: models.FactWanted) -> models.Changed:
    """Write a fact down, or strengthen the one that says so already."""
    section = {} if wanted.section is None else {"section": wanted.section}
    added = notebook.fact_add(wanted.content, asking, importance=wanted.importance, **section)
    return models.Changed.model_validate(added)


@fact_routes.post("/facts/verify")
def verify(notebook: Served, asking: Asking, wanted: models.ClaimWanted) -> models.Verdict:
    """Whether something is known."""
    return models.Verdict.model_validate(notebook.fact_verify(wanted.content, asking))


@fact_routes.post("/facts/reinforce", responses=CONFLICT)
def reinforce(notebook: Served, asking: Asking, wanted: models.FactNamed) -> models.Changed:
    """Strengthen a fact that proved right."""
    return models.Changed.model_validate(notebook.fact_reinforce(wanted.fact, asking))


@fact_routes.post("/facts/archive", responses=CONFLICT)
def archive(notebook: Served, asking: Asking, wanted: models.ArchiveWanted) -> models.Changed:
    """Put a fact aside, into facts/archive.md."""
    return models.Changed.model_validate(notebook.fact_archive(wanted.fact, asking, reason=wanted.reason or ""))


@fact_routes.post("/facts/restore", responses=CONFLICT)
def restore(notebook: Served, asking: Asking, wanted: models.FactNamed) -> models.Changed:
    """Bring a fact back from the archive."""
    return models.Changed.model_validate(notebook.fact_restore(wanted.fact, asking))


@fact_routes.post("/facts/promote", responses=CONFLICT)
def promote(notebook: Served, asking: Asking, wanted: models.PromoteWanted) -> models.Changed:
    """Move a fact to facts/core.md; for who is not the owner, propose it."""
    return models.Changed.model_validate(notebook.fact_promote(wanted.fact, asking, section=wanted.section or ""))


@fact_routes.post("/facts/decay", responses=CONFLICT)
def decay(notebook: Served, asking: Asking, wanted: models.DecayWanted) -> models.Decayed:
    """Archive what has faded, and promote or propose what has proved itself."""
    return models.Decayed.model_validate(notebook.fact_decay(asking, dry_run=wanted.dry_run))


@fact_routes.post("/facts/dedupe", responses=CONFLICT)
def dedupe(notebook: Served, asking: Asking, wanted: models.DedupeWanted) -> models.Deduped:
    """Facts that say the same; with `apply`, they are merged."""
    return models.Deduped.model_validate(notebook.fact_dedupe(asking, apply=wanted.apply))


@fact_routes.post("/facts/extract", responses=CONFLICT)
def extract(notebook: Served, asking: Asking, wanted: models.MessagesWanted) -> models.Extracted:
    """Draw facts from the last messages of a conversation, by the language model of the notebook's settings."""
    messages = [message.model_dump() for message in wanted.messages]
    return models.Extracted.model_validate(notebook.fact_extract(messages, asking, dry_run=bool(wanted.dry_run)))


@fact_routes.get("/facts/plot", response_class=Response, responses={200: PICTURE})
def plot(
    notebook: Served,
    asking: Asking,
    days: Annotated[int, Query(ge=1, le=3_650, description="how far back")] = 90,
    limit: Annotated[int, Query(ge=1, le=24, description="of how many facts")] = 12,
) -> Response:
    """The importance of facts over time, as a picture without scripts."""
    return picture(notebook.fact_plot(asking, days=days, limit=limit))
