"""The routes of the HTTP API for memories, task briefs and their syntheses: each calls one use case, and gives what
that gives; a route decides nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query, Response

from notebook_sync.surfaces.http.asking import CONFLICT, Asking, Limit, Served, Tags, router
from notebook_sync.surfaces.http.models import memories as models
from notebook_sync.surfaces.http.picture import PICTURE, SVG, picture

memory_routes = router()

Kind = Annotated[str, Query(max_length=64, description="pattern, decision, problem or insight")]
Word = Annotated[str, Query(max_length=256)]
_MERMAID = "text/plain"
_DRAWING = {**PICTURE, "content": {**PICTURE["content"], _MERMAID: {"schema": {"type": "string"}}}}


@memory_routes.get("/memories")
def memories(
    notebook: Served,
    asking: Asking,
    kind: Kind = "",
    domain: Word = "",
    tags: Tags = None,
    needs_review: bool | None = None,
    limit: Limit = 50,
) -> list[models.Memory]:
    """Memories, those first that count for most."""
    found = notebook.memories(
        asking, kind=kind, domain=domain, tags=tuple(tags or ()), needs_review=needs_review, limit=limit
    )
    return [models.Memory.model_validate(each) for each in found]


@memory_routes.post("/memories", status_code=201, responses=CONFLICT)
def add(notebook: Served, asking: Asking, wanted: models.MemoryWanted) -> models.Recorded:
    """Write a memory down. What is not of the form is put into it, or kept as it is for a review."""
    added = notebook.memory_add(
        wanted.text,
        asking,
        title=wanted.title or "",
        kind=wanted.kind or "",
        domain=wanted.domain or "",
        tags=tuple(wanted.tags or ()),
        agent=wanted.agent or "",
        priority=wanted.priority,
        created_at=wanted.created_at or "",
        strict=wanted.strict,
    )
    return models.Recorded.model_validate(added)


@memory_routes.post("/memories/search")
def search(notebook: Served, asking: Asking, wanted: models.SearchWanted) -> list[models.Memory]:
    """Memories by meaning and words, the most alike first."""
    found = notebook.memory_search(
        wanted.query,
        asking,
        kind=wanted.kind or "",
        domain=wanted.domain or "",
        tags=tuple(wanted.tags or ()),
        limit=wanted.limit,
    )
    return [models.Memory.model_validate(each) for each in found]


@memory_routes.post("/memories/link", responses=CONFLICT)
def link(notebook: Served, asking: Asking, wanted: models.LinkWanted) -> models.Link:
    """Say how one memory bears on another."""
    linked = notebook.memory_link(
        wanted.from_id,
        wanted.type,
        wanted.to,
        asking,
        confidence=wanted.confidence,
        reasoning=wanted.reasoning,
        source=wanted.source,
    )
    return models.Link.model_validate(linked)


@memory_routes.post("/memories/infer", responses=CONFLICT)
def infer(notebook: Served, asking: Asking, wanted: models.InferWanted) -> models.Inferred:
    """Ask the language model of the settings how memories that are alike are linked."""
    return models.Inferred.model_validate(notebook.memory_infer(asking, apply=wanted.apply, limit=wanted.limit))


@memory_routes.get("/memories/audit")
def audit(notebook: Served, asking: Asking) -> models.Audit:
    """What memories lack."""
    return models.Audit.model_validate(notebook.memory_audit(asking))


@memory_routes.post("/memories/fix", responses=CONFLICT)
def fix(notebook: Served, asking: Asking, wanted: models.FixWanted) -> models.Fixed:
    """Mend what git and tags can prove."""
    return models.Fixed.model_validate(notebook.memory_fix(asking, dry_run=wanted.dry_run))


@memory_routes.post("/memories/score")
def score(notebook: Served, asking: Asking, _: models.ScoresWanted) -> models.Scored:
    """Compute anew what each memory counts for."""
    return models.Scored.model_validate(notebook.memory_scores(asking))


@memory_routes.get("/memories/graph", response_class=Response, responses={200: _DRAWING})
def graph(
    notebook: Served,
    asking: Asking,
    format: Literal["svg", "mermaid"] = "svg",  # noqa: A002 - so the parameter is called
    kind: Kind = "",
    domain: Word = "",
    around: Annotated[str, Query(max_length=256, description="a memory's id or path")] = "",
    limit: Limit = 80,
) -> Response:
    """Memories and their links, as a picture without scripts, or as text for Mermaid."""
    drawn = notebook.memory_graph(asking, format=format, kind=kind, domain=domain, around=around, limit=limit)
    return picture(drawn, SVG if format == "svg" else _MERMAID)


@memory_routes.get("/memories/figures")
def figures(notebook: Served, asking: Asking) -> models.Figures:
    """How memories, briefs and syntheses do."""
    return models.Figures.model_validate(notebook.memory_figures(asking))


@memory_routes.post("/relationships/ingest_synthesis", responses=CONFLICT)
def ingest(notebook: Served, asking: Asking, wanted: models.LinksWanted) -> models.Ingested:
    """Write links down that a synthesis suggests, those of them that hold; of the others, why they do not."""
    return models.Ingested.model_validate(notebook.memory_links(wanted.links, asking))


@memory_routes.post("/compile_context")
def compile_context(notebook: Served, asking: Asking, wanted: models.ContextWanted) -> models.Context:
    """What the notebook knows that matters for a task."""
    brief = notebook.compile_context(
        wanted.task_spec,
        asking,
        max_tokens=wanted.max_tokens,
        top_k=wanted.top_k,
        include_domains=tuple(wanted.include_domains or ()),
        exclude_tags=tuple(wanted.exclude_tags or ()),
        explain=bool(wanted.explain),
    )
    return models.Context.model_validate(brief)


@memory_routes.post("/synthesize", responses=CONFLICT)
def synthesize(notebook: Served, asking: Asking, wanted: models.SynthesisWanted) -> models.Synthesis:
    """What a reasoner makes of that, once, and then out of the cache until something of it changes."""
    synthesis = notebook.synthesize(
        wanted.task_spec,
        asking,
        refresh=bool(wanted.refresh),
        max_tokens=wanted.max_tokens,
        top_k=wanted.top_k,
        include_domains=tuple(wanted.include_domains or ()),
        exclude_tags=tuple(wanted.exclude_tags or ()),
    )
    return models.Synthesis.model_validate(synthesis)


@memory_routes.post("/prefetch", responses=CONFLICT)
def prefetch(notebook: Served, asking: Asking, wanted: models.PrefetchWanted) -> list[models.Prefetched]:
    """Have the syntheses ready of notes that say what is to be done, within what of the day's calls is for that."""
    return [models.Prefetched.model_validate(each) for each in notebook.prefetch(wanted.specs, asking)]
