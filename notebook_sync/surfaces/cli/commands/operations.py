"""Runs the command of an operation: arguments in, one call, its result as JSON or in words."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

import msgspec

from notebook_sync.errors import UsageError
from notebook_sync.operations.registry import OPERATIONS, Operation, call
from notebook_sync.surfaces.cli.answers import complain, listed, opened, session_of, show, terminal_width, text_given
from notebook_sync.surfaces.cli.from_operations import cli_of, plain_type
from notebook_sync.surfaces.cli.next_steps import next_steps, undo_of
from notebook_sync.surfaces.cli.picture import put_picture, require_place
from notebook_sync.surfaces.cli.text.editing import undoing
from notebook_sync.surfaces.cli.text.facts import FACTS

_FAILED = 1
_TEXTS: Mapping[str, Callable[[Any, int | None], str]] = {**FACTS}


def run(arguments: Namespace) -> int:
    """Run the operation that the words name; the exit code."""
    operation = OPERATIONS[f"{arguments.command} {arguments.subcommand}"]
    if operation.media:
        require_place(arguments, ".svg", example=operation.examples[0])
    with next_steps(arguments), opened(arguments) as notebook:
        given = _given_in(operation, arguments)
        result = call(notebook, operation, given, session_of(arguments), from_text=True)
    if operation.media:
        return put_picture(arguments, result)
    answer = msgspec.to_builtins(result)
    show(arguments, answer, lambda told: _worded(operation, told, arguments))
    return _complaints(operation, answer)


def _worded(operation: Operation, answer: Mapping[str, Any], arguments: Namespace) -> str:
    lines = [_TEXTS[operation.words](answer, terminal_width())]
    if answer.get("moved"):
        undo = undo_of(arguments, made=answer.get("created", False))
        lines += undoing({"warnings": (), **answer}, undo, "undo        ")
    return "\n".join(lines)


def _complaints(operation: Operation, answer: Mapping[str, Any]) -> int:
    """Say what the answer lacks; the exit code."""
    if degraded := answer.get("degraded"):
        complain(f"found by words alone: {degraded}")
    if error := answer.get("error"):
        complain(error)
        return _FAILED
    if "results" in answer and not answer["results"]:
        complain(operation.nothing_found)
        return _FAILED if operation.words.endswith("search") else 0
    return 0


def _given_in(operation: Operation, arguments: Namespace) -> dict[str, Any]:
    """The arguments that were given, as text where `call` converts it. Raises UsageError."""
    given: dict[str, Any] = {}
    for name, hint in operation.hints.items():
        if name == "return":
            continue
        value, kind = getattr(arguments, name), plain_type(hint)
        if cli_of(hint).from_file:
            value = text_given(value, getattr(arguments, f"{name}_file"), f"--{name}")
            if value is None:
                raise UsageError(f"give the {name}, as in: {operation.examples[0]}")
        elif get_origin(kind) is list and value is not None:
            value = list(listed(value)) if get_args(kind) == (str,) else _json_in(value)
        given[name] = value
    return given


def _json_in(file: str) -> Any:
    text = text_given(None, file, "JSON") or ""
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        source = "standard input" if file == "-" else file
        raise UsageError(f"{source} is not JSON: {error}; write a list of objects") from None
