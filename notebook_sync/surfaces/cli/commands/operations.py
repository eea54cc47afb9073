"""Runs the command of an operation: arguments in, one call, its result as JSON or in words."""

from __future__ import annotations

import inspect
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import chain
from typing import Any, NoReturn, get_args, get_origin

import msgspec

from notebook_sync.errors import UsageError
from notebook_sync.operations import OPERATIONS
from notebook_sync.operations.registry import Operation, call, plain_type
from notebook_sync.sessions import OWNER, Session
from notebook_sync.surfaces.cli.addressed import program
from notebook_sync.surfaces.cli.answers import (
    as_json,
    complain,
    in_colour,
    listed,
    opened,
    opened_for_prompt,
    session_of,
    show,
    shown_as_it_is,
    shown_to,
    terminal_width,
    text_given,
)
from notebook_sync.surfaces.cli.commands.specs import spec_of
from notebook_sync.surfaces.cli.from_operations import cli_of, is_names
from notebook_sync.surfaces.cli.next_steps import keeping, next_steps, undo_of, who_of
from notebook_sync.surfaces.cli.picture import put_picture, require_place
from notebook_sync.surfaces.cli.progress import progress
from notebook_sync.surfaces.cli.text.admin import ADMIN
from notebook_sync.surfaces.cli.text.briefs import CONTEXT
from notebook_sync.surfaces.cli.text.channels import CHANNELS
from notebook_sync.surfaces.cli.text.editing import undoing
from notebook_sync.surfaces.cli.text.facts import FACTS
from notebook_sync.surfaces.cli.text.memories import MEMORIES
from notebook_sync.surfaces.cli.text.prompts import PROMPTS
from notebook_sync.surfaces.cli.text.rendering import Rendering, Shown
from notebook_sync.surfaces.cli.text.stream import STREAM

_FAILED = 1
_RENDERED: Mapping[str, Rendering] = {**ADMIN, **PROMPTS, **FACTS, **MEMORIES, **CONTEXT, **STREAM, **CHANNELS}


def run(arguments: Namespace) -> int:
    """Run the operation that the words name; the exit code."""
    operation = OPERATIONS[" ".join(filter(None, (arguments.command, getattr(arguments, "subcommand", ""))))]
    if operation.media:
        endings = (".mmd", ".md") if getattr(arguments, "format", "") == "mermaid" else (".svg",)
        require_place(arguments, *endings, example=operation.examples[0])
    with (
        next_steps(arguments),
        (opened_for_prompt if operation.keeps_working else opened)(arguments) as notebook,
        progress(operation.words) if operation.shows_progress else nullcontext() as shown,
    ):
        session = _session_of(operation, arguments)
        given = _given_in(operation, arguments, lambda name: spec_of(notebook, name, session))
        unchecked: dict[str, Any] = {"progress": shown} if shown else {}

        def run_it(given: Mapping[str, object], **seen: Any) -> Any:
            return call(notebook, operation, given, session, from_text=True, **unchecked, **seen)

        shown_at = Shown(
            terminal_width(),
            notebook.settings.timezone,
            program(),
            who_of(arguments),
            partial(keeping, notebook),
            in_colour(),
        )
        result = _confirmed(operation, arguments, given, run_it, shown_at) if operation.is_confirmed else run_it(given)
        if operation.media:
            return put_picture(arguments, result)
        rendering, answer = _RENDERED[operation.words], msgspec.to_builtins(result)
        for line in answer.pop(operation.logged, ()):
            complain(line)
        worded = partial(_worded, operation, shown=shown_at, arguments=arguments)
        if getattr(arguments, "follow", False):
            return _follow(arguments, answer, worded, getattr(notebook, operation.service).follow())
        show(arguments, answer, worded)
    if not arguments.json:
        for line in rendering.complaints(answer):
            complain(line)
    if "results" in answer and not answer["results"]:
        if operation.nothing_found and not arguments.json:
            complain(operation.nothing_found)
        return _FAILED if operation.words.endswith("search") else 0
    return int(rendering.exit_code(answer))


def _follow(
    arguments: Namespace, answer: Mapping[str, Any], worded: Callable[[Any], str], new: Iterable[Mapping[str, Any]]
) -> int:
    """Print a line for each row: first those since the one that was named, then new ones, until Ctrl-C."""
    if answer["degraded"]:
        complain(answer["degraded"])
    for row in chain(answer["results"] if arguments.since else (), new):
        print(as_json(row) if arguments.json else worded({"results": [row]}), flush=True)
    return 0


def _confirmed(
    operation: Operation, arguments: Namespace, given: dict[str, Any], run_it: Callable[..., Any], shown: Shown
) -> Any:
    """The result, which is that of the dry run where nothing is to be done or a person says no."""
    rendering = _RENDERED[operation.words]
    seen = run_it({**given, "dry_run": True})
    if seen.results and not arguments.json:
        print(rendering.preview(msgspec.to_builtins(seen), shown))
    is_wanted = seen.results and not arguments.dry_run and _is_sure(arguments, rendering.question)
    return run_it(given, seen=seen) if is_wanted else seen


def _is_sure(arguments: Namespace, question: str) -> bool:
    """Raises UsageError where nobody can be asked."""
    if arguments.yes:
        return True
    if arguments.json or sys.stdin is None or not sys.stdin.isatty():
        raise UsageError("nobody is asked here; give --yes to confirm, or --dry-run to see the changes")
    return input(f"{question} [y/N] ").strip().casefold() in {"y", "yes"}


def _session_of(operation: Operation, arguments: Namespace) -> Session:
    if operation.asks == "owner":
        return OWNER
    return shown_to(arguments) if operation.asks == "reader" else session_of(arguments)


def _worded(operation: Operation, answer: Mapping[str, Any], shown: Shown, arguments: Namespace) -> str:
    rendering = _RENDERED[operation.words]
    text = rendering.text(answer, shown)
    if rendering.is_quoted:
        return shown_as_it_is(text)
    # Of a fact, `moved` says whether it is elsewhere now; of a sync, how many notes are.
    if answer.get("moved") is not True and operation.words != "memory add":
        return text
    undo = undo_of(arguments, made=answer.get("created", operation.words == "memory add"))
    return "\n".join([text, *undoing({"warnings": (), **answer}, undo, "undo        ")])


def _given_in(operation: Operation, arguments: Namespace, spec: Callable[[str], str]) -> dict[str, Any]:
    """The arguments that were given, as text where `call` converts it. Raises UsageError."""
    given: dict[str, Any] = {}
    for name, hint in operation.hints.items():
        if name == "return":
            continue
        value: Any = getattr(arguments, name, None)
        kind = plain_type(hint)
        if name == "task_spec":
            value = spec(value)
        elif cli_of(hint).from_file:
            value = text_given(value, getattr(arguments, f"{name}_file"), f"--{name}")
            if value is None and operation.parameters[name].default is inspect.Parameter.empty:
                raise UsageError(f"give the {name}, as in: {operation.examples[0]}")
        elif is_names(kind):
            value = list(listed(value)) if isinstance(value, str) else value
            if value == []:
                raise UsageError(f"{name}: no value; give it like this: --{name.replace('_', '-')} ferry,winter")
        elif get_origin(kind) is dict:
            value = _pairs(value or (), cli_of(hint).flag or f"--{name}", operation, is_json=get_args(kind)[1] is Any)
        elif get_origin(kind) is list:
            value = _json_in(value)
        if isinstance(value, dict) and get_origin(kind) is list:
            given.update(value)  # the file names the arguments itself
        else:
            given[name] = value
    return given


def _pairs(texts: Iterable[str], flag: str, operation: Operation, *, is_json: bool) -> dict[str, Any]:
    """The values by their keys; of those that may be JSON, what it says. Raises UsageError."""
    pairs: dict[str, Any] = {}
    for text in texts:
        key, _, value = (part.strip() for part in text.partition("="))
        if not (key and value):
            example = next(each for each in operation.examples if flag in each)
            raise UsageError(f"{flag}: {text!r} is not KEY=VALUE; write it as in: {example}")
        if key in pairs:
            raise UsageError(f"{flag} gives {key!r} twice; give it once")
        pairs[key] = _json_or_text(value) if is_json else value
    return pairs


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _json_in(file: str) -> Any:
    text = text_given(None, file, "JSON") or ""
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        source = "standard input" if file == "-" else file
        raise UsageError(f"{source} is not JSON: {error}; write a list of objects") from None
