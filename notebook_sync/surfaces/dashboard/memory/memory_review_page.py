"""What memories lack, one by one, and what of it git and they themselves can prove: shown before it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Query
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.responses import Response

from notebook_sync.errors import BackendDown
from notebook_sync.notes.memories.findings import REPAIR
from notebook_sync.operations.registry import plain
from notebook_sync.surfaces.dashboard.asking import Asking, Served, pages_router
from notebook_sync.surfaces.dashboard.notes.note_view import address_of
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.trouble import trouble_of

pages = pages_router()
REVIEW: Final = "/memory/review"
MEND: Final = "/memory/review/mend"
MOST: Final = 200
_BY_ITSELF: Final = "see above what can be mended by itself; it is taken from git where git knows it"


@pages.get(REVIEW)
def review_page(notebook: Served, asking: Asking, done: Annotated[str, Query(max_length=16)] = "") -> HTMLResponse:
    """All that is amiss."""
    trouble, audit = None, None
    try:
        audit = plain(notebook.memories.audit(asking))
    except BackendDown as error:
        trouble = trouble_of(error)
    findings = audit["findings"] if audit else []
    return page(
        "memory_review.html",
        here="memory",
        trouble=trouble,
        findings=[_finding(one) for one in findings[:MOST]],
        count=len(findings) + (audit["findings_left_out"] if audit else 0),
        memories=audit["memories"] if audit else 0,
        counts=counts_of(audit) if audit else [],
        done=done == "mended",
    )


def _finding(one: Mapping[str, Any]) -> Mapping[str, Any]:
    """Where the command line has a command, the page has a button."""
    return {**one, "href": address_of(one["path"]), "fix": one["fix"].replace(REPAIR, _BY_ITSELF)}


def counts_of(audit: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the audit counted, as it is shown. Pure."""
    times, saturated, similar = audit["timestamps"], audit["importance"]["saturated"], audit["similar_share"]
    return [
        ("No time of making, or none that can be read", f"{times['missing'] + times['unparsable']:,}"),
        ("Nobody is known to have said it", f"{audit['agents']['unknown']:,}"),
        ("Of no kind, or without context, reasoning or outcome", f"{audit['unstructured']:,}"),
        ("Without tags", f"{audit['tags']['none']:,}"),
        ("Links to nowhere", f"{audit['links_broken']:,} of {audit['links']:,}"),
        ("Links that only say similar", "–" if similar is None else f"{similar:.1%}"),
        ("With the priority that is most frequent", "–" if saturated is None else f"{saturated:.1%}"),
    ]


@pages.get(MEND)
def mend_page(notebook: Served, asking: Asking) -> HTMLResponse:
    """What would be written."""
    found = plain(notebook.memories.fix(asking, dry_run=True))
    changes: list[dict[str, Any]] = found["changes"]
    return page(
        "memory_mend.html",
        here="memory",
        changes=[{**one, "href": address_of(one["path"])} for one in changes[:MOST]],
        count=len(changes) + found["left_out"]["changes"],
        left=len(found["left"]) + found["left_out"]["left"],
        warnings=found.get("warnings", []),
    )


@pages.post(MEND)
def mend(notebook: Served, asking: Asking) -> Response:
    """Write it."""
    found = notebook.memories.fix(asking)
    if found.trouble:
        return page("memory_mended.html", status=409, here="memory", found=plain(found))
    return RedirectResponse(f"{REVIEW}?done=mended", 303)
