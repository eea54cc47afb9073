"""The OpenAPI document, from the operations' types and docstrings."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

import msgspec

from notebook_sync import __version__
from notebook_sync.registry import OPERATIONS, Operation

API = "/api/v1"
_REF = "#/components/schemas/{name}"
_ERROR = {
    "description": "an error",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
}
_ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["type", "message", "next"],
            "properties": {name: {"type": "string"} for name in ("type", "message", "next")},
        }
    },
}


def routed() -> list[Operation]:
    """The operations that HTTP clients have."""
    return [each for each in OPERATIONS.values() if each.route]


def has_body(operation: Operation) -> bool:
    """Whether the arguments are sent as JSON, and not in the query."""
    return operation.route.split()[0] not in ("GET", "DELETE")


@functools.cache
def openapi() -> Mapping[str, Any]:
    """The document of all operations with a route; made once, since anybody may ask for it."""
    operations = routed()
    kinds = [each.arguments for each in operations] + [_result_of(each) for each in operations]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    paths: dict[str, Any] = {}
    for operation, given, result in zip(operations, schemas, schemas[len(operations) :], strict=False):
        method, path = operation.route.split()
        shape = components[given["$ref"].rpartition("/")[2]]
        paths.setdefault(f"{API}{path}", {})[method.lower()] = _entry(operation, path, shape, result)
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
    """The type of what is answered with success; any object for one that has no schema."""
    hint = operation.hints["return"]
    kind = get_args(hint)[0] if get_origin(hint) in (Union, types.UnionType) else hint
    try:
        msgspec.json.schema(kind)
    except TypeError:
        return dict[str, Any]
    return kind


def _entry(operation: Operation, path: str, shape: dict[str, Any], result: Any) -> dict[str, Any]:
    in_path, required = re.findall(r"{(\w+)", path), shape.get("required", [])
    sends_json = has_body(operation)
    parameters = [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": name in in_path or name in required,
            "schema": shape["properties"][name],
        }
        for name in (in_path if sends_json else shape["properties"])
    ]
    done = {"description": "done", "content": {"application/json": {"schema": result}}}
    entry = {
        "operationId": operation.words.replace(" ", "_"),
        "summary": operation.summary,
        "description": operation.about,
        "parameters": parameters,
        "responses": {"201" if operation.creates else "200": done, "default": _ERROR},
    }
    if sends_json:
        body = {name: each for name, each in shape["properties"].items() if name not in in_path}
        needed = [name for name in required if name not in in_path]
        content = {"schema": {**shape, "properties": body, "required": needed}}
        entry["requestBody"] = {"required": bool(needed), "content": {"application/json": content}}
    return entry
