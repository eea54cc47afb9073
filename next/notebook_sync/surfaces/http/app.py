"""The HTTP application of one notebook: a route for each operation, tools, events, metrics, MCP."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, get_origin

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Scope

from notebook_sync import __version__
from notebook_sync.errors import NoSuchNote, NotebookError, NotFound, UsageError
from notebook_sync.notebook import Notebook, load_operations
from notebook_sync.registry import Operation, as_json, call, plain_type
from notebook_sync.services.results import Missing
from notebook_sync.surfaces.http.guard import FAULT, Guard, SessionOf, error_response, json_response
from notebook_sync.surfaces.http.live import EventStreams, Metrics
from notebook_sync.surfaces.http.openapi import API, has_body, openapi, routed
from notebook_sync.surfaces.threads import Threads, is_writing_tool
from notebook_sync.surfaces.tools import ALL, run_tool, tool_definitions
from prompt import PromptError

MCP = "/mcp"
_EVENTS = f"{API}/events"
_OPEN = (f"{API}/health", f"{API}/openapi.json")
# What is read from one file or row; everything else may take seconds.
_QUICK = frozenset({"notes", "history", "rules", "reminders", "tools"})


def asgi(notebook: Notebook, *, session_of: SessionOf | None = None, allowed_hosts: Collection[str] = ()) -> ASGIApp:
    """The application for an open notebook, which the caller closes. It can be mounted in another ASGI program.

    `session_of(token)` says who asks, None for a wrong token; by default, the notebook's own tokens decide.
    `allowed_hosts` are host names that it answers to, besides loopback and `server.allowed_hosts`.
    """
    load_operations()
    metrics, streams = Metrics(notebook), EventStreams(notebook)
    routes: list[BaseRoute] = [
        *map(_route, routed()),
        _Route(f"{API}/health", _health),
        _Route(f"{API}/openapi.json", _openapi),
        _Route(f"{API}/tools", _list_tools),
        _Route(f"{API}/tools/{{name}}", _call_tool, methods=["POST"]),
        _Route(_EVENTS, streams.stream),
        _Route(f"{API}/metrics", metrics.answer),
        *_mcp(notebook),
    ]
    handlers: dict[Any, Any] = {NotebookError: _answer_error, PromptError: _answer_error, Exception: _answer_fault}
    handlers |= {404: _answer_404, 405: _answer_405}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    app.state.notebook, app.state.threads = notebook, Threads()
    return Guard(
        app,
        session_of=session_of or notebook.admin.session_of_token,
        hosts=(*notebook.settings.server.allowed_hosts, *allowed_hosts),
        open_paths=_OPEN,
        streams=(_EVENTS, MCP),
        costly=_is_costly,
        answered=metrics.count,
    )


class _Route(Route):
    """A route that tells the metrics its path as it is declared."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        return match, {**found, "route": self.path}


def _mcp(notebook: Notebook) -> list[BaseRoute]:
    """MCP over HTTP, where its package is installed."""
    try:
        from notebook_sync.surfaces.mcp.http import McpApp  # half a second that only a server needs
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        return []
    return [_Route(MCP, McpApp(notebook))]


def _route(operation: Operation) -> Route:
    method, path = operation.route.split()
    # An id is a path with slashes, which are sent as they are or percent-encoded.
    return _Route(f"{API}{path.replace('{id}', '{id:path}')}", _endpoint(operation), methods=[method])


def _endpoint(operation: Operation) -> Callable[[Request], Any]:
    sends_json = has_body(operation)

    async def answer(request: Request) -> Response:
        given = await _body(request) if sends_json else _query(operation, request)
        for name, value in request.path_params.items():
            if given.setdefault(name, value) != value:
                raise UsageError(f"{name}: given twice, with different values")
        match = request.headers.get("if-match", "").strip().removeprefix("W/").strip('"')
        is_matched = "expected_digest" in operation.hints and match not in ("", "*")
        if is_matched and given.setdefault("expected_digest", match) != match:
            raise UsageError("If-Match and expected_digest differ")
        state = request.app.state
        result = await state.threads.run(
            lambda: call(state.notebook, operation, given, request.state.session, from_text=not sends_json),
            writes=operation.effect != "read",
        )
        if isinstance(result, Missing):
            raise NoSuchNote(result.notebook_id)
        headers = {"ETag": f'"{digest}"'} if (digest := getattr(result, "digest", "")) else {}
        return json_response(as_json(result), 201 if operation.creates else 200, headers)

    return answer


def _query(operation: Operation, request: Request) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        is_list = get_origin(plain_type(operation.hints.get(operation.aliases.get(name, name)))) is list
        if len(values) > 1 and not is_list:
            raise UsageError(f"{name} is given more than once")
        given[name] = values if len(values) > 1 else values[0]
    return given


async def _body(request: Request) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(await request.body() or b"{}")
    except (msgspec.DecodeError, RecursionError):
        raise UsageError("the body is not valid JSON") from None
    if not isinstance(given, dict):
        raise UsageError("the body must be a JSON object")
    return given


async def _health(_request: Request) -> Response:
    return json_response({"ok": True, "version": __version__})


async def _openapi(request: Request) -> Response:
    return json_response(await request.app.state.threads.run(openapi))


async def _list_tools(request: Request) -> Response:
    shape: Any = request.query_params.get("shape", "mcp")
    toolsets = request.query_params.get("tools", ALL)
    state, session = request.app.state, request.state.session
    found = await state.threads.run(lambda: tool_definitions(state.notebook, session, shape, toolsets))
    return json_response({"results": found})


async def _call_tool(request: Request) -> Response:
    name, arguments = request.path_params["name"], await _body(request)
    state, session = request.app.state, request.state.session
    answer = await state.threads.run(
        lambda: run_tool(state.notebook, name, arguments, session), writes=is_writing_tool(name)
    )
    return json_response(answer)


def _is_costly(method: str, path: str) -> bool:
    return method != "GET" or path.removeprefix(API).strip("/").split("/")[0] not in _QUICK


async def _answer_error(_request: Request, error: Exception) -> Response:
    return error_response(error if isinstance(error, NotebookError) else UsageError(str(error)))


async def _answer_fault(_request: Request, _error: Exception) -> Response:
    return error_response(FAULT)


async def _answer_404(_request: Request, _error: Exception) -> Response:
    return error_response(NotFound("route", "at this path", next=f"see {API}/openapi.json"))


async def _answer_405(request: Request, error: Any) -> Response:
    answer = UsageError(f"{request.method} is not allowed here", next=f"see {API}/openapi.json").as_json()
    return json_response(answer, 405, error.headers)
