"""Results as text for a terminal. Control characters in a note are shown, never sent to the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from notebook_sync.registry import Operation, as_json

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
# What an answer lacks or warns of: for standard error, and nowhere else.
_COMPLAINTS = ("degraded", "warnings", "problems")
_WIDEST = 60
_FIRST = 20


def rendered(operation: Operation, answer: Any) -> str:
    """The text of an answer in JSON shape."""
    if operation.words in _SPECIAL:
        return _SPECIAL[operation.words](answer)
    if operation.shows:
        return str(answer[operation.shows])
    if isinstance(answer, Mapping) and "results" in answer:
        return table(answer["results"], operation.columns) or operation.nothing_found
    return fields_of(answer)


def json_line(value: Any) -> str:
    """A result as JSON on one line."""
    return msgspec.json.encode(as_json(value)).decode()


def complaints_of(answer: Any) -> list[str]:
    """What an answer lacks or warns of."""
    found = [answer.get(name) or [] for name in _COMPLAINTS] if isinstance(answer, Mapping) else []
    return [str(each) for said in found for each in ([said] if isinstance(said, str) else said)]


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Rows as aligned columns; the last one is cut at the terminal's edge."""
    if not rows or isinstance(rows[0], str):
        return "\n".join(map(str, rows))
    names = columns or [name for name, value in rows[0].items() if not isinstance(value, list | dict)]
    cells = [[cell(row.get(name)) for name in names] for row in rows]
    widths = [min(_WIDEST, max(len(line[at]) for line in cells)) for at in range(len(names))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join(map(_fitted, lines))


def fields_of(answer: Any) -> str:
    """An object as lines of name and value, of a list the first items one a line; without complaints and what is
    empty."""
    shown = {name: value for name, value in answer.items() if value and name not in _COMPLAINTS}
    diff = [_diff_of(answer)] if shown.pop("diff", None) else []
    width = max((len(name) for name in shown), default=0)
    lines = []
    for name, value in shown.items():
        rows = _rows_of(value)
        lines += [f"{name.replace('_', ' '):<{width}}  {each}" for each in rows[:_FIRST]]
        lines += [f"{'':<{width}}  … and {len(rows) - _FIRST:,} more; --json lists all"] if rows[_FIRST:] else []
    return "\n".join(lines + diff)


def _rows_of(value: Any) -> list[str]:
    """A value on one line; a list of objects, and an object of objects, on one line for each."""
    if isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        return [cell(each) for each in value]
    if isinstance(value, Mapping) and all(isinstance(each, Mapping) for each in value.values()):
        return [f"{safe(part)}: {cell(each)}" for part, each in value.items()]
    return [cell(value)]


def cell(value: Any) -> str:
    """One value on one line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, list | tuple):
        return ", ".join(cell(each) for each in value)
    if isinstance(value, Mapping):
        shown = {name.replace("_", " "): cell(each) for name, each in value.items() if each not in (None, "")}
        return ", ".join(f"{name} {text}" for name, text in shown.items())
    return safe(re.sub(r"^(\d{4}-\d\d-\d\d)T(\d\d:\d\d).*", r"\1 \2", str(value)))


def safe(text: str, *, is_line: bool = True) -> str:
    """Text with characters that would control the terminal escaped. `is_line`: and on one line."""
    text = text.replace("\n", "\\n").replace("\t", " ") if is_line else text.replace("\r\n", "\n")
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def of_watch(event: Mapping[str, Any]) -> str:
    """One event of `watch` on one line: its kind, then what it tells."""
    kind = event["event"]
    detail = event.get("message") or event.get("text")
    rest = {name: value for name, value in event.items() if name != "event" and value not in (0, [])}
    return f"{kind}: {safe(str(detail)) if detail else cell(rest)}".removesuffix(": ")


def _diff_of(answer: Mapping[str, Any]) -> str:
    return safe(answer["diff"], is_line=False).rstrip("\n") or "no difference"


def _read_of(answer: Mapping[str, Any]) -> str:
    """A note's text; escaped on a terminal, as it is in a pipe."""
    text: str = answer["text"]
    return (safe(text, is_line=False) if sys.stdout.isatty() else text).removesuffix("\n")


def _fitted(line: str) -> str:
    """A line cut at the terminal's edge; whole in a pipe."""
    if not sys.stdout.isatty():
        return line
    import shutil  # loads every compression module

    width = shutil.get_terminal_size().columns
    return line if len(line) <= width else f"{line[: width - 1]}…"


_SPECIAL: dict[str, Callable[[Any], str]] = {"diff": _diff_of, "read": _read_of}
