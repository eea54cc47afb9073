"""Operations as tools for language models: their definitions in three shapes, and one way to call them.

A tool that a session may not call is absent from its list and refused when it is called. Nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

from notebook_sync.errors import LONGEST_NAME, NotebookError, UsageError, did_you_mean
from notebook_sync.notebook import SERVICES, Notebook, load_operations
from notebook_sync.registry import OPERATIONS, Operation, as_json, call, for_model
from notebook_sync.schema import schema_of
from notebook_sync.sessions import Session

Shape = Literal["openai", "anthropic", "mcp"]
CORE = "core"
ALL = "all"
# Arguments whose names say enough; their descriptions would only lengthen the list.
_SELF_EXPLANATORY = frozenset({"limit", "name", "tags", "expected_digest", "reason"})


def tools_of(notebook: Notebook, session: Session, toolsets: str = CORE) -> list[Operation]:
    """The operations that `session` may call as tools, of these sets: names separated by commas, or "all".

    The core set is always there. Raises UsageError for an unknown set.
    """
    load_operations()
    known = {each.toolset for each in OPERATIONS.values() if each.tool}
    wanted = known if toolsets == ALL else {CORE, *filter(None, (name.strip() for name in toolsets.split(",")))}
    if unknown := wanted - known:
        sets = ", ".join([ALL, *sorted(known)])
        raise UsageError(f"there is no set of tools {min(unknown)!r}", next=f"use some of {sets}")
    settings = notebook.settings
    tools = [each for each in OPERATIONS.values() if each.tool and each.toolset in wanted]
    listed = [each for each in tools if each.is_listed_for(session, settings)]
    return sorted(listed, key=lambda each: SERVICES.index(each.service))  # a provider's cache needs one order


def tool_definitions(
    notebook: Notebook, session: Session, shape: Shape = "openai", toolsets: str = CORE
) -> list[dict[str, Any]]:
    """The tools of `tools_of` as an API takes them: OpenAI's strict functions, Anthropic's, or MCP's."""
    if shape not in get_args(Shape):
        raise UsageError(f"there is no shape {shape!r}", next=f"use one of {', '.join(get_args(Shape))}")
    return [_definition(each, shape) for each in tools_of(notebook, session, toolsets)]


def call_tool(
    notebook: Notebook, name: str, arguments: Mapping[str, Any] | str | bytes | None, session: Session
) -> dict[str, Any]:
    """Run a tool for a session: the result, or `{"error": {"type", "message", "next", …}}`; plain JSON either way.

    `arguments` are an object, or its JSON text. Whatever a caller can do wrong is an answer; what is raised is a
    defect of the program.
    """
    try:
        return run_tool(notebook, name, arguments, session)
    except NotebookError as error:
        return error.as_json()


def run_tool(
    notebook: Notebook, name: str, arguments: Mapping[str, Any] | str | bytes | None, session: Session
) -> dict[str, Any]:
    """As `call_tool`, but errors are raised."""
    operation = _tool_named(notebook, name, session)
    given = {key: value for key, value in object_in(f"the input of {name}", arguments).items() if value is not None}
    result = call(notebook, operation, {**operation.for_models, **given}, session)
    answer: dict[str, Any] = as_json(for_model(result))
    return answer


def object_in(what: str, sent: Mapping[str, Any] | str | bytes | None) -> dict[str, Any]:
    """The object that a client sent, or its JSON text; {} for nothing. Raises UsageError, which names it as `what`."""
    try:
        given = msgspec.json.decode(sent or b"{}") if isinstance(sent, str | bytes) else sent or {}
    except (ValueError, RecursionError):
        raise UsageError(f"{what} is not valid JSON") from None
    if not isinstance(given, Mapping):
        raise UsageError(f"{what} must be a JSON object")
    return dict(given)


def is_writing_tool(name: str) -> bool:
    """Whether a tool changes something."""
    writing = (each for each in OPERATIONS.values() if each.tool and each.effect != "read")
    return any(name in (each.tool, *each.tool_aliases) for each in writing)


def argument_schema(operation: Operation, *, strict: bool = False) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without those that are accepted but not offered."""
    schema = schema_of(operation.arguments, strict=strict)
    properties: dict[str, Any] = schema.setdefault("properties", {})
    for name in operation.unlisted:
        properties.pop(name, None)
        if name in schema.get("required", ()):
            schema["required"].remove(name)
    for name in _SELF_EXPLANATORY & properties.keys():
        properties[name].pop("description", None)
    return schema


def _tool_named(notebook: Notebook, name: str, session: Session) -> Operation:
    load_operations()
    for operation in OPERATIONS.values():
        if name and name in (operation.tool, *operation.tool_aliases):
            return operation
    names = [each.tool for each in tools_of(notebook, session, ALL)]
    advice = did_you_mean(name, names, f"use one of {', '.join(names)}")
    raise UsageError(f"there is no tool {name[:LONGEST_NAME]!r}", next=advice)


def _definition(operation: Operation, shape: Shape) -> dict[str, Any]:
    named = {"name": operation.tool, "description": f"{operation.summary}. {operation.hint}".rstrip()}
    if shape == "openai":
        strict = {"strict": True, "parameters": argument_schema(operation, strict=True)}
        return {"type": "function", "function": named | strict}
    schema = argument_schema(operation)
    if shape == "anthropic":
        return {**named, "input_schema": schema}
    # An unknown argument is refused with a message; to say so in each schema is a twentieth of the list.
    schema.pop("additionalProperties", None)
    hints: dict[str, Any] = {"readOnlyHint": operation.effect == "read", "openWorldHint": False}
    if operation.effect != "read":
        hints["destructiveHint"] = operation.effect == "destructive"
    if operation.idempotent:
        hints["idempotentHint"] = True
    return {**named, "inputSchema": schema, "annotations": hints}
