"""The tools a model is given, for each kind of session: one table, its definitions in three shapes, one dispatcher.

A tool that a session may not call is absent from its list and refused when it is called. What may be done to which
note is decided below, in the use cases: a tool only takes arguments and words results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, get_args

from notebook_sync.errors import NotebookError
from notebook_sync.notebook import Notebook
from notebook_sync.operations import OPERATIONS
from notebook_sync.sessions import Session
from notebook_sync.surfaces.errors import InvalidArguments, NoSuchTool, error_body
from notebook_sync.surfaces.tools.table.notes import NOTES
from notebook_sync.surfaces.tools.tool import OperationTool, Tool
from prompt.errors import PromptError

Shape = Literal["openai", "anthropic", "mcp"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
_MOST_CANDIDATES = 3
_LONGEST_NAME = 64
# These only look up a note or a list; others may take seconds.
QUICK = frozenset({"notebook_read", "notebook_list", "get_recent_notes", "notebook_today"})

AnyTool = Tool | OperationTool
_DECLARED = [OperationTool(each) for each in OPERATIONS.values() if each.tool]
TOOLS: tuple[AnyTool, ...] = (*NOTES, *_DECLARED)


def tool_definitions(session: Session, shape: Shape = "openai") -> list[dict[str, Any]]:
    """The tools that `session` may call, as an API wants them: OpenAI's (strict functions of chat completions),
    Anthropic's, or MCP's. Raises ValueError for another shape."""
    if shape not in _SHAPED:
        raise ValueError(f"there is no shape {shape!r}; use one of {', '.join(SHAPES)}")
    return [_SHAPED[shape](tool) for tool in tools_of(session)]


def tools_of(session: Session) -> list[AnyTool]:
    """The tools that `session` may call."""
    return [tool for tool in TOOLS if tool.is_for(session)]


def call(notebook: Notebook, name: str, arguments: Mapping[str, Any] | str, session: Session) -> dict[str, Any]:
    """Run a tool for `session`: the result, or `{"error": {"type", "message", "next", …}}`; plain JSON either way.

    `arguments` are an object, or the JSON text of one, as OpenAI sends it. Everything that a caller can do wrong is an
    answer; what is raised is a fault of the program.
    """
    try:
        tool = _tool_named(name, session)
        if session.kind not in tool.sessions:
            notebook.refuse(session, name, tool.refusal, _note_in(tool, arguments))
        return tool.answer(notebook, _object(tool, arguments), session)
    except (NotebookError, PromptError) as error:
        return error_body(error)


def _tool_named(name: str, session: Session) -> AnyTool:
    for tool in TOOLS:
        if tool.name == name:
            return tool
    near = get_close_matches(name[:_LONGEST_NAME], [tool.name for tool in tools_of(session)], n=_MOST_CANDIDATES)
    raise NoSuchTool(name, tuple(near))


def _note_in(tool: AnyTool, arguments: object) -> str:
    """The note that a call which is refused unread names, for the log; "" where it names none."""
    try:
        given = _object(tool, arguments)
    except InvalidArguments:
        return ""
    note = given.get("file", given.get("id"))
    return note if isinstance(note, str) else ""


def _object(tool: AnyTool, arguments: object) -> dict[str, Any]:
    if isinstance(arguments, str | bytes):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            raise InvalidArguments(f"the arguments of {tool.name} are not valid JSON") from None
    if not isinstance(arguments, Mapping):
        raise InvalidArguments(f"the arguments of {tool.name} must be an object")
    return dict(arguments)


def _openai(tool: AnyTool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "strict": True,
        "parameters": tool.schema(strict=True),
    }
    return {"type": "function", "function": function}


def _anthropic(tool: AnyTool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.schema(),
    }


def _mcp(tool: AnyTool) -> dict[str, Any]:
    # What else is given is refused all the same, and told: to say so each time is a twentieth of the list.
    takes = {key: value for key, value in tool.schema().items() if key != "additionalProperties"}
    changes = {"destructiveHint": tool.destructive, **({"idempotentHint": True} if tool.idempotent else {})}
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": takes,
        "outputSchema": tool.outline(),
        "annotations": {
            "readOnlyHint": tool.read_only,
            **({} if tool.read_only else changes),
            "openWorldHint": tool.open_world,
        },
    }


_SHAPED: Mapping[str, Callable[[AnyTool], dict[str, Any]]] = {"openai": _openai, "anthropic": _anthropic, "mcp": _mcp}
