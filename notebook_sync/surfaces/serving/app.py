"""The HTTP API and the dashboard of one notebook as an ASGI app: FastAPI routes behind the guard.

Whatever else is served at its side (`beside`, as the MCP server at `/mcp`) stands behind the same guard.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from notebook_sync import __version__
from notebook_sync.errors import NotebookError
from notebook_sync.folder import FOLDER
from notebook_sync.logins import Logins
from notebook_sync.notebook import Notebook
from notebook_sync.operations import OPERATIONS
from notebook_sync.operations.registry import call, plain
from notebook_sync.sessions import OWNER
from notebook_sync.surfaces.dashboard.app import ROUTERS
from notebook_sync.surfaces.dashboard.door import BrowserDoor
from notebook_sync.surfaces.dashboard.live import PATH as LIVE
from notebook_sync.surfaces.dashboard.look import Look
from notebook_sync.surfaces.dashboard.pages import trouble
from notebook_sync.surfaces.dashboard.pictures import Pictures
from notebook_sync.surfaces.dashboard.trouble import advice_for_owner
from notebook_sync.surfaces.errors import InvalidArguments, error_body, kind_of
from notebook_sync.surfaces.http.asking import API
from notebook_sync.surfaces.http.doors import ProgramDoor
from notebook_sync.surfaces.http.errors import Answer, answer, fault_of
from notebook_sync.surfaces.http.events import Streams
from notebook_sync.surfaces.http.from_operations import operation_routes
from notebook_sync.surfaces.http.guard import Guard, GuardedApp
from notebook_sync.surfaces.http.metrics import Metrics
from notebook_sync.surfaces.http.quotas import REQUESTS
from notebook_sync.surfaces.http.routes.agents import agent_routes
from notebook_sync.surfaces.http.routes.notes import open_routes, routes
from notebook_sync.tokens import Tokens
from prompt.errors import PromptError

_MOST_COMPLAINTS = 5


def http_app(notebook: Notebook, *, hosts: Sequence[str] = (), beside: Sequence[GuardedApp] = ()) -> FastAPI:
    """The app for an open notebook, which stays the caller's to close. `hosts` are further Host names it answers to,
    besides loopback and those of `server.allowed_hosts`."""
    tokens = Tokens(notebook.root / FOLDER)
    logins = Logins(tokens)
    browsers = BrowserDoor(logins, ("/api", *(each.path for each in beside)))

    def asked(words: str) -> Any:
        return plain(call(notebook, OPERATIONS[words], {}, OWNER))

    metrics = Metrics(lambda: asked("status"), lambda: asked("context figures"))
    streams = Streams(notebook.events, metrics)

    @asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = REQUESTS.most
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
        # As they are: an included router is made anew for each app, which takes half a second.
        routes=[
            *open_routes.routes,
            *routes.routes,
            *agent_routes.routes,
            *operation_routes(),
        ],
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
    app.state.logins = logins
    app.state.browsers = browsers
    app.state.look = Look(lambda: asked("status"))
    app.state.check = Look(lambda: {"findings": call(notebook, OPERATIONS["check"], {}, OWNER).results})
    app.state.pictures = Pictures()
    for pages in ROUTERS:
        app.include_router(pages)
    for each in beside:
        app.router.routes.append(Route(each.path, each.app))
    app.add_middleware(
        Guard,
        doors=(browsers, ProgramDoor(tokens)),
        hosts=(*notebook.settings.server.allowed_hosts, *hosts),
        metrics=metrics,
        streams=(f"{API}/events", LIVE, *(each.path for each in beside)),
    )
    return app


async def _answer_error(request: Request, error: Exception) -> Response:
    if _is_of_a_browser(request):
        return trouble(kind_of(error).status, str(error), advice_for_owner(error))
    return answer(kind_of(error).status, error_body(error))


async def _answer_wrong_arguments(request: Request, error: RequestValidationError) -> Response:
    found = (f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:_MOST_COMPLAINTS])
    return await _answer_error(request, InvalidArguments("; ".join(found)))


async def _answer_refusal(request: Request, error: HTTPException) -> Response:
    fault = fault_of(error.status_code, error.detail)
    if _is_of_a_browser(request):
        return trouble(fault.status, fault.message, "go back, or begin at the first page")
    refusal = answer(fault.status, fault.body())
    refusal.headers.update(error.headers or {})
    return refusal


def _is_of_a_browser(request: Request) -> bool:
    browsers: BrowserDoor = request.app.state.browsers
    return browsers.owns(request.scope["path"])
