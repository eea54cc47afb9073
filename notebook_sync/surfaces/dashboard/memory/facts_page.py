"""Facts by what they count for, with their curves, and what can be done with each. Every change is a use case that the
command and the tools have, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl

from fastapi import Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.responses import Response

from notebook_sync.errors import BackendDown, NotebookError, OverCap, UsageError
from notebook_sync.files.facts import LONGEST as LONGEST_FACT
from notebook_sync.mirror.base import LARGEST_LIMIT
from notebook_sync.notebook import Notebook
from notebook_sync.operations.facts import ChangedFact
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.addresses import address
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.memory.memory_view import (
    LONGEST,
    Paged,
    fact_row,
    paged,
)
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.pictures import Pictures
from notebook_sync.surfaces.dashboard.trouble import Trouble, trouble_of
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
FACTS: Final = "/memory"
FOUND: Final = 50
_SCOPES: Final = (("notes", "Fading"), ("core", "Core"), ("archive", "Archive"), ("all", "All"))
_SPANS: Final = (30, 90, 365)
_USUAL_SPAN: Final = 90
_NOTHING: Final[Mapping[str, str]] = dict.fromkeys(("scope", "section", "stale", "query", "days"), "")
_KEPT: Final = frozenset((*_NOTHING, "page"))
# What a page says was done, and how it is taken back, by the code that its address has.
_DONE: Final[Mapping[str, tuple[str, str]]] = {
    "added": ("Added.", ""),
    "reinforced": ("It counts for more now.", ""),
    "archived": ("Archived: it stands in facts/archive.md.", "restore"),
    "restored": ("Back where it came from.", "archive"),
    "promoted": ("Kept for good, in facts/core.md.", ""),
}
Scope = Literal["notes", "core", "archive", "all"]
Action = Literal["reinforce", "promote", "archive", "restore"]
Text = Annotated[str, Query(max_length=LONGEST_FACT)]
Short = Annotated[str, Query(max_length=256)]


@pages.get(FACTS)
def facts_page(
    request: Request,
    notebook: Served,
    asking: Asking,
    scope: Scope = "notes",
    section: Short = "",
    stale: Short = "",
    query: Text = "",
    verify: Text = "",
    days: Annotated[int, Query(ge=1, le=3650)] = _USUAL_SPAN,
    number: Annotated[int, Query(alias="page", ge=1, le=LARGEST_LIMIT)] = 1,
    done: Short = "",
    fact: Annotated[str, Query(max_length=64)] = "",
) -> HTMLResponse:
    """Those of a scope that count for most now, or that a search finds."""
    asked = {
        "scope": "" if scope == "notes" else scope,
        "section": section.strip(),
        "stale": "1" if stale else "",
        "query": query.strip(),
        "days": "" if days == _USUAL_SPAN else days,
    }
    return _facts(request, notebook, asking, asked, number=number, verify=verify.strip(), done=done, fact=fact)


@pages.post("/memory/facts/add")
def add_fact(request: Request, notebook: Served, asking: Asking, form: Form) -> Response:
    """Add a fact; one that says this already is strengthened."""
    try:
        row = notebook.facts.add(
            form.get("text", ""), asking, section=form.get("section", ""), importance=form.get("importance") or None
        )
    except (UsageError, OverCap) as error:
        return _facts(request, notebook, asking, _NOTHING, form=form, error=error)
    return _led_back(form, row)


@pages.post("/memory/fact/{action}")
def change_fact(action: Action, notebook: Served, asking: Asking, form: Form) -> Response:
    """Do something with the fact that the form names."""
    act: Mapping[Action, Callable[[str, Session], ChangedFact]] = {
        "reinforce": notebook.facts.reinforce,
        "promote": notebook.facts.promote,
        "archive": notebook.facts.archive,
        "restore": notebook.facts.restore,
    }
    return _led_back(form, act[action](form.get("fact", ""), asking))


def _facts(
    request: Request,
    notebook: Notebook,
    asking: Session,
    asked: Mapping[str, Any],
    *,
    number: int = 1,
    verify: str = "",
    done: str = "",
    fact: str = "",
    form: Mapping[str, str] | None = None,
    error: NotebookError | None = None,
) -> HTMLResponse:
    scope: Scope = asked["scope"] or "notes"
    found, degraded, trouble = _rows(notebook, asking, asked, scope, number)
    shows_picture = found.rows and found.first == 1 and scope == "notes" and not (asked["query"] or asked["section"])
    said, undo = _DONE.get(done, ("", ""))
    return page(
        "facts.html",
        status=kind_of(error).status if error else 200,
        here="memory",
        error=error,
        longest=LONGEST,
        longest_fact=LONGEST_FACT,
        found=found,
        degraded=degraded,
        trouble=trouble,
        picture=_picture(request, notebook, asking, asked) if shows_picture and not trouble else "",
        asked=asked,
        scope=scope,
        scopes=[(name, said, address(FACTS, {"scope": "" if name == "notes" else name})) for name, said in _SCOPES],
        spans=[(each, address(FACTS, asked, days="" if each == _USUAL_SPAN else each)) for each in _SPANS],
        span=asked["days"] or _USUAL_SPAN,
        unsearched=address(FACTS, asked, query="", section="", stale=""),
        stale_days=notebook.settings.memory.stale_days,
        back=address(FACTS, asked, page=number if number > 1 else ""),
        memory=notebook.settings.memory,
        verify=verify,
        verdict=_verdict(notebook, asking, verify) if verify and not trouble else None,
        said=said,
        undo=undo if fact else "",
        fact=fact,
        form=form or {},
        zone=notebook.settings.timezone,
    )


def _rows(
    notebook: Notebook, asking: Session, asked: Mapping[str, Any], scope: Scope, number: int
) -> tuple[Paged, str, Trouble | None]:
    """A page of facts, why they were found by words alone, "" where they were not; or why there is none."""
    try:
        if asked["query"]:
            found = notebook.facts.search(asked["query"], asking, scope=scope, limit=FOUND)
        else:
            found = notebook.facts.list(
                asking,
                scope=scope,
                section=asked["section"],
                stale=bool(asked["stale"]),
                limit=LARGEST_LIMIT,
            )
    except BackendDown as error:
        return Paged((), 0, 0), "", trouble_of(error)
    one = paged(found.results, number, FACTS, asked)
    rows = [fact_row(row) for row in one.rows]
    return Paged(rows, one.first, one.count, one.before, one.after), found.degraded or "", None


def _picture(request: Request, notebook: Notebook, asking: Session, asked: Mapping[str, Any]) -> str:
    """Where the picture of the curves is; "" where it cannot be drawn."""
    pictures: Pictures = request.app.state.pictures
    try:
        return pictures.address_of(notebook.facts.plot(asking, days=int(asked["days"] or _USUAL_SPAN)))
    except BackendDown:  # away since a moment ago: the rows are there, and the next page says so
        return ""


def _verdict(notebook: Notebook, asking: Session, text: str) -> Mapping[str, Any] | None:
    try:
        found = notebook.facts.verify(text, asking)
    except BackendDown:
        return None
    matches = [fact_row(row) for row in found.matches]
    return {"verdict": found.verdict, "matches": matches, "degraded": found.degraded}


def _led_back(form: Mapping[str, str], row: ChangedFact) -> RedirectResponse:
    """The page that the form was on, which says what was done."""
    try:
        said = parse_qsl(form.get("back", "").partition("?")[2], max_num_fields=len(_KEPT))
    except ValueError:
        said = []
    asked = {name: value for name, value in said if name in _KEPT}
    return RedirectResponse(address(FACTS, asked, done=row.action, fact=row.note_id), 303)
