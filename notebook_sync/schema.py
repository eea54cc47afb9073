"""The small JSON schema (draft 2020-12) that clients are sent: no titles, no references, no defaults.

Only keywords and single types that OpenAI, Anthropic, MCP and Gemini all take.
"""

from __future__ import annotations

from typing import Any

import msgspec

# A text that is too long is refused; a model need not know the bound.
_KEPT = ("type", "description", "enum", "format", "minimum", "maximum", "additionalProperties")


def schema_of(kind: Any, *, strict: bool = False) -> dict[str, Any]:
    """The schema of a type. `strict`: as OpenAI's structured outputs want it, every property required, and nullable
    where it may be left out."""
    whole = msgspec.json.schema(kind)
    return _small(whole, whole.get("$defs", {}), strict)


def _small(schema: dict[str, Any], shared: dict[str, Any], strict: bool) -> dict[str, Any]:
    while "$ref" in schema or "anyOf" in schema:
        choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
        meant = choices[0] if choices else shared[schema["$ref"].rpartition("/")[2]]
        schema = {**meant, **{key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}}
    small = {key: value for key, value in schema.items() if key in _KEPT and value is not True}
    if small.get("format") not in (None, "date", "date-time"):
        del small["format"]
    if "enum" in small:
        small.setdefault("type", "string")
    if small.get("type") == "object":
        small.pop("description", None)  # the docstring of a type, which is for readers of the code
    if "items" in schema:
        small["items"] = _small(schema["items"], shared, strict)
        if not strict and small["items"].get("additionalProperties") is False:
            del small["items"]["additionalProperties"]  # Gemini does not take it
    if "properties" in schema:
        required = schema.get("required", [])
        ordered = sorted(schema["properties"].items(), key=lambda item: item[0] not in required)
        properties = {name: _small(each, shared, strict) for name, each in ordered}
        if strict:
            # A strict function takes no object of arbitrary keys.
            properties = {name: each for name, each in properties.items() if each != {"type": "object"}}
            properties = {name: each if name in required else _or_null(each) for name, each in properties.items()}
            required = list(properties)
            small["additionalProperties"] = False
        small["properties"] = properties
        if required:
            small["required"] = required
    return small


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    enum = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **enum}
