"""The fields of a form, from the parameters of an operation; and what a form says, as arguments of it."""

from __future__ import annotations

import inspect
import types
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from notebook_sync.registry import Arg, Operation, annotation_of, plain_type
from notebook_sync.surfaces.dashboard.shell import Fields

Shape = Literal["text", "lines", "number", "choice", "check", "hidden"]
# What the pages themselves say: how much is listed, from where, whether it is a dry run, and of what text.
NOT_ASKED = frozenset({"return", "limit", "after", "dry_run", "expected_digest"})
# A text that may be longer has a field of several lines.
_LONGEST_LINE = 5_000
_UNIONS = (Union, types.UnionType)


def inputs_of(operation: Operation, given: Mapping[str, str], *, without: Collection[str] = ()) -> list[dict[str, Any]]:
    """The fields for the arguments of an operation, with the values that are given, as the macro `field` reads them."""
    return [_input(operation, name, given) for name in operation.hints if name not in {*NOT_ASKED, *without}]


def _input(operation: Operation, name: str, given: Mapping[str, str]) -> dict[str, Any]:
    hint, default = operation.hints[name], operation.parameters[name].default
    kind, metas = plain_type(hint), _metas(hint)
    longest = next((each.max_length for each in metas if each.max_length and kind is str), None)
    said = next((each.description for each in metas if each.description), "")
    is_required = default is inspect.Parameter.empty
    value = given.get(name, "" if is_required or default in (None, False) else _text(default))
    shape, choices = _shape(hint, kind, default, longest)
    if choices and not is_required and default in (None, ""):
        choices = ("", "any"), *choices
    return {
        "name": name,
        "label": name.replace("_", " ").capitalize(),
        "shape": shape,
        "value": value,
        "help": said,
        "choices": choices,
        "is_required": is_required,
        "longest": longest,
    }


def _shape(hint: Any, kind: Any, default: Any, longest: int | None) -> tuple[Shape, tuple[tuple[str, str], ...]]:
    if kind is bool and default is False:
        return "check", ()
    if kind is bool:
        return "choice", (("true", "yes"), ("false", "no"))
    if get_origin(kind) is Literal:
        return "choice", tuple((str(each), str(each)) for each in get_args(kind))
    if kind in (int, float):
        return "number", ()
    arg = annotation_of(hint, Arg)
    items = plain_type((get_args(kind) or (str,))[0]) if get_origin(kind) is list else str
    is_long = (arg and (arg.from_file or arg.is_file)) or (longest or 0) > _LONGEST_LINE or items is not str
    return "lines" if is_long else "text", ()


def _metas(hint: Any) -> list[msgspec.Meta]:
    """What the annotations of a parameter say of it, the outermost first."""
    if get_origin(hint) is not Annotated:
        return [found for each in get_args(hint) for found in _metas(each)] if get_origin(hint) in _UNIONS else []
    return [each for each in hint.__metadata__ if isinstance(each, msgspec.Meta)] + _metas(get_args(hint)[0])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def given_in(operation: Operation, form: Fields) -> dict[str, Any]:
    """What a form says of an operation's arguments; an empty field says nothing."""
    given: dict[str, Any] = {}
    for name, hint in operation.hints.items():
        values = [value for value in form.getlist(name) if value.strip()] if name != "return" else []
        if values:
            is_list = get_origin(plain_type(hint)) is list
            given[name] = values if is_list and len(values) > 1 else values[-1]
    return given


def missing_in(operation: Operation, given: Mapping[str, Any]) -> list[str]:
    """The required arguments that are not given."""
    empty = inspect.Parameter.empty
    return [
        name
        for name in operation.arguments.__struct_fields__
        if operation.parameters[name].default is empty and name not in given
    ]
