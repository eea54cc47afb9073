"""The HTTP API of one notebook as an ASGI app: FastAPI routes behind the guard.

Whatever else is served at its side (`beside`, as the MCP server at `/mcp`) stands behind the same guard.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Route
from starlette.types import ASGIApp

from notebook_sync import __version__
from notebook_sync.errors import NotebookError
from notebook_sync.folder import FOLDER
from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.errors import InvalidArguments
from notebook_sync.surfaces.http_agent_routes import agent_routes
from notebook_sync.surfaces.http_asking import API
from notebook_sync.surfaces.http_errors import Answer, answer, answer_to, fault_of
from notebook_sync.surfaces.http_events import Streams
from notebook_sync.surfaces.http_guard import Guard
from notebook_sync.surfaces.http_metrics import Metrics
from notebook_sync.surfaces.http_routes import open_routes, routes
from notebook_sync.tokens import Tokens
from prompt.errors import PromptError

# Worker threads: what waits for a file or a store waits in one of them.
_THREADS = 16
_MOST_COMPLAINTS = 5


@dataclass(frozen=True, slots=True)
class Beside:
    """Another app at a path of its own, and what has to run while it is served. Its requests have passed the guard."""

    path: str
    app: ASGIApp
    running: Callable[[], AbstractAsyncContextManager[object]]


def http_app(notebook: Notebook, *, hosts: Sequence[str] = (), beside: Sequence[Beside] = ()) -> FastAPI:
    """The app for an open notebook, which stays the caller's to close. `hosts` are further Host names it answers to,
    besides loopback and those of `server.allowed_hosts`."""
    metrics = Metrics(notebook.status)
    streams = Streams(notebook.events, metrics)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = _THREADS
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(streams.running())
            for each in beside:
                await stack.enter_async_context(each.running())
            yield

    app = FastAPI(
        title="notebook-sync",
        summary="A notebook of Markdown files for AI agents.",
        version=__version__,
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # their scripts come from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        default_response_class=Answer,
        lifespan=running,
        exception_handlers={
            NotebookError: _answer_error,
            PromptError: _answer_error,
            RequestValidationError: _answer_wrong_arguments,
            HTTPException: _answer_refusal,
        },
    )
    app.state.notebook = notebook
    app.state.streams = streams
    app.state.metrics = metrics
    app.include_router(open_routes)
    app.include_router(routes)
    app.include_router(agent_routes)
    for each in beside:
        app.router.routes.append(Route(each.path, each.app))
    app.add_middleware(
        Guard,
        tokens=Tokens(notebook.root / FOLDER),
        hosts=(*notebook.settings.server.allowed_hosts, *hosts),
        metrics=metrics,
    )
    return app


async def _answer_error(_: Request, error: Exception) -> Answer:
    return answer_to(error)


async def _answer_wrong_arguments(_: Request, error: RequestValidationError) -> Answer:
    found = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:_MOST_COMPLAINTS])
    return answer_to(InvalidArguments("; ".join(found)))


async def _answer_refusal(_: Request, error: HTTPException) -> Answer:
    fault = fault_of(error.status_code, error.detail)
    refusal = answer(fault.status, fault.body())
    refusal.headers.update(error.headers or {})
    return refusal
