"""The small JSON schema (draft 2020-12) that a client is sent: no titles, no references, no defaults."""

from __future__ import annotations

from typing import Any

import msgspec

# A long text is refused all the same; a model need not know the bound.
_KEPT = ("type", "description", "enum", "format", "minimum", "maximum", "additionalProperties")


def schema_of(kind: Any, *, strict: bool = False, nullable: bool = False) -> dict[str, Any]:
    """The schema of a type, small; `strict` and `nullable` as `small_schema`."""
    return small_schema(msgspec.json.schema(kind), strict=strict, nullable=nullable)


def small_schema(whole: dict[str, Any], *, strict: bool = False, nullable: bool = False) -> dict[str, Any]:
    """A schema with what a model needs to know. strict: as OpenAI's structured outputs want it, where each property is
    required and one that may be left out is `null` instead. nullable: what may be null says so, as for an answer."""
    return _small(whole, whole.get("$defs", {}), strict, nullable)


def outline_of(*schemas: dict[str, Any]) -> dict[str, Any]:
    """The first field that each of these results always has; their whole schemas would make a long list."""
    first, *others = (schema["required"] for schema in schemas)
    always = [name for name in first if all(name in other for other in others)]
    return {"type": "object", "required": always[:1]}


def _small(schema: dict[str, Any], shared: dict[str, Any], strict: bool, nullable: bool) -> dict[str, Any]:
    if "$ref" in schema:
        named = shared[schema["$ref"].rpartition("/")[2]]
        schema = {**named, **{key: value for key, value in schema.items() if key != "$ref"}}
    if "anyOf" in schema:
        first, *others = _choices(schema)
        if nullable and any(each.get("type") == "null" for each in schema["anyOf"]):
            return _or_null(_small({**schema, "anyOf": [first, *others]}, shared, strict, nullable))
        kinds = {"type": [each["type"] for each in (first, *others)]} if others else {}
        schema = {**first, **{key: value for key, value in schema.items() if key != "anyOf"}, **kinds}
        if "$ref" in schema:
            return _small(schema, shared, strict, nullable)
    small = {key: value for key, value in schema.items() if key in _KEPT and value is not True}
    if "enum" in small:
        small.setdefault("type", "string")
    if small.get("type") == "object":
        small.pop("description", None)  # a type's docstring, which is for us
    if "items" in schema:
        small["items"] = _small(schema["items"], shared, strict, nullable)
    if "properties" in schema:
        required = schema.get("required", [])
        in_order = sorted(schema["properties"].items(), key=lambda item: item[0] not in required)
        properties = {name: _small(each, shared, strict, nullable) for name, each in in_order}
        if strict:
            # A strict function takes no object of any keys.
            properties = {name: each for name, each in properties.items() if each != {"type": "object"}}
            properties = {name: each if name in required else _or_null(each) for name, each in properties.items()}
            required = list(properties)
        small["properties"] = properties
        if required:
            small["required"] = required
    return small


def _choices(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """What a value may be besides null."""
    if "anyOf" in schema:
        return [choice for each in schema["anyOf"] for choice in _choices(each)]
    return [] if schema.get("type") == "null" else [schema]


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    enum = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*kinds, "null"], **enum}
