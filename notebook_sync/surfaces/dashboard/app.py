"""The dashboard as an ASGI application, and who may see it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial

import anyio
import anyio.to_thread
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp

from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.dashboard import (
    browse,
    editor,
    graph,
    notes,
    overview,
    palette,
    past,
    prompt,
    review,
    runtime,
    tables,
    today,
)
from notebook_sync.surfaces.dashboard.login import CookieAuth
from notebook_sync.surfaces.dashboard.shell import Shell, state_of
from notebook_sync.surfaces.http.app import LIVE, STATIC
from notebook_sync.surfaces.http.live import sent_as_events

# The pages, in the order of the navigation. A crafted page that takes the place of a generic one comes before `tables`.
CRAFTED = (today, past, browse, notes, editor, graph, prompt, runtime, overview, palette, tables, review)
_POLL_SECONDS = 0.3


def dashboard_of(notebook: Notebook) -> tuple[CookieAuth, ASGIApp]:
    """Authentication and the pages of a notebook."""
    shell = Shell(notebook)
    auth = CookieAuth(shell)
    routes: list[BaseRoute] = [Route(f"{STATIC}{{name}}", shell.static), *auth.routes()]
    routes.append(Route(LIVE, partial(_live, notebook)))
    for module in CRAFTED:
        routes += module.routes(shell)
    return auth, GZipMiddleware(Router(routes, redirect_slashes=False), minimum_size=1000, compresslevel=6)


async def _live(notebook: Notebook, request: Request) -> Response:
    """The state of the index as a server-sent event, now and whenever it changes, until the login ends. A page compares
    it with the one that it was made from."""
    return sent_as_events(_changes(notebook, request.state.is_current))


async def _changes(notebook: Notebook, is_current: Callable[[], bool]) -> AsyncIterator[dict[str, str]]:
    seen = ""
    while await anyio.to_thread.run_sync(is_current):
        now = await anyio.to_thread.run_sync(state_of, notebook.core)
        if now != seen:
            yield {"data": now}
        seen = now
        await anyio.sleep(_POLL_SECONDS)
