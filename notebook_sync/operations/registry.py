"""Operations and how they are declared: one typed method with a docstring, from which every surface is derived.

The parameters are the schema, the docstring is the help, and the return type is the JSON. A surface calls an operation
through `call` alone, and adds nothing but the form of its input and output.
"""

from __future__ import annotations

import functools
import inspect
import operator
import threading
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import (
    TYPE_CHECKING,
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

from notebook_sync.errors import UsageError
from notebook_sync.moments import moment
from notebook_sync.sessions import KINDS, OWNER, Kind, Session

if TYPE_CHECKING:
    from notebook_sync.wiring import Wiring

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Row = TypeVar("_Row")

Effect = Literal["read", "write", "destructive"]
EVERYONE: frozenset[Kind] = frozenset(KINDS)
NOT_EXTERNAL: frozenset[Kind] = frozenset(("owner", "task"))
OWNER_ONLY: frozenset[Kind] = frozenset(("owner",))
# Parameters that no client sends.
_NOT_SENT = ("session", "progress", "seen")
_LONGEST_NAMED = 64
SVG = "image/svg+xml"

# Who runs an operation on the command line: the caller, by --session; the owner, unless a session is named, for what
# only shows files that they have anyway; always the owner, for the upkeep of their notebook.
Asks = Literal["caller", "reader", "owner"]

Limit = Annotated[int, msgspec.Meta(ge=1, le=100_000, description="at most this many")]
When = Annotated[
    str | date, msgspec.Meta(max_length=64, description="2026-02-18, 2026-02-18T09:30, yesterday, or 7d for days ago")
]


class Model(msgspec.Struct, omit_defaults=True):
    """A result, or a part of one. A field that has its default is left out of the JSON."""

    def for_model(self) -> Model:
        """What a language model is shown in its place."""
        return self


class Results(msgspec.Struct, Generic[_Row], kw_only=True):
    """A list of results. `degraded` says why it is less than was asked for; `next` is the cursor of the next page."""

    results: list[_Row]
    degraded: str | None = None
    next: str | None = None


@dataclass(frozen=True, slots=True)
class Cli:
    """How a parameter looks on the command line, where that does not follow from its type. `positional` ones are named
    by their `metavar`; the value of one `from_file` may also come from `--NAME-file` or, as `-`, from standard input.
    `flag` is the name of an option where it is not its own; `help` stands for a description that models do not need.
    `is_on`: true unless `--no-NAME` is given.
    """

    metavar: str = ""
    positional: bool = False
    from_file: bool = False
    flag: str = ""
    help: str = ""
    is_on: bool = False


@dataclass(frozen=True)
class Operation:
    """One operation, as the surfaces see it. `words` call it on the command line; `tool` and `route` are empty where
    models or HTTP clients do not have it. `refusal` is the message to a session that is not among `sessions`.
    `creates`: HTTP answers 201. `media`: what the returned text is, where the result is not JSON. `hint` tells a model
    when to use it. `nothing_found` is printed where a list is empty. `aliases` are other names of arguments.
    `unlisted` arguments are accepted from a model but not offered to it, to keep its list of tools short. `for_models`
    are arguments that a model's call has unless it gives others. A session of a kind in `needs_agent` has the tool only
    if it names its agent. `idempotent`: calling twice is as calling once. `asks`: who runs it on the command line.
    `can_follow`: the command line can go on with new rows, which its service's `follow` yields.
    `keeps_working`: on the command line it runs with the last good settings while notebook.toml has an error. `logged`
    names a field of lines for the caller's log: the command line prints them to standard error, not in the JSON.
    """

    words: str
    service: str
    run: Callable[..., Any]
    tool: str = ""
    route: str = ""
    sessions: frozenset[Kind] = EVERYONE
    refusal: str = ""
    effect: Effect = "read"
    open_world: bool = False
    idempotent: bool = False
    creates: bool = False
    can_follow: bool = False
    asks: Asks = "caller"
    keeps_working: bool = False
    logged: str = ""
    needs_agent: frozenset[Kind] = frozenset()
    for_models: Mapping[str, object] = field(default_factory=dict)
    media: str = ""
    hint: str = ""
    nothing_found: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    unlisted: tuple[str, ...] = ()
    examples: tuple[str, ...] = field(default=())

    @functools.cached_property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters by the names that they have as arguments: `as_` is the argument `as`."""
        return {name.rstrip("_"): each for name, each in inspect.signature(self.run).parameters.items()}

    @property
    def shows_progress(self) -> bool:
        """Whether it takes `progress(done, total)`, which no client sends."""
        return "progress" in self.parameters

    @property
    def is_confirmed(self) -> bool:
        """Whether a person confirms it on the command line: it takes `seen`, the result of its dry run, and does
        nothing else than that. No client sends it."""
        return "seen" in self.parameters

    @property
    def summary(self) -> str:
        """The first line of the docstring, without its full stop."""
        return paragraphs_of(self.run)[0].replace("\n", " ").rstrip(".")

    @property
    def about(self) -> str:
        """The rest of the docstring."""
        return "\n\n".join(paragraphs_of(self.run)[1:])

    @functools.cached_property
    def hints(self) -> Mapping[str, Any]:
        """The annotations of what is an argument everywhere, and of `return`."""
        hints = get_type_hints(self.run, include_extras=True)
        return {name.rstrip("_"): _as_sent(hint) for name, hint in hints.items() if name not in _NOT_SENT}

    @functools.cached_property
    def arguments(self) -> type[msgspec.Struct]:
        """The parameters but the session, as a type that refuses any other."""
        fields = [
            (name, hint)
            if self.parameters[name].default is inspect.Parameter.empty
            else (name, hint, self.parameters[name].default)
            for name, hint in self.hints.items()
            if name != "return"
        ]
        return msgspec.defstruct(self.run.__name__, fields, kw_only=True, forbid_unknown_fields=True)

    def checked(self, given: Mapping[str, object], *, from_text: bool = False) -> dict[str, Any]:
        """The arguments by the names of their parameters; None stands for one that is left out. `from_text`: numbers
        and the like may be given as text. Raises UsageError."""
        known = self.arguments.__struct_fields__
        given = {self.aliases.get(name, name): value for name, value in given.items() if value is not None}
        for name in given.keys() - set(known):
            from difflib import get_close_matches  # only for a call that is wrong

            near = get_close_matches(name[:_LONGEST_NAMED], known, n=1)
            meant = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known) or 'none'}"
            raise UsageError(f"there is no argument {name[:_LONGEST_NAMED]!r}; {meant}")
        try:
            arguments = msgspec.convert(given, self.arguments, strict=not from_text)
        except msgspec.ValidationError as error:
            said = str(error).replace("Invalid enum value", "there is no").replace("`", "")
            problem, _, place = said.partition(" - at $.")
            known = get_args(plain_type(self.hints.get(place))) if problem.startswith("there is no") else ()
            use = f"; use one of {', '.join(known)}" if known else ""
            raise UsageError(f"{place}{place and ': '}{problem}{use}") from None
        return {self.parameters[name].name: getattr(arguments, name) for name in known}


OPERATIONS: dict[str, Operation] = {}


def operation(words: str, **declared: Any) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """Declare a method of a service as an operation; `declared` are fields of `Operation`. A session that is not among
    `sessions` is refused, and an event tells the owner, before the method runs."""

    def declare(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        @functools.wraps(method)
        def run(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
            service: Any = args[0]
            named: Any = kwargs.get("session")
            session = named or next((each for each in args if isinstance(each, Session)), OWNER)
            if session.kind not in declared.get("sessions", EVERYONE):
                named = kwargs.get("id")
                path = named if isinstance(named, str) else ""
                service.wiring.guard.refuse(session, declared.get("tool") or words, declared["refusal"], path)
            return method(*args, **kwargs)

        run.declared = {"words": words, **declared}  # type: ignore[attr-defined]
        return run

    return declare


class Service:
    """A group of operations on one notebook, in a namespace of its own: `notebook.facts.add(…)`.

    Its docstring is the help of the group: the first line is the summary. `groups` are further groups of commands, by
    their words, with a summary of each.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    groups: ClassVar[Mapping[str, str]] = {}
    examples: ClassVar[tuple[str, ...]] = ()

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self._making: dict[str, threading.Lock] = {}

    def moment(self, given: str | date | None) -> datetime | None:
        """The moment that an argument names, in the notebook's timezone. Raises UsageError."""
        return moment(given, self.wiring.settings.timezone, datetime.now(UTC)) if given else None

    def __init_subclass__(cls) -> None:
        for method in vars(cls).values():
            if declared := getattr(method, "declared", None):
                OPERATIONS[declared["words"]] = Operation(service=cls.name, run=method, **declared)


def call(
    wiring: Wiring,
    operation: Operation,
    given: Mapping[str, object],
    session: Session,
    *,
    from_text: bool = False,
    **unchecked: Any,
) -> Any:
    """Check the arguments and run an operation for a session: the way of every surface but Python. Raises UsageError
    for wrong arguments, and as the operation."""
    arguments = operation.checked(given, from_text=from_text)
    return operation.run(getattr(wiring, operation.service), session=session, **arguments, **unchecked)


def plain(result: Any) -> Any:
    """A result as dictionaries and lists; moments stay what they are."""
    return msgspec.to_builtins(result, builtin_types=(datetime,))


def for_model(result: Any) -> Any:
    """A result as a language model may see it: words of others are fenced, long texts cut."""
    if isinstance(result, list | tuple):
        return [for_model(each) for each in result]
    shown = result
    if isinstance(result, msgspec.Struct):
        changed = {name: for_model(getattr(result, name)) for name in result.__struct_fields__}
        shown = msgspec.structs.replace(result, **changed)
    elif is_dataclass(result) and not isinstance(result, type):
        shown = replace(result, **{each.name: for_model(getattr(result, each.name)) for each in fields(result)})
    return shown.for_model() if hasattr(shown, "for_model") else shown


def paragraphs_of(documented: object) -> list[str]:
    """The paragraphs of a docstring."""
    return (inspect.getdoc(documented) or "").split("\n\n")


def _as_sent(hint: Any) -> Any:
    """The type as a client sends it: a moment and a path as text."""
    if get_origin(hint) is Annotated:
        return Annotated[_as_sent(get_args(hint)[0]), *hint.__metadata__]
    if get_origin(hint) in (Union, types.UnionType):
        return functools.reduce(operator.or_, (_as_sent(each) for each in get_args(hint) if each not in (date, Path)))
    return hint


def plain_type(hint: Any) -> Any:
    """The type without what annotates it, and without None."""
    if get_origin(hint) is Annotated:
        return plain_type(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        others = [each for each in get_args(hint) if each is not type(None)]
        return plain_type(others[0]) if len(others) == 1 else hint
    return hint
