"""The reference in docs/reference, from the declarations: `python -m tests.reference` writes it.

`test_docs` compares the files with what this makes, so that they cannot say anything else than the program does.
"""

import inspect
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

import notebook_sync
from notebook_sync.errors import NotebookError
from notebook_sync.notebook import load_operations
from notebook_sync.registry import OPERATIONS, Operation, annotation_of, plain_type
from notebook_sync.services.results import Missing
from notebook_sync.settings import Settings, Table
from notebook_sync.surfaces.cli.arguments import parser_of
from notebook_sync.surfaces.cli.index import COMMANDS, PROGRAM

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
_TEMPLATE = REFERENCE.parents[1] / "runtime_templates" / "notebook.toml"
GENERATED = "<!-- Made by `python -m tests.reference` from the declarations in the code. -->"
_PYTHON = ("Notebook", "AsyncNotebook", "Session", "asgi")
_PLAIN_NAMES = {
    "str": "text",
    "bool": "true or false",
    "int": "integer",
    "float": "number",
    "str | float | None": "text or number",
    "Any": "any",
}


def pages() -> dict[str, str]:
    """The text of each page by its file name."""
    load_operations()
    made = {
        "operations.md": _operations(),
        "settings.md": _settings(),
        "python.md": _python(),
        "errors.md": _errors(),
    }
    return {name: f"{GENERATED}\n\n{text.rstrip()}\n" for name, text in made.items()}


def _operations() -> str:
    lines = [
        "# Operations",
        "Every operation has the same name, arguments, result and errors as a command, an HTTP route below `/api/v1`, "
        "a tool for models, and a Python method (awaited on `AsyncNotebook`). Every command takes `--session`, "
        "`--agent`, `--json`, and for its log `-q`, `-v` and `--log-level`. "
        "[HTTP](http.md) and [Tools](tools.md) describe how arguments are sent.",
    ]
    for title, commands in COMMANDS:
        groups = [(word, _of_command(word)) for word, (module, _) in commands.items() if module]
        lines += [f"## {title}"] if any(operations for _, operations in groups) else []
        for _, operations in groups:
            lines += [part for operation in operations for part in _operation(operation)]
    return "\n\n".join(lines)


def _of_command(word: str) -> list[Operation]:
    return [each for each in OPERATIONS.values() if each.words.split()[:1] == [word]]


def _operation(operation: Operation) -> Iterator[str]:
    yield f"### {operation.words}"
    yield f"{operation.summary}."
    for paragraph in filter(None, operation.about.split("\n\n")):
        yield paragraph.replace("\n", " ")
    yield _ways(operation)
    if arguments := [_argument(operation, name) for name in operation.arguments.__struct_fields__]:
        yield "\n".join(arguments)
    if result := _result(operation):
        yield f"Returns {result}."
    if operation.examples:
        yield "\n".join(f"    {each}" for each in operation.examples)


def _ways(operation: Operation) -> str:
    usage = " ".join(parser_of(operation).format_usage().partition(PROGRAM)[2].split())
    usage = re.sub(r" \[(-h|--session KIND|--agent NAME|--json|-q|-v|--log-level LEVEL)\]", "", usage)
    ways = [f"`{PROGRAM} {usage}`"]
    ways += [f"`{operation.route}`"] if operation.route else []
    ways += [f"tool `{operation.tool}`"] if operation.tool else []
    ways += [f"`nb.{operation.service}.{operation.run.__name__}`"]
    limits = sorted(operation.sessions)
    if len(limits) < 3:
        ways.append(f"{' and '.join(limits)} sessions")
    return " · ".join(ways)


def _argument(operation: Operation, name: str) -> str:
    hint, parameter = operation.hints[name], operation.parameters[name]
    meta = annotation_of(hint, msgspec.Meta)
    notes = [_type_name(plain_type(hint))]
    if meta and meta.description:
        notes.append(meta.description)
    if parameter.default is parameter.empty:
        notes.append("required")
    elif parameter.default not in (None, "", 0, False, ()):
        notes.append(f"default `{parameter.default}`")
    return f"- `{name}`: {'; '.join(notes)}"


def _type_name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(f"`{each}`" for each in get_args(kind))
    if get_origin(kind) in (list, tuple):
        return f"list of {_type_name(plain_type(get_args(kind)[0]))}"
    if get_origin(kind) is dict:
        return "object"
    named = kind.__name__ if isinstance(kind, type) else str(kind)
    return _PLAIN_NAMES.get(named, "object" if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else named)


def _result(operation: Operation) -> str:
    """The fields of the result, or of one row of a list."""
    hint = operation.hints["return"]
    alternatives = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kind = next((each for each in alternatives if each not in (Missing, type(None))), None)
    if rows := [fields for fields in map(_fields, get_args(kind)) if fields]:
        return f"a list; each row has {rows[0]}"
    return _fields(kind)


def _fields(kind: Any) -> str:
    names = getattr(kind, "__struct_fields__", ()) or tuple(getattr(kind, "__dataclass_fields__", ()))
    return ", ".join(f"`{each}`" for each in names)


def _settings() -> str:
    lines = [
        "# Settings",
        "All keys of `notebook.toml`, each with its default. A key that is not here is an error that names the "
        "nearest one. `MONGODB_URL` and `REDIS_URL` win over the file. `notebook-sync config` shows what is in use "
        "and where it comes from.",
    ]
    for name, table in get_type_hints(Settings).items():
        if not (isinstance(table, type) and issubclass(table, Table)):
            continue
        lines += [f"## {name}", _paragraph(table).partition("] ")[2] or _paragraph(table), _keys(table, name)]
        for key, hint in get_type_hints(table).items():
            rows = [each for each in get_args(hint) if isinstance(each, type) and issubclass(each, Table)]
            if rows:
                lines += [f"### {name}.{key}", _paragraph(rows[0]), _keys(rows[0], f"{name}.{key}")]
    return "\n\n".join(lines)


def _meanings(table: str) -> dict[str, str]:
    """What the notebook.toml of a new notebook says of each key of a table."""
    below = _TEMPLATE.read_text(encoding="utf-8").partition(f"[{table}]")[2]
    return dict(re.findall(r"^(?:# )?(\w+) = .*? # +(.+)", re.split(r"^(?:# )?\[", below, flags=re.M)[0], re.M))


def _keys(table: type[Table], name: str) -> str:
    rows = ["| key | default | values | meaning |", "|---|---|---|---|"]
    hints, meanings = get_type_hints(table, include_extras=True), _meanings(name)
    for field in msgspec.structs.fields(table):
        default = "required" if field.required else f"`{msgspec.json.encode(field.default).decode()}`"
        rows.append(
            f"| `{field.name}` | {default} | {_type_name(plain_type(hints[field.name]))} "
            f"| {meanings.get(field.name, '')} |"
        )
    return "\n".join(rows)


def _python() -> str:
    lines = ["# Python", "`from notebook_sync import Notebook, AsyncNotebook, Session, NotebookError, asgi`"]
    for name in _PYTHON:
        thing = getattr(notebook_sync, name)
        lines += [f"## {name}", f"`{name}{_parameters(thing)}`", inspect.getdoc(thing) or ""]
        members = vars(thing).items() if isinstance(thing, type) else ()
        lines += [
            part for attribute, each in members if not attribute.startswith("_") for part in _member(attribute, each)
        ]
    import prompt

    lines += [
        "## The package `prompt`",
        inspect.getdoc(prompt) or "",
        "Its names: " + ", ".join(f"`{each}`" for each in prompt.__all__) + ".",
    ]
    return "\n\n".join(filter(None, lines))


def _member(name: str, member: Any) -> Iterator[str]:
    found = (
        getattr(member, "__func__", None) or getattr(member, "fget", None) or getattr(member, "func", None) or member
    )
    text = " ".join((inspect.getdoc(found) or "").split())
    if not inspect.isfunction(found) or not text:
        return
    is_call = member is found or isinstance(member, classmethod | staticmethod)
    yield f"- `{name}{_parameters(found) if is_call else ''}`: {text}"


def _parameters(thing: Any) -> str:
    signature = inspect.signature(thing)
    kept = [
        each.replace(annotation=each.empty)
        for each in signature.parameters.values()
        if each.name not in ("self", "cls")
    ]
    return str(signature.replace(parameters=kept, return_annotation=signature.empty)).replace("'", '"')


def _errors() -> str:
    lines = [
        "# Errors",
        'Every surface answers `{"error": {"type", "message", "next", …}}`: what happened and where, and what to do. '
        "In Python the same is raised; the exit code is the command's.",
        "| type | exit code | HTTP status | when |\n|---|---|---|---|",
    ]
    rows = [
        f"| `{_type_of(each)}` | {each.exit_code} | {each.status} | {_paragraph(each)} |"
        for each in _error_classes(NotebookError)
    ]
    return "\n\n".join(lines) + "\n" + "\n".join(rows)


def _error_classes(kind: type[NotebookError]) -> Iterator[type[NotebookError]]:
    for each in kind.__subclasses__():
        if each.__module__ == NotebookError.__module__:
            yield each
            yield from _error_classes(each)


def _type_of(kind: type[NotebookError]) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def _paragraph(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


if __name__ == "__main__":
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (REFERENCE / name).write_text(text, encoding="utf-8")
