"""Routes made from the operations: arguments from the path, the query or the body, one call, the result as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any, get_origin

import msgspec
from anyio import to_thread
from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer

from notebook_sync.errors import UsageError
from notebook_sync.operations import OPERATIONS
from notebook_sync.operations.registry import Operation, call, plain_type
from notebook_sync.operations.schema import schema_of
from notebook_sync.surfaces.http.asking import API, CONFLICT, REFUSALS, in_turn
from notebook_sync.surfaces.http.errors import Answer
from notebook_sync.surfaces.http.picture import PICTURE, TEXT, picture

_BEARER = Depends(HTTPBearer(auto_error=False, description="the owner's token, or an agent's"))


def operation_routes() -> list[APIRoute]:
    """One route for each operation that HTTP clients have."""
    return [_route(each) for each in OPERATIONS.values() if each.route]


def _route(operation: Operation) -> APIRoute:
    method, path = operation.route.split()
    status = 201 if operation.creates else 200
    answered: dict[str, Any] = PICTURE
    if not operation.media:
        answered = {"content": {"application/json": {"schema": schema_of(operation.hints["return"], nullable=True)}}}
    return APIRoute(
        f"{API}{path}",
        _endpoint(operation, status),
        methods=[method],
        name=f"{operation.service}_{operation.run.__name__}",
        summary=operation.summary,
        description=operation.about or operation.summary,
        status_code=status,
        response_model=None,
        response_class=Response if operation.media else Answer,
        responses={**REFUSALS, **(CONFLICT if operation.effect != "read" else {}), status: answered},
        dependencies=[_BEARER],
        openapi_extra=_arguments(operation, path, is_query=method == "GET"),
    )


def _names_in(path: str) -> list[str]:
    """The arguments that stand in the path."""
    return re.findall(r"{(\w+)", path)


def _endpoint(operation: Operation, status: int) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def endpoint(request: Request) -> Response:
        is_query = request.method == "GET"
        given = _in_query(operation, request) if is_query else _in_body(await request.body())
        notebook, session = request.app.state.notebook, request.state.session

        def answer() -> Response:
            if request.query_params and not is_query:
                raise UsageError("this route takes its arguments in the body")
            expected = _expected_digest(operation, request, given)
            arguments = {**given, **expected, **request.path_params}
            result = call(notebook, operation, arguments, session, from_text=is_query)
            if operation.media:
                return picture(result, operation.media if result.startswith("<svg") else TEXT)
            told = Answer(msgspec.to_builtins(result), status)
            if digest := getattr(result, "digest", ""):
                told.headers["ETag"] = f'"{digest}"'
            return told

        async with in_turn(request):
            return await to_thread.run_sync(answer)

    return endpoint


def _expected_digest(operation: Operation, request: Request, given: dict[str, Any]) -> dict[str, str]:
    """The digest that an If-Match header names, as the argument that it is. Raises UsageError for two digests."""
    named = request.headers.get("if-match", "*").strip().removeprefix("W/").strip('"')
    if named == "*" or "expected_digest" not in operation.hints:
        return {}
    if given.get("expected_digest") not in (None, named):
        raise UsageError("If-Match and expected_digest name two texts; send one of them")
    return {"expected_digest": named}


def _in_query(operation: Operation, request: Request) -> dict[str, Any]:
    """The arguments in the query. Raises UsageError for one that is given twice and is no list."""
    given: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        is_list = get_origin(plain_type(operation.hints.get(name))) is list
        if len(values) > 1 and not is_list:
            raise UsageError(f"give {name} once")
        given[name] = values if is_list else values[0]
    return given


def _in_body(raw: bytes) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(raw or b"{}")  # stricter than `json`: no NaN, no half of a character
    except (ValueError, RecursionError):
        raise UsageError("the body is not valid JSON") from None
    if not isinstance(given, dict):
        raise UsageError("the body must be a JSON object")
    return given


def _arguments(operation: Operation, path: str, *, is_query: bool) -> dict[str, Any]:
    """The arguments, as OpenAPI describes them."""
    schema = schema_of(operation.arguments)
    in_path, required = _names_in(path), schema.get("required", [])
    parameters = [
        {"name": name, "in": "path" if name in in_path else "query", "required": name in required, "schema": each}
        for name, each in schema.get("properties", {}).items()
        if is_query or name in in_path
    ]
    described: dict[str, Any] = {"parameters": parameters} if parameters else {}
    if not is_query:
        properties = {name: each for name, each in schema["properties"].items() if name not in in_path}
        if properties:
            others = {"properties": properties, "required": [name for name in required if name not in in_path]}
            described["requestBody"] = {
                "required": True,
                "content": {"application/json": {"schema": {**schema, **others}}},
            }
    return described
