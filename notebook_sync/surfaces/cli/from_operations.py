"""Commands made from the operations: their arguments and their help."""

from __future__ import annotations

import inspect
import json
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from notebook_sync.operations.registry import OPERATIONS, Cli, Operation, Service, paragraphs_of, plain_type
from notebook_sync.surfaces.cli.table import AGENT, JSON, SESSION, Argument, Command

# An operation that takes the name of an agent gets the one that asks.
_SHARED = ("return", "agent")
_PICTURE = Argument("file", "the picture's file, a name that ends in .svg; - prints it", {"metavar": "OUT.svg"})
_FOLLOW = Argument("--follow", "go on with what is recorded from now on", {"action": "store_true"})
_YES = Argument("--yes", "do not ask", {"action": "store_true"})
_WIDTH = 110
_PICTURE_SHAPE = '{"path": "/home/me/out.svg", "bytes": 18230}'


def groups_of(service: type[Service]) -> Iterator[Command]:
    """The groups of commands that a service has."""
    summary, *about = paragraphs_of(service)
    if service.words:
        yield _group(service.words, summary, "\n\n".join(about), service.examples)
    for words, summary in service.groups.items():
        yield _group(words, summary, f"{summary}.", ())


def _group(words: str, summary: str, about: str, examples: tuple[str, ...]) -> Command:
    commands = _commands(lambda each: each.startswith(f"{words} "))
    named = ", ".join(each.name for each in commands[:3]) + (", …" if len(commands) > 3 else "")
    title = f"{summary[0].lower()}{summary[1:]}: {named}"
    return Command(words, title, about, examples or tuple(each.examples[0] for each in commands), "", commands=commands)


def single_commands() -> tuple[Command, ...]:
    """The commands of one word."""
    return _commands(lambda words: " " not in words)


def _commands(are_wanted: Callable[[str], bool]) -> tuple[Command, ...]:
    found = (OperationCommand(each) for words, each in OPERATIONS.items() if are_wanted(words))
    return cast("tuple[Command, ...]", tuple(found))


class OperationCommand:
    """The command of an operation, as a `Command`; its arguments are made when they are needed."""

    commands: tuple[Command, ...] = ()

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self.name = operation.words.rpartition(" ")[2]
        self.summary = f"{operation.summary[0].lower()}{operation.summary[1:]}"
        self.about = operation.about or f"{operation.summary}."
        self.examples = operation.examples

    @cached_property
    def shape(self) -> str:
        """What `--json` prints."""
        operation = self._operation
        return _PICTURE_SHAPE if operation.media else shape_of(operation.hints["return"], operation.logged)

    @cached_property
    def arguments(self) -> tuple[Argument, ...]:
        """Its own, then those of every command."""
        operation = self._operation
        own = [_argument(operation, name, hint) for name, hint in operation.hints.items() if name not in _SHARED]
        texts = [
            Argument(f"--{name}-file", f"read the {name} from a file", {"metavar": "F"})
            for name, hint in operation.hints.items()
            if cli_of(hint).from_file
        ]
        who = () if operation.asks == "owner" else (SESSION, AGENT)
        more = ([_PICTURE] if operation.media else []) + ([_FOLLOW] if operation.can_follow else [])
        confirmed = (_YES,) if operation.is_confirmed else ()
        return (*more, *own, *texts, *confirmed, *who, JSON)


def _argument(operation: Operation, name: str, hint: Any) -> Argument:
    cli, default = cli_of(hint), operation.parameters[name].default
    help_text, kind = _description(hint), plain_type(hint)
    options: dict[str, Any] = {"metavar": cli.metavar or name[0].upper(), "default": None}
    if default not in (inspect.Parameter.empty, None, "", False):
        help_text += f" ({default})"
    if get_origin(kind) is Literal:
        help_text += f": {', '.join(get_args(kind))}"
    if kind is bool and cli.is_on:
        off = f"do not {help_text}"
        return Argument(f"--no-{name}", off, {"action": "store_false", "dest": name, "default": True})
    if kind is bool:
        return Argument(f"--{name.replace('_', '-')}", help_text, {"action": "store_true", "default": None})
    if is_names(kind) and cli.positional:
        return Argument(name, help_text, {"metavar": cli.metavar, "nargs": "+"})
    if is_names(kind):
        help_text += ", comma-separated"
    elif get_origin(kind) is dict:
        pairs = {"metavar": cli.metavar, "action": "append", "dest": name}
        return Argument(cli.flag or f"--{name}", help_text, pairs)
    elif get_origin(kind) is list:
        return Argument(name, f"{help_text}: a file of JSON; - reads standard input", {"metavar": cli.metavar})
    if cli.from_file:
        help_text += "; - reads standard input"
    if cli.positional:
        is_needed = default is inspect.Parameter.empty and not cli.from_file
        return Argument(name, help_text, {"metavar": cli.metavar} if is_needed else {**options, "nargs": "?"})
    return Argument(cli.flag or f"--{name.replace('_', '-')}", help_text, {**options, "dest": name})


def shape_of(hint: Any, logged: str = "") -> str:
    """What a type looks like in JSON, for people: `{"note_id": text, "provenance"?: text, …}`; `?` may be missing, and
    what was shown before is `{…}`. The field `logged` is not in it."""
    return textwrap.fill(
        _shape(hint, set(), logged), _WIDTH, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False
    )


def _shape(hint: Any, seen: set[Any], logged: str = "") -> str:
    hint = plain_type(hint)
    if get_origin(hint) in (list, tuple):
        return f"[{_shape(get_args(hint)[0], seen)}, …]"
    if get_origin(hint) is Literal:
        return " | ".join(json.dumps(each) for each in get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return " | ".join(_shape(each, seen) for each in get_args(hint))
    kind = get_origin(hint) or hint
    if kind in seen:
        return "{…}"
    if is_dataclass(kind) or issubclass(kind, msgspec.Struct):
        seen.add(kind)
    if is_dataclass(kind):
        typed = get_type_hints(kind).items()
        return f"{{{', '.join(f'{json.dumps(name)}: {_shape(each, seen)}' for name, each in typed)}}}"
    if not issubclass(kind, msgspec.Struct):
        return _NAMED.get(kind, "object")
    may_lack = kind.__struct_config__.omit_defaults
    fields = (
        f'"{each.name}"{"?" if may_lack and not each.required else ""}: {_shape(each.type, seen)}'
        for each in msgspec.structs.fields(hint)
        if each.name != logged
    )
    return f"{{{', '.join(fields)}}}"


_NAMED: Mapping[Any, str] = {str: "text", int: "number", float: "number", bool: "true | false", datetime: "time"}


def cli_of(hint: Any) -> Cli:
    """How a parameter looks on the command line."""
    return next((each for each in _metadata(hint) if isinstance(each, Cli)), Cli())


def _description(hint: Any) -> str:
    """The last one counts: a parameter may say more than the type that it shares with others."""
    said = [each.description for each in _metadata(hint) if isinstance(each, msgspec.Meta) and each.description]
    return cli_of(hint).help or (said[-1] if said else "")


def _metadata(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(each for kind in get_args(hint) for each in _metadata(kind))
    return hint.__metadata__ if get_origin(hint) is Annotated else ()


def is_names(kind: Any) -> bool:
    """Whether a type is a list of texts."""
    return get_origin(kind) is list and plain_type(get_args(kind)[0]) is str
