"""Memories by their score, and those that a search finds. It changes nothing, and what is found here is not used by
that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Query
from fastapi.responses import HTMLResponse

from notebook_sync.errors import BackendDown, UsageError
from notebook_sync.mirror.memories import KINDS
from notebook_sync.notebook import Notebook
from notebook_sync.operations.registry import plain
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.addresses import address
from notebook_sync.surfaces.dashboard.asking import Asking, Served, pages_router
from notebook_sync.surfaces.dashboard.memory.memory_view import PAGE, Paged, memory_row
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.trouble import trouble_of
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
MEMORIES: Final = "/memory/memories"
MOST_PAGES: Final = 200
_REVIEW: Final[Mapping[str, bool]] = {"yes": True, "no": False}
Text = Annotated[str, Query(max_length=4096)]
Short = Annotated[str, Query(max_length=256)]


@pages.get(MEMORIES)
def memories_page(
    notebook: Served,
    asking: Asking,
    query: Text = "",
    kind: Short = "",
    domain: Short = "",
    tags: Short = "",
    review: Annotated[str, Query(max_length=8)] = "",
    number: Annotated[int, Query(alias="page", ge=1, le=MOST_PAGES)] = 1,
) -> HTMLResponse:
    """Those with the highest score first, or what is most like a query."""
    asked = {
        "query": query.strip(),
        "kind": kind,
        "domain": domain.strip(),
        "tags": tags.strip(),
        "review": review if review in _REVIEW else "",
    }
    found, trouble, status = Paged((), 1, None), None, 200
    try:
        found = _found(notebook, asking, asked, number)
    except BackendDown as error:
        trouble = trouble_of(error)
    except UsageError as error:
        trouble, status = trouble_of(error), kind_of(error).status
    return page(
        "memories.html",
        status=status,
        here="memory",
        found=found,
        trouble=trouble,
        asked=asked,
        kinds=KINDS,
        is_narrowed=any(asked[each] for each in ("kind", "domain", "tags", "review")),
        zone=notebook.settings.timezone,
    )


def _found(notebook: Notebook, asking: Session, asked: Mapping[str, str], number: int) -> Paged:
    wanted: dict[str, Any] = {
        "kind": asked["kind"],
        "domain": asked["domain"],
        "tags": [tag for each in asked["tags"].split(",") if (tag := each.strip().removeprefix("#"))],
    }
    if asked["query"] and not asked["review"]:
        found = notebook.memories.search(asked["query"], asking, limit=PAGE, counts_use=False, **wanted)
        return Paged([memory_row(row) for row in plain(found.results)], 1, None)
    if asked["query"]:
        raise UsageError("a search does not ask who waits for a review: leave out the words, or the review")
    review = _REVIEW.get(asked["review"])
    rows = plain(notebook.memories.list(asking, needs_review=review, limit=number * PAGE + 1, **wanted).results)
    begin = (number - 1) * PAGE
    return Paged(
        [memory_row(row) for row in rows[begin : begin + PAGE]],
        begin + 1,
        None if len(rows) > number * PAGE else len(rows),
        before=address(MEMORIES, asked, page="" if number == 2 else number - 1) if number > 1 else "",
        after=address(MEMORIES, asked, page=number + 1) if number * PAGE < len(rows) and number < MOST_PAGES else "",
    )
