"""All notes: a tree of their folders, what was changed last, and what a search finds. It changes nothing."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import Query
from fastapi.responses import HTMLResponse

from notebook_sync.errors import BackendDown, NoSuchNote, UnsafePath, UsageError
from notebook_sync.files.note import COLLECTIONS, STATUSES
from notebook_sync.moments import moment
from notebook_sync.notebook import Notebook
from notebook_sync.search.snippets import words_of
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.addresses import NOTES, address
from notebook_sync.surfaces.dashboard.asking import Asking, Served, pages_router
from notebook_sync.surfaces.dashboard.notes.notes_view import Row, place_after, place_in, row_of
from notebook_sync.surfaces.dashboard.notes.tree import Branch, tree_of
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.trouble import advice_for_owner
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
PAGE: Final = 50
MOST: Final = 200
_MODES: Mapping[str, str] = {
    "": "Words and meaning",
    "keyword": "Words alone",
    "semantic": "Meaning alone",
}
Text = Annotated[str, Query(max_length=4096)]
Short = Annotated[str, Query(max_length=256)]


@dataclass(frozen=True, slots=True)
class Found:
    """Rows, and how to see more of them. `trouble` is why there are none; `said` what they are less than could be."""

    rows: Sequence[Row] = ()
    more: str = ""
    said: Sequence[str] = field(default=())
    trouble: str = ""
    next_step: str = ""
    status: int = 200


@pages.get("/notes")
def notes_page(
    notebook: Served,
    asking: Asking,
    query: Text = "",
    mode: Short = "",
    collection: Short = "",
    status: Short = "",
    tags: Short = "",
    since: Short = "",
    until: Short = "",
    folder: Text = "",
    name: Text = "",
    after: Text = "",
    count: Annotated[int, Query(ge=1, le=MOST)] = PAGE,
) -> HTMLResponse:
    """The notes of a folder, narrowed by what is asked for."""
    asked = {
        "query": query.strip(),
        "mode": mode,
        "collection": collection,
        "status": status,
        "tags": tags.strip(),
        "since": since.strip(),
        "until": until.strip(),
        "folder": posixpath.normpath(f"/{folder}").strip("/") if ".." not in folder.split("/") else folder,
    }
    tree, lost = _tree(notebook, asking, asked["folder"], name)
    try:
        wanted = _wanted(notebook, asked)
        found = (
            _searched(notebook, asking, asked, wanted, count)
            if asked["query"]
            else _listed(notebook, asking, asked, wanted, after)
        )
    except (UsageError, BackendDown) as error:
        kind = kind_of(error)
        found = Found(
            trouble=str(error),
            next_step=advice_for_owner(error),
            status=kind.status if isinstance(error, UsageError) else 200,
        )
    return page(
        "notes.html",
        status=404 if lost else found.status,
        here="notes",
        tree=tree,
        lost=lost,
        found=found,
        asked=asked,
        is_narrowed=any(asked[each] for each in ("mode", "collection", "status", "tags", "since", "until")),
        is_later=bool(after),
        first=address(NOTES, asked),
        unsearched=address(NOTES, {"folder": asked["folder"]}),
        modes=_MODES.items(),
        collections=COLLECTIONS,
        statuses=STATUSES,
        zone=notebook.settings.timezone,
    )


def _tree(notebook: Notebook, asking: Session, folder: str, name: str) -> tuple[Branch, str]:
    """The tree that is open at a folder; where there is none, at the notebook itself, and why."""

    def open_at(path: str) -> Branch:
        return tree_of(path, lambda place, after: notebook.shelf(place, asking, after=after), name)

    try:
        return open_at(folder), ""
    except (NoSuchNote, UnsafePath) as error:
        return open_at(""), str(error)


def _wanted(notebook: Notebook, asked: Mapping[str, str]) -> dict[str, Any]:
    """What narrows a list, as use cases take it. Raises UsageError."""
    zone, now = notebook.settings.timezone, datetime.now(UTC)
    return {
        "collection": asked["collection"] or None,
        "status": asked["status"] or None,
        "tags": [tag for each in asked["tags"].split(",") if (tag := each.strip().removeprefix("#"))],
        "since": moment(asked["since"], zone, now) if asked["since"] else None,
        "until": moment(asked["until"], zone, now) if asked["until"] else None,
        "below": asked["folder"],
    }


def _listed(
    notebook: Notebook, asking: Session, asked: Mapping[str, str], wanted: Mapping[str, Any], after: str
) -> Found:
    rows = notebook.list(limit=PAGE + 1, session=asking, after=place_in(after), **wanted)
    more = address(NOTES, asked, after=place_after(rows[PAGE - 1])) if len(rows) > PAGE else ""
    return Found([row_of(row) for row in rows[:PAGE]], more)


def _searched(
    notebook: Notebook, asking: Session, asked: Mapping[str, str], wanted: Mapping[str, Any], count: int
) -> Found:
    report = notebook.search_report(asked["query"], count + 1, asking, mode=asked["mode"], snippet=True, **wanted)
    said = []
    if report.degraded:
        said.append(f"Searched by words alone: {report.degraded}")
    if report.behind:
        said.append(f"{report.behind:,} notes are not found by their meaning yet; run `notebook-sync sync`")
    words = words_of(asked["query"])
    is_more = len(report.results) > count and count < MOST
    more = address(NOTES, asked, count=str(min(count * 2, MOST))) if is_more else ""
    return Found([row_of(row, words) for row in report.results[:count]], more, said)
