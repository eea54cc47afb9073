"""The daily stream: a day as a timeline, what is recalled of all days, and a form that logs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import Query
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from notebook_sync.errors import BackendDown, NotebookError, UsageError
from notebook_sync.mirror.base import LARGEST_LIMIT
from notebook_sync.notebook import Notebook
from notebook_sync.refs.ranking import POOL
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.addresses import address
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.memory.stream_view import (
    STREAM,
    DayView,
    EntryRow,
    checked_day,
    day_view,
    row_of,
)
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.trouble import trouble_of
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
RECALL: Final = "/memory/recall"
RECALLED: Final = 25
_SAID: Final = {
    "logged": "Logged: it is in the stream of today.",
    "kept": "Kept for long: what is recalled has it, whatever becomes of the day.",
}
Short = Annotated[str, Query(max_length=256)]


@dataclass(frozen=True, slots=True)
class Recall:
    """What was recalled, best first. `degraded` is why it is not all that could be; `more` shows more of it."""

    rows: Sequence[EntryRow]
    degraded: str | None
    more: str


@pages.get(STREAM)
def stream_page(
    notebook: Served,
    asking: Asking,
    day: Short = "",
    kind: Short = "",
    tag: Short = "",
    until: Annotated[int | None, Query(ge=0, le=LARGEST_LIMIT)] = None,
    done: Short = "",
) -> Response:
    """What was told on a day, the present one unless another is named."""
    asked = {"day": day.strip(), "kind": kind, "tag": tag}
    return _stream(notebook, asking, asked, until, said=_SAID.get(done, ""))


@pages.post(STREAM)
def log(notebook: Served, asking: Asking, form: Form) -> Response:
    """Put a line into the stream of today, or into long-term memory."""
    keep = "keep" in form
    try:
        notebook.stream.log(
            form.get("content", ""),
            asking,
            source=form.get("source", ""),
            tags=_tags(form.get("tags", "")),
            score=_score(form.get("score", "")),
            keep=keep,
        )
    except (UsageError, BackendDown) as error:
        return _stream(notebook, asking, {}, None, form=form, error=error)
    return RedirectResponse(f"{STREAM}?done={'kept' if keep else 'logged'}", 303)


@pages.get(RECALL)
def recall_page(
    notebook: Served,
    asking: Asking,
    query: Annotated[str, Query(max_length=4096)] = "",
    tags: Short = "",
    since: Short = "",
    count: Annotated[int, Query(ge=1, le=POOL)] = RECALLED,
) -> Response:
    """What of the stream, of long-term memory and of the notes fits some words best."""
    asked = {"query": query.strip(), "tags": tags.strip(), "since": since.strip()}
    trouble, found = None, None
    try:
        if any(asked.values()):
            found = _recalled(notebook, asking, asked, count)
    except (UsageError, BackendDown) as error:
        trouble = trouble_of(error)
    return page(
        "recall.html",
        here="memory",
        status=trouble.status if trouble else 200,
        asked=asked,
        found=found,
        trouble=trouble,
        zone=notebook.settings.timezone,
    )


def _stream(
    notebook: Notebook,
    asking: Session,
    asked: Mapping[str, str],
    until: int | None,
    *,
    said: str = "",
    form: Mapping[str, str] | None = None,
    error: NotebookError | None = None,
) -> Response:
    view, trouble = None, None
    try:
        view = _day(notebook, asking, asked, until)
    except (UsageError, BackendDown) as failure:
        trouble = trouble_of(failure)
    refused = trouble_of(error) if error else None
    return page(
        "stream.html",
        here="memory",
        status=kind_of(error).status if error else trouble.status if trouble else 200,
        view=view,
        trouble=trouble,
        refused=refused,
        form=form or {},
        said=said,
        today=datetime.now(notebook.settings.timezone).date().isoformat(),
        zone=notebook.settings.timezone,
    )


def _day(notebook: Notebook, asking: Session, asked: Mapping[str, str], until: int | None) -> DayView:
    zone, now = notebook.settings.timezone, datetime.now(UTC)
    wanted = checked_day(asked.get("day", ""), now, zone)
    found = notebook.stream.show(asking, day=wanted, limit=LARGEST_LIMIT)
    kind, tag = asked.get("kind", ""), asked.get("tag", "")
    return day_view(wanted, found.results, now, zone, kind=kind, tag=tag, until=until, lost=found.degraded or "")


def _recalled(notebook: Notebook, asking: Session, asked: Mapping[str, str], count: int) -> Recall:
    limit = min(count + 1, POOL)
    found = notebook.stream.recall(
        asked["query"], asking, tags=_tags(asked["tags"]), since=asked["since"] or None, limit=limit
    )
    rows = [row_of(entry, notebook.settings.timezone) for entry in found.results]
    is_more = len(rows) > count
    more = address(RECALL, asked, count=min(2 * count, POOL)) if is_more else ""
    return Recall(rows[:count], found.degraded, more)


def _tags(text: str) -> list[str]:
    return [tag for each in re.split(r"[\s,]+", text) if (tag := each.removeprefix("#"))]


def _score(text: str) -> float:
    try:
        return float(text or 0.5)
    except ValueError:
        raise UsageError(f"a score is a number from 0 to 1, not {text[:20]!r}") from None
