"""The HTTP application of one notebook: a route for each operation, tools, events, metrics, MCP; and its OpenAPI
document, from the operations' types and docstrings."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from typing import Any, get_args, get_origin

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp

from notebook_sync import __version__
from notebook_sync.errors import NoSuchNote, UsageError
from notebook_sync.files.state import why_not_writable
from notebook_sync.notebook import Notebook, load_operations
from notebook_sync.registry import OPERATIONS, Operation, as_json, call, plain_type
from notebook_sync.services.results import Missing
from notebook_sync.surfaces.background import Threads
from notebook_sync.surfaces.http.guard import AUTHORIZE, AuthBackend, BearerAuth, Cost, Guard, SessionOf, json_response
from notebook_sync.surfaces.http.live import Metrics, stream_events
from notebook_sync.surfaces.tools import ALL, is_writing_tool, object_in, run_tool, tool_definitions

API = "/api/v1"
MCP = "/mcp"
# The dashboard's: what needs no login, and its stream of events.
LOGIN, STATIC, LIVE = "/login", "/static/", "/live"
# How remote clients get a token; see oauth.py.
REGISTER, TOKEN, WELL_KNOWN = "/register", "/token", "/.well-known/"
_OPEN = (f"{API}/health", f"{API}/openapi.json", LOGIN, AUTHORIZE, REGISTER, TOKEN)
_STREAMS = (f"{API}/events", LIVE, MCP)
# What is read from one file or row; everything else may take seconds.
_QUICK = frozenset({"notes", "history", "rules", "reminders", "tools"})
# MCP's request that is answered by a stream. From this version on, its server checks the header against the body.
_LISTEN, _LATER = "subscriptions/listen", "2026"
_REF = "#/components/schemas/{name}"
_TEXT = {"type": "string"}
_ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["type", "message", "next"],
            "properties": {"type": _TEXT, "message": _TEXT, "next": _TEXT},
        }
    },
}


def asgi(
    notebook: Notebook,
    *,
    session_of: SessionOf | None = None,
    allowed_hosts: Collection[str] = (),
    dashboard: bool = False,
    public_url: str = "",
) -> ASGIApp:
    """The application for an open notebook, which the caller closes. It can be mounted in another ASGI program; with
    the dashboard, at the root of a host name.

    `session_of(token)` says who asks, None for a wrong token; by default, the notebook's own tokens decide.
    `allowed_hosts` are host names that it answers to, besides loopback and `server.allowed_hosts`. `public_url` is
    where remote clients of MCP reach it, and get tokens for themselves; this needs the dashboard. Raises UsageError.
    """
    load_operations()
    metrics, answers = Metrics(notebook), _Answers(notebook)
    routes: list[BaseRoute] = [
        *(answers.route(operation) for operation in OPERATIONS.values() if operation.route),
        Route(f"{API}/health", answers.health),
        Route(f"{API}/openapi.json", answers.openapi),
        Route(f"{API}/tools", answers.list_tools),
        Route(f"{API}/tools/{{name}}", answers.call_tool, methods=["POST"]),
        Route(f"{API}/events", functools.partial(stream_events, notebook.core)),
        Route(f"{API}/metrics", metrics.answer),
        *_mcp(notebook),
    ]
    backends: list[AuthBackend] = [BearerAuth(session_of or notebook.admin.session_of_token)]
    pages: ASGIApp | None = None
    if dashboard:
        from notebook_sync.surfaces.dashboard.app import dashboard_of  # templates, which programs do without

        browsers, pages = dashboard_of(notebook)
        backends.insert(0, browsers)
    if public_url:
        from notebook_sync.surfaces.http.oauth import RemoteClients  # as above

        if not dashboard:
            raise UsageError("remote clients need the dashboard: its login decides", next="leave out --no-dashboard")
        remote = RemoteClients(notebook, public_url, session_of or notebook.admin.session_of_token)
        backends.insert(0, remote)
        routes += remote.routes()
        allowed_hosts = (*allowed_hosts, remote.host)
    return Guard(
        Router(routes, redirect_slashes=False, default=pages),
        backends=backends,
        hosts=(*notebook.settings.server.allowed_hosts, *allowed_hosts),
        cost_of=_cost_of,
        answered=metrics.count,
    )


def _cost_of(method: str, path: str, headers: Headers) -> Cost:
    if path in _OPEN or path.startswith((STATIC, WELL_KNOWN)):
        return "open"
    is_listening = headers.get("mcp-method") == _LISTEN and headers.get("mcp-protocol-version", "") > _LATER
    if path in _STREAMS and (method == "GET" or is_listening):
        return "stream"
    is_quick = method == "GET" and path.removeprefix(API).strip("/").split("/")[0] in _QUICK
    return "quick" if is_quick else "costly"


def _mcp(notebook: Notebook) -> list[BaseRoute]:
    """MCP over HTTP, where its package is installed."""
    if find_spec("mcp") is None:
        return []
    from notebook_sync.surfaces.mcp.server import McpApp  # half a second that only a server needs

    return [Route(MCP, McpApp(notebook))]


class _Answers:
    """The answers to requests that the guard has let pass."""

    def __init__(self, notebook: Notebook) -> None:
        self._notebook = notebook
        self._threads = Threads()

    def route(self, operation: Operation) -> Route:
        """The route on which an operation is asked for, and answered."""
        method, path = operation.route.split()
        sends_json = _has_body(method)

        async def answer(request: Request) -> Response:
            given = object_in("the body", await request.body()) if sends_json else _query(operation, request)
            match = request.headers.get("if-match", "").strip().removeprefix("W/").strip('"')
            is_matched = "expected_digest" in operation.hints and match not in ("", "*")
            for name, value in (request.path_params | ({"expected_digest": match} if is_matched else {})).items():
                if given.setdefault(name, value) != value:
                    raise UsageError(f"{name}: given twice, with different values")
            session = request.state.session
            result = await self._threads.run(
                lambda: call(self._notebook, operation, given, session, from_text=not sends_json),
                writes=operation.effect != "read",
            )
            if isinstance(result, Missing):
                raise NoSuchNote(result.notebook_id)
            headers = {"ETag": f'"{digest}"'} if (digest := getattr(result, "digest", "")) else {}
            return json_response(as_json(result), 201 if operation.creates else 200, headers)

        # An id is a path with slashes, which are sent as they are or percent-encoded.
        return Route(f"{API}{path.replace('{id}', '{id:path}')}", answer, methods=[method])

    async def health(self, _request: Request) -> Response:
        """That the server answers and the index can be written, and the version; why not is for `status` to say."""
        trouble = await self._threads.run(lambda: why_not_writable(self._notebook.core.place.state))
        return json_response({"ok": not trouble, "version": __version__}, 503 if trouble else 200)

    async def openapi(self, _request: Request) -> Response:
        """What can be asked."""
        return json_response(await self._threads.run(openapi))

    async def list_tools(self, request: Request) -> Response:
        """The definitions of the session's tools."""
        shape: Any = request.query_params.get("shape", "mcp")
        toolsets, session = request.query_params.get("tools", ALL), request.state.session
        found = await self._threads.run(lambda: tool_definitions(self._notebook, session, shape, toolsets))
        return json_response({"results": found})

    async def call_tool(self, request: Request) -> Response:
        """What a tool answers."""
        name, session = request.path_params["name"], request.state.session
        arguments = object_in("the body", await request.body())
        answer = await self._threads.run(
            lambda: run_tool(self._notebook, name, arguments, session), writes=is_writing_tool(name)
        )
        return json_response(answer)


def _has_body(method: str) -> bool:
    """Whether the arguments are sent as JSON, and not in the query."""
    return method not in ("GET", "DELETE")


def _query(operation: Operation, request: Request) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        is_list = get_origin(plain_type(operation.hints.get(operation.aliases.get(name, name)))) is list
        if len(values) > 1 and not is_list:
            raise UsageError(f"{name} is given more than once")
        given[name] = values if len(values) > 1 else values[0]
    return given


@functools.cache
def openapi() -> Mapping[str, Any]:
    """The document of all operations with a route; made once, since anybody may ask for it."""
    operations = [each for each in OPERATIONS.values() if each.route]
    kinds = [each.arguments for each in operations] + [_result_of(each) for each in operations]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    paths: dict[str, Any] = {}
    for operation, given, result in zip(operations, schemas, schemas[len(operations) :], strict=False):
        method, path = operation.route.split()
        shape = components[given["$ref"].rpartition("/")[2]]
        paths.setdefault(f"{API}{path}", {})[method.lower()] = _entry(operation, method, path, shape, result)
    return {
        "openapi": "3.1.0",
        "info": {"title": "notebook-sync", "version": __version__},
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR_SCHEMA, **components},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _result_of(operation: Operation) -> Any:
    """The type of what is answered with success."""
    hint = operation.hints["return"]
    return next(each for each in (*get_args(hint), hint) if each is not Missing) if Missing in get_args(hint) else hint


def _entry(operation: Operation, method: str, path: str, shape: dict[str, Any], result: Any) -> dict[str, Any]:
    in_path, required = re.findall(r"{(\w+)", path), shape.get("required", [])
    sends_json = _has_body(method)
    parameters = [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in in_path or name in required,
            "schema": shape["properties"][name],
        }
        for name in (in_path if sends_json else shape["properties"])
    ]
    entry = {
        "operationId": operation.words.replace(" ", "_"),
        "summary": operation.summary,
        "description": operation.about,
        "parameters": parameters,
        "responses": {
            "201" if operation.creates else "200": _described("done", result),
            "default": _described("an error", {"$ref": _REF.format(name="Error")}),
        },
    }
    if sends_json:
        body = {name: each for name, each in shape["properties"].items() if name not in in_path}
        needed = [name for name in required if name not in in_path]
        content = {"schema": {**shape, "properties": body, "required": needed}}
        entry["requestBody"] = {"required": bool(needed), "content": {"application/json": content}}
    return entry


def _described(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}
