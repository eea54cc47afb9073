"""What time does to facts, and facts that say the same: shown before it is done, and done by a button."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from fastapi import Query
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.responses import Response

from notebook_sync.errors import BackendDown
from notebook_sync.surfaces.dashboard.asking import Asking, Served, pages_router
from notebook_sync.surfaces.dashboard.memory.memory_view import LONGEST, PAGE, fact_row
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.trouble import trouble_of

pages = pages_router()
FADING: Final = "/memory/facts/fading"
ALIKE: Final = "/memory/facts/alike"
_GROUPS: Final = (
    ("archived", "These go to the archive", "They faded: nobody used them, and they count for next to nothing."),
    ("promoted", "These are kept for good", "They proved themselves, and [memory] promote is auto."),
    ("proposed", "These could be kept for good", "They were used often, and count for much. It is for you to say."),
)
Done = Annotated[str, Query(max_length=16)]


@pages.get(FADING)
def fading_page(notebook: Served, asking: Asking, done: Done = "") -> HTMLResponse:
    """What `fact decay` would do now."""
    trouble, groups, is_due = None, [], False
    try:
        found = msgspec.structs.asdict(notebook.facts.decay(asking, dry_run=True))
    except BackendDown as error:
        trouble = trouble_of(error)
    else:
        is_due = bool(found["archived"] or found["promoted"])
        groups = [
            (name, title, why, len(found[name]), [fact_row(row) for row in found[name][:PAGE]])
            for name, title, why in _GROUPS
            if found[name]
        ]
    return page(
        "facts_fading.html",
        here="memory",
        groups=groups,
        is_due=is_due,
        trouble=trouble,
        done=done == "done",
        memory=notebook.settings.memory,
        back=FADING,
        longest=LONGEST,
        zone=notebook.settings.timezone,
    )


@pages.post(FADING)
def fade(notebook: Served, asking: Asking) -> Response:
    """Do it."""
    notebook.facts.decay(asking)
    return RedirectResponse(f"{FADING}?done=done", 303)


@pages.get(ALIKE)
def alike_page(notebook: Served, asking: Asking, done: Done = "") -> HTMLResponse:
    """Pairs of facts that say the same."""
    trouble, found = None, []
    try:
        found = notebook.facts.dedupe(asking, dry_run=True).pairs
    except BackendDown as error:
        trouble = trouble_of(error)
    return page(
        "facts_alike.html",
        here="memory",
        pairs=[(fact_row(pair.keep), fact_row(pair.drop), pair.similarity) for pair in found[:PAGE]],
        count=len(found),
        duplicate=notebook.settings.memory.duplicate,
        trouble=trouble,
        done=done == "done",
        longest=LONGEST,
    )


@pages.post(ALIKE)
def merge(notebook: Served, asking: Asking) -> Response:
    """Merge them: what is dropped goes to the archive, and its use to what is kept."""
    notebook.facts.dedupe(asking)
    return RedirectResponse(f"{ALIKE}?done=done", 303)
