"""The dashboard as an ASGI application, and the door to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from sse_starlette import EventSourceResponse
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp

from notebook_sync.notebook import Notebook
from notebook_sync.store.index import Index
from notebook_sync.surfaces.dashboard import notes, overview, palette, tables
from notebook_sync.surfaces.dashboard.door import BrowserDoor
from notebook_sync.surfaces.dashboard.shell import Shell
from notebook_sync.surfaces.http.app import LIVE, STATIC

# The crafted pages, in the order of the navigation; the generic ones come last.
CRAFTED = (overview, notes, palette, tables)
_POLL_SECONDS = 0.3
_PING_SECONDS = 15
_SLOW_SECONDS = 30.0


def dashboard_of(notebook: Notebook) -> tuple[BrowserDoor, ASGIApp]:
    """The door and the pages of a notebook."""
    shell = Shell(notebook)
    door = BrowserDoor(shell)
    routes: list[BaseRoute] = [Route(f"{STATIC}{{name}}", shell.static), *door.routes()]
    routes.append(Route(LIVE, partial(_live, notebook)))
    for module in CRAFTED:
        routes += module.routes(shell)
    return door, GZipMiddleware(Router(routes, redirect_slashes=False), minimum_size=1000, compresslevel=6)


async def _live(notebook: Notebook, request: Request) -> Response:
    """One server-sent event whenever rows or events of the index change, until the login ends."""
    changes = _changes(notebook, request.state.is_current)
    return EventSourceResponse(changes, ping=_PING_SECONDS, send_timeout=_SLOW_SECONDS)


async def _changes(notebook: Notebook, is_current: Callable[[], bool]) -> AsyncIterator[dict[str, str]]:
    seen: Any = await anyio.to_thread.run_sync(_state, notebook.core.index)
    yield {"comment": "ready"}
    while await anyio.to_thread.run_sync(is_current):
        await anyio.sleep(_POLL_SECONDS)
        now = await anyio.to_thread.run_sync(_state, notebook.core.index)
        if now != seen:
            yield {"data": "changed"}
        seen = now


def _state(index: Index) -> tuple[Any, ...]:
    """What differs after a change; that something was looked at changes none of it."""
    newest = [row["id"] for row in index.events.find(order=("-id",), limit=1)]
    return index.rev(), *newest
