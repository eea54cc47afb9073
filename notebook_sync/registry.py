"""Operations: one typed method with a docstring, from which every surface is derived.

The parameters are the schema, the docstring is the help, the return type is the JSON. A surface calls an operation
through `call` alone, and adds only the form of its input and output.
"""

# Without `from __future__ import annotations`: msgspec would compile each annotation at each start of the program.

import abc
import functools
import importlib
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import date, datetime
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from notebook_sync.errors import LONGEST_NAME, NotPermitted, UsageError, did_you_mean
from notebook_sync.sessions import KINDS, OWNER, Kind, Session
from notebook_sync.settings import Settings

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Row = TypeVar("_Row")

# Who runs an operation on the command line when no session is named: the owner, or (for writing commands and the
# prompt) the owner on a terminal and a task session elsewhere.
Asks = Literal["caller", "owner"]
EVERYONE: frozenset[Kind] = frozenset(KINDS)
NOT_EXTERNAL: frozenset[Kind] = frozenset(("owner", "task"))
OWNER_ONLY: frozenset[Kind] = frozenset(("owner",))
REFUSAL = "This is only available in owner conversations"

# Parameters that no client sends: who asks, a progress callback, the dry run that a person has confirmed, and the
# folder that a command is given with -C.
_NOT_SENT = ("session", "progress", "seen", "folder")
# Where a text is the value itself, or may be it.
_NOT_JSON = (str, Literal, date, datetime, Any, Union, types.UnionType)

Limit = Annotated[int, msgspec.Meta(ge=1, le=10_000, description="at most this many")]
DryRun = Annotated[bool, msgspec.Meta(description="only show what would happen")]
When = Annotated[str, msgspec.Meta(max_length=64, description="2026-02-18, 2026-02-18T09:30, yesterday or 7d")]


@dataclass(frozen=True, slots=True)
class Results(Generic[_Row]):
    """A list. `degraded` says why it is less than was asked for; `next` is the cursor of the next page."""

    results: list[_Row]
    degraded: str | None = None
    next: str | None = None


class Result(msgspec.Struct, frozen=True):
    """What an operation returns: its fields are the JSON. It iterates over pairs of name and value, so `dict` takes it,
    and a route of a FastAPI program may return it."""

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((name, getattr(self, name)) for name in self.__struct_fields__)


class Arg(msgspec.Struct, frozen=True):
    """How a parameter looks on the command line, where its type does not say it.

    `positional`: given without a flag, shown as `metavar`. `from_file`: the value may come from `--NAME-file` or, as
    `-`, from standard input. `is_file`: the positional value itself is the path of a file, whose text it means.
    """

    metavar: str = ""
    positional: bool = False
    from_file: bool = False
    is_file: bool = False


class Operation(msgspec.Struct, frozen=True, dict=True, kw_only=True):
    """One operation as the surfaces see it.

    `words` call it on the command line ("" for none); `tool` and `route` ("GET /notes") are empty where models or HTTP
    clients do not have it. `toolset` groups tools; those of "core" are listed by default. `refusal` is the message to
    a session that is not among `sessions`; `widened` opens it to further sessions where the settings say so. A session
    of a kind in `needs_agent` has the tool only if it names its agent.

    `aliases` are further names of arguments, `tool_aliases` of the tool. `unlisted` arguments are accepted from models
    without being offered, and `for_models` are the defaults of a model's call. `columns` are the fields that a table
    shows, `shows` the one field that is printed as it is; `nothing_found` is printed for an empty list. `creates`: HTTP
    answers 201.
    `result_in`: the module of the result's type, where it is loaded only to describe that type.
    """

    run: Callable[..., Any]
    words: str = ""
    service: str = ""
    tool: str = ""
    tool_aliases: tuple[str, ...] = ()
    toolset: str = "core"
    route: str = ""
    sessions: frozenset[Kind] = EVERYONE
    refusal: str = REFUSAL
    effect: Literal["read", "write", "destructive"] = "read"
    idempotent: bool = False
    creates: bool = False
    asks: Asks = "owner"
    needs_agent: frozenset[Kind] = frozenset()
    widened: Callable[[Settings, Session], bool] | None = None
    aliases: Mapping[str, str] = {}
    unlisted: tuple[str, ...] = ()
    for_models: Mapping[str, object] = {}
    columns: tuple[str, ...] = ()
    shows: str = ""
    nothing_found: str = ""
    exit_code: Callable[[Any], int] = lambda _: 0
    adopts: bool = False
    result_in: str = ""
    hint: str = ""
    examples: tuple[str, ...] = ()

    @functools.cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters by their argument names: `as_` is the argument `as`."""
        return {name.rstrip("_"): each for name, each in inspect.signature(self.run).parameters.items()}

    def is_listed_for(self, session: Session, settings: Settings) -> bool:
        """Whether the session may call it at all: what it may not call is absent from its list of tools."""
        has_agent = bool(session.agent) or session.kind not in self.needs_agent
        is_wide = self.widened is not None and self.widened(settings, session)
        return has_agent and (session.kind in self.sessions or is_wide)

    def require(self, service: "Service", session: Session, id: object) -> None:
        """Raises NotPermitted for a session that may not call it, once the refusal is recorded as an event on `id`."""
        if session.kind in self.sessions or (self.widened and self.widened(service.settings, session)):
            return
        service.refused(session, self.tool or self.words, id if isinstance(id, str) else "")
        raise NotPermitted(self.refusal)

    @property
    def is_confirmed(self) -> bool:
        """Whether the command line shows a dry run and asks first: the method takes `seen`, that dry run's result."""
        return "seen" in self.parameters

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring on one line, without its full stop."""
        return _paragraphs(self.run)[0].replace("\n", " ").rstrip(".")

    @property
    def about(self) -> str:
        """The rest of the docstring."""
        return "\n\n".join(_paragraphs(self.run)[1:])

    @functools.cached_property
    def hints(self) -> Mapping[str, Any]:
        """The annotation of each argument, and of `return`."""
        late = vars(importlib.import_module(self.result_in)) if self.result_in else None
        hints = get_type_hints(self.run, localns=late, include_extras=True)
        return {name.rstrip("_"): hint for name, hint in hints.items() if name not in _NOT_SENT}

    @functools.cached_property
    def arguments(self) -> type[msgspec.Struct]:
        """The arguments as a type that refuses any other."""
        empty = inspect.Parameter.empty
        given = [
            (name, hint) if self.parameters[name].default is empty else (name, hint, self.parameters[name].default)
            for name, hint in self.hints.items()
            if name != "return"
        ]
        # Named by the words: two types of one name break the schema of all operations.
        name = "".join(word.title() for word in (self.words or self.tool).replace("_", " ").split()) + "Arguments"
        return msgspec.defstruct(name, given, kw_only=True, forbid_unknown_fields=True)

    def checked(self, given: Mapping[str, object], *, from_text: bool = False) -> dict[str, Any]:
        """The arguments by the names of their parameters; None means that it is left out.

        `from_text`: numbers, lists and truth values come as text. What a model sends in a neighbouring type is taken
        where it is unambiguous. Raises UsageError with the argument's name.
        """
        known = self.arguments.__struct_fields__
        named: dict[str, object] = {}
        try:
            msgspec.json.encode(given)  # half a surrogate pair passes json.loads, and fails in files, git and SQLite
        except (UnicodeEncodeError, RecursionError):
            raise UsageError("an argument is not valid Unicode text, or is nested too deeply") from None
        for name, value in given.items():
            plain = self.aliases.get(name, name)
            if value is None:
                continue
            if plain not in known:
                advice = did_you_mean(name, known, f"the arguments are: {', '.join(known) or 'none'}")
                raise UsageError(f"there is no argument {name[:LONGEST_NAME]!r}", next=advice)
            if plain in named and named[plain] != value:
                raise UsageError(f"{name}: given twice, with different values")
            named[plain] = as_meant(value, self.hints[plain])
        try:
            arguments = msgspec.convert(named, self.arguments, strict=not from_text)
        except msgspec.ValidationError as error:
            raise self._invalid(str(error)) from None
        return {self.parameters[name].name: getattr(arguments, name) for name in known}

    def _invalid(self, said: str) -> UsageError:
        """msgspec's message with the argument's name in front, and the values that are possible, or what it is."""
        problem, _, place = said.replace("`", "").partition(" - at $.")
        missing = problem.partition("missing required field ")[2]
        if missing:
            return UsageError(f"the argument {missing} is missing")
        hint = self.hints.get(place)
        choices = [str(each) for each in get_args(plain_type(hint)) if isinstance(each, str)]
        meta = annotation_of(hint, msgspec.Meta)
        about = meta.description if meta and meta.description else ""
        advice = f"use one of {', '.join(choices)}" if choices else f"{place} means: {about}" if about else ""
        return UsageError(f"{place}: {problem}" if place else problem, next=advice)


OPERATIONS: dict[str, Operation] = {}


def operation(words: str = "", **declared: Any) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """Declare a method of a service as an operation; `declared` are fields of `Operation`.

    A session that is not among `sessions` is refused before the method runs, and the refusal becomes an event. The
    answer is the same whether the thing asked for exists or not.
    """

    def declare(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        @functools.wraps(method)
        def run(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
            service: Any = args[0]
            given: Any = kwargs.get("session") or next((each for each in args if isinstance(each, Session)), OWNER)
            made.require(service, given, kwargs.get("id"))
            try:
                return method(*args, **kwargs)
            except Exception as error:
                from prompt.values import PromptError  # loads the Markdown reader

                if isinstance(error, PromptError):  # where tokens are counted: the settings name no known encoding
                    raise UsageError(str(error)) from error
                raise

        made = Operation(run=run, words=words, **declared)
        run.declared = made  # type: ignore[attr-defined]
        return run

    return declare


def found_any(result: Results[Any]) -> int:
    """The exit code of a search: 1 for nothing found."""
    return 0 if result.results else 1


class Service(abc.ABC):
    """A group of operations on one notebook, in a namespace of its own: `notebook.facts.add(…)`.

    `name` is the attribute of `Notebook`. The docstring's first line is the summary of the group.
    """

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        for method in vars(cls).values():
            if made := getattr(method, "declared", None):
                OPERATIONS[made.words or made.tool] = msgspec.structs.replace(made, service=cls.name)

    @property
    @abc.abstractmethod
    def settings(self) -> Settings:
        """The notebook's settings."""

    @abc.abstractmethod
    def refused(self, session: Session, operation: str, id: str) -> None:
        """Record that a session was refused an operation on `id`, "" for none."""


def call(
    notebook: Any,
    operation: Operation,
    given: Mapping[str, object],
    session: Session,
    *,
    from_text: bool = False,
    **unchecked: Any,
) -> Any:
    """Check who asks, then the arguments, and run an operation: the way of every surface but Python.

    `unchecked` are parameters that no client sends. Raises NotPermitted, UsageError for wrong arguments, and what the
    operation does.
    """
    service = getattr(notebook, operation.service)
    named = {operation.aliases.get(name, name): value for name, value in given.items()}
    operation.require(service, session, named.get("id"))
    return operation.run(service, session=session, **operation.checked(given, from_text=from_text), **unchecked)


def as_json(result: Any) -> Any:
    """A result as plain dicts, lists, texts and numbers. Times become ISO 8601 text."""
    return msgspec.to_builtins(result, str_keys=True)


def for_model(result: Any) -> Any:
    """A result as a language model may see it: a value that has a method `for_model` decides for itself."""
    if isinstance(result, list | tuple):
        return [for_model(each) for each in result]
    if isinstance(result, dict):
        return {name: for_model(value) for name, value in result.items()}
    if is_dataclass(result) and not isinstance(result, type):
        result = replace(result, **{each.name: for_model(getattr(result, each.name)) for each in fields(result)})
    elif isinstance(result, msgspec.Struct):
        seen = {name: for_model(getattr(result, name)) for name in result.__struct_fields__}
        result = msgspec.structs.replace(result, **seen)
    return result.for_model() if hasattr(result, "for_model") else result


def plain_type(hint: Any) -> Any:
    """The type without its annotations, and without None."""
    if get_origin(hint) is Annotated:
        return plain_type(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        others = [each for each in get_args(hint) if each is not type(None)]
        return plain_type(others[0]) if len(others) == 1 else hint
    return hint


def annotation_of(hint: Any, kind: type[_Result]) -> _Result | None:
    """The annotation of this type in a hint, wherever it is nested."""
    if get_origin(hint) is Annotated:
        own = next((each for each in hint.__metadata__ if isinstance(each, kind)), None)
        return own or annotation_of(get_args(hint)[0], kind)
    if get_origin(hint) in (Union, types.UnionType):
        return next((found for each in get_args(hint) if (found := annotation_of(each, kind))), None)
    return None


def as_meant(value: object, hint: Any) -> object:
    """A value in the type that its parameter has, where only one reading is possible.

    Models and forms send JSON in a string where a list, an object, a number or a truth value is meant, a single text
    for a list of texts, and 5.0 for 5. Everything else is left for the conversion to refuse.
    """
    kind = plain_type(hint)
    origin = get_origin(kind) or kind
    if isinstance(value, str) and origin not in _NOT_JSON:
        try:
            decoded = msgspec.json.decode(value)
        except (ValueError, RecursionError):
            decoded = None
        if origin is list and not isinstance(decoded, list):
            is_texts = plain_type((get_args(kind) or (str,))[0]) is str
            return [each.strip() for each in value.split(",") if each.strip()] if is_texts else value
        if isinstance(decoded, bool) == (origin is bool) and isinstance(decoded, int | float | dict | list):
            value = decoded
    if isinstance(value, float) and origin is int and value.is_integer():
        return int(value)
    return value


def _paragraphs(documented: object) -> list[str]:
    return (inspect.getdoc(documented) or "").split("\n\n")
