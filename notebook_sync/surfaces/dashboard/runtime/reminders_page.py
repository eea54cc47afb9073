"""The reminders as they stand now: what is overdue, due, later and done. Ticking one is an ordinary edit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from fastapi.responses import HTMLResponse
from starlette.responses import Response

from notebook_sync.errors import NotebookError
from notebook_sync.notebook import Notebook
from notebook_sync.notes.runtime import reminders
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.asking import Asking, Form, Served, pages_router
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.runtime.rules_page import At, Digest, Done
from notebook_sync.surfaces.dashboard.runtime.rules_view import reminder_groups
from notebook_sync.surfaces.dashboard.runtime.runtime_files import FILES, MENDABLE, Did, added, opened, values_of
from notebook_sync.surfaces.dashboard.runtime.runtime_lines import reminder_line
from notebook_sync.surfaces.errors import kind_of

pages = pages_router()


@pages.get("/reminders")
def reminders_page(
    notebook: Served, asking: Asking, done: Done = "", digest: Digest = "", line: At = 0
) -> HTMLResponse:
    """All reminders, the most pressing first."""
    return _reminders(notebook, asking, Did(done, digest, line, datetime.now(notebook.settings.timezone).date()))


@pages.post("/reminders/add")
def add_reminder(notebook: Served, asking: Asking, form: Form) -> Response:
    """One more reminder."""
    try:
        line = reminder_line(form, datetime.now(notebook.settings.timezone).date())
        return added(notebook, asking, FILES["reminders"], line, allow_over_cap="allow_over_cap" in form)
    except MENDABLE as error:
        return _reminders(notebook, asking, form=form, error=error)


def _reminders(
    notebook: Notebook,
    asking: Session,
    did: Did | None = None,
    *,
    form: Mapping[str, str] | None = None,
    error: NotebookError | None = None,
) -> HTMLResponse:
    found, timezone = opened(notebook, asking, FILES["reminders"]), notebook.settings.timezone
    groups, unread = reminder_groups(found.text, datetime.now(timezone), timezone)
    return page(
        "reminders.html",
        status=kind_of(error).status if error else 200,
        **values_of(found, did),
        groups=groups,
        unread=unread,
        form=form or {},
        error=error,
        sections=reminders.SECTIONS,
        timezone=timezone,
    )
