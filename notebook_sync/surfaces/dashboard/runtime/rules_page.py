"""Who may be answered, how, and until when; and the standing orders. What is shown is what the files say, entry by
entry; each is changed by an ordinary edit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Final

from fastapi import Query
from fastapi.responses import HTMLResponse
from starlette.responses import Response

from notebook_sync.errors import NotebookError
from notebook_sync.notebook import Notebook
from notebook_sync.notes.runtime import rules
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.runtime.rules_view import days_left, order_groups, rule_groups, rules_meant
from notebook_sync.surfaces.dashboard.runtime.runtime_entries import sections_of
from notebook_sync.surfaces.dashboard.runtime.runtime_files import (
    FILES,
    MENDABLE,
    Did,
    added,
    opened,
    section_names,
    values_of,
)
from notebook_sync.surfaces.dashboard.runtime.runtime_lines import ACTIONS, order_line, rule_line
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()
_LONGEST: Final = 256
Done = Annotated[str, Query(max_length=16)]
Digest = Annotated[str, Query(max_length=64)]
At = Annotated[int, Query(ge=0)]
Identity = Annotated[str, Query(max_length=_LONGEST)]


@pages.get("/rules")
def rules_page(
    notebook: Served,
    asking: Asking,
    identity: Identity = "",
    channel: Identity = "",
    done: Done = "",
    digest: Digest = "",
    line: At = 0,
) -> HTMLResponse:
    """All rules, and the one that holds for somebody."""
    return _rules(notebook, asking, identity, channel, Did(done, digest, line, _today(notebook)))


@pages.post("/rules/add")
def add_rule(notebook: Served, asking: Asking, form: Form) -> Response:
    """One more rule."""
    try:
        line = rule_line(form, _today(notebook))
        return added(notebook, asking, FILES["rules"], line, allow_over_cap="allow_over_cap" in form)
    except MENDABLE as error:
        return _rules(notebook, asking, form=form, error=error)


@pages.get("/rules/orders")
def orders_page(notebook: Served, asking: Asking, done: Done = "", digest: Digest = "", line: At = 0) -> HTMLResponse:
    """All standing orders."""
    return _orders(notebook, asking, Did(done, digest, line, _today(notebook)))


@pages.post("/rules/orders/add")
def add_order(notebook: Served, asking: Asking, form: Form) -> Response:
    """One more standing order."""
    try:
        line = order_line(form, _today(notebook))
        return added(notebook, asking, FILES["orders"], line, allow_over_cap="allow_over_cap" in form)
    except MENDABLE as error:
        return _orders(notebook, asking, form=form, error=error)


def _rules(
    notebook: Notebook,
    asking: Session,
    identity: str = "",
    channel: str = "",
    did: Did | None = None,
    *,
    form: Mapping[str, str] | None = None,
    error: NotebookError | None = None,
) -> HTMLResponse:
    found, today = opened(notebook, asking, FILES["rules"]), _today(notebook)
    groups, outside = rule_groups(found.text, today)
    standing = notebook.rules_for(identity, channel, session=asking) if identity.strip() else None
    return page(
        "rules.html",
        status=_status(error),
        **values_of(found, did),
        groups=groups,
        outside=outside,
        today=today,
        days_left=days_left,
        identity=identity,
        channel=channel,
        standing=standing,
        meant=rules_meant(found.text, identity, today),
        form=form or {},
        error=error,
        sections=rules.SECTIONS,
        actions=ACTIONS,
        channels=[section.title for section in sections_of(found.text) if section.level == 3],
    )


def _orders(
    notebook: Notebook,
    asking: Session,
    did: Did | None = None,
    *,
    form: Mapping[str, str] | None = None,
    error: NotebookError | None = None,
) -> HTMLResponse:
    found, today = opened(notebook, asking, FILES["orders"]), _today(notebook)
    return page(
        "orders.html",
        status=_status(error),
        **values_of(found, did),
        groups=order_groups(found.text, today),
        today=today,
        days_left=days_left,
        form=form or {},
        error=error,
        sections=section_names(found),
    )


def _today(notebook: Notebook) -> date:
    return datetime.now(notebook.settings.timezone).date()


def _status(error: NotebookError | None) -> int:
    return kind_of(error).status if error else 200
