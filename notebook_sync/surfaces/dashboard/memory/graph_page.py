"""Memories and their links, drawn; a form that links two; and the links that a language model suggests, which are
written only if a person takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.responses import Response

from notebook_sync.errors import BackendDown, LlmDown, NoSuchNote, NotebookError, UsageError
from notebook_sync.mirror.memories import KINDS, RELATIONS
from notebook_sync.notebook import Notebook
from notebook_sync.notes.memories.graph.pick import MOST_MEMORIES
from notebook_sync.operations.registry import plain
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.addresses import address
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.notes.note_view import address_of
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.pictures import Pictures, said_in
from notebook_sync.surfaces.dashboard.trouble import trouble_of
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
GRAPH: Final = "/memory/graph"
_USUAL: Final = 80
# As many pairs as a person looks at, and a model answers while the page is waited for.
_PAIRS: Final = 10
_TAKE: Final = "take-"
_LINK: Final = "link-"
Short = Annotated[str, Query(max_length=256)]


@pages.get(GRAPH)
def graph_page(
    request: Request,
    notebook: Served,
    asking: Asking,
    kind: Short = "",
    domain: Short = "",
    around: Annotated[str, Query(max_length=4096)] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_MEMORIES)] = _USUAL,
    done: Annotated[str, Query(max_length=16)] = "",
) -> HTMLResponse:
    """Those that count for most, or that are nearest to one."""
    return _graph(request, notebook, asking, kind=kind, domain=domain, around=around, limit=limit, done=done)


@pages.post("/memory/graph/by-hand")
def link_by_hand(request: Request, notebook: Served, asking: Asking, form: Form) -> Response:
    """Link one memory to another, each named by its id or its path."""
    start, end = form.get("from", "").strip(), form.get("to", "").strip()
    try:
        notebook.memories.link(start, form.get("type", ""), end, asking, reasoning=form.get("why", "").strip())
    except (UsageError, NoSuchNote) as error:
        return _graph(request, notebook, asking, form=form, error=error)
    return RedirectResponse(address(GRAPH, {}, around=start, done="linked"), 303)


def _graph(
    request: Request,
    notebook: Notebook,
    asking: Session,
    *,
    kind: str = "",
    domain: str = "",
    around: str = "",
    limit: int = _USUAL,
    done: str = "",
    form: Mapping[str, str] | None = None,
    error: NotebookError | None = None,
) -> HTMLResponse:
    pictures: Pictures = request.app.state.pictures
    trouble, picture, said, status = None, "", "", 200
    try:
        drawn = notebook.memories.graph(asking, kind=kind, domain=domain.strip(), around=around.strip(), limit=limit)
    except BackendDown as down:
        trouble = trouble_of(down)
    except (UsageError, NoSuchNote) as wrong:
        trouble, status = trouble_of(wrong), kind_of(wrong).status
    else:
        picture, said = pictures.address_of(drawn), said_in(drawn)
    return page(
        "memory_graph.html",
        status=kind_of(error).status if error else status,
        here="memory",
        error=error,
        form=form or {"from": around},
        relations=RELATIONS,
        trouble=trouble,
        picture=picture,
        said=said,
        kind=kind,
        domain=domain,
        around=around,
        note=address_of(around.strip()),
        limit=limit,
        most=MOST_MEMORIES,
        kinds=KINDS,
        linked=done == "linked",
        pairs=_PAIRS,
        model=notebook.settings.llm.model,
    )


@pages.post("/memory/graph/suggest")
def suggest(notebook: Served, asking: Asking) -> Response:
    """Ask how the memories that are most alike are linked. Nothing is written."""
    try:
        found = plain(notebook.memories.infer(asking, dry_run=True, limit=_PAIRS))
    except (UsageError, LlmDown) as error:
        return page(
            "memory_suggested.html",
            status=kind_of(error).status,
            here="memory",
            trouble=trouble_of(error),
            links=[],
            dropped=[],
            pairs=0,
            midway="",
        )
    return page(
        "memory_suggested.html",
        here="memory",
        trouble=None,
        links=[_shown(notebook, asking, link) for link in found["links"]],
        dropped=found["dropped"],
        pairs=found["pairs"],
        midway=found.get("trouble", ""),
    )


@pages.post("/memory/graph/link")
def link(notebook: Served, asking: Asking, form: Form) -> Response:
    """Write down the suggestions that were taken."""
    taken = [form.get(_LINK + name.removeprefix(_TAKE), "") for name in form if name.startswith(_TAKE)]
    if not taken:
        raise UsageError("no suggestion was taken; go back, and tick those that are right")
    dropped = notebook.memories.ingest([_link_in(text) for text in taken], asking).dropped
    if dropped:
        reasons = "; ".join(dict.fromkeys(one.reason for one in dropped))
        raise UsageError(f"{len(dropped):,} of {len(taken):,} links could not be written: {reasons}")
    return RedirectResponse(f"{GRAPH}?done=linked", 303)


def _link_in(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError("that form is not one of this page; ask for suggestions again") from None


def _shown(notebook: Notebook, asking: Session, link: Mapping[str, Any]) -> Mapping[str, Any]:
    """A suggestion with the memories' titles, and as the form sends it back."""
    return {
        "start": _named(notebook, asking, link["from"]),
        "end": _named(notebook, asking, link["to"]),
        "type": link["type"],
        "confidence": link["confidence"],
        "reasoning": link["reasoning"],
        "sent": json.dumps({name: value for name, value in link.items() if name != "action"}),
    }


def _named(notebook: Notebook, asking: Session, memory_id: str) -> tuple[str, str]:
    """A memory's title and where its page is."""
    try:
        note = notebook.read(memory_id, asking)
    except (NoSuchNote, BackendDown):
        return memory_id, address_of(memory_id)
    return note["title"], address_of(note["path"])
