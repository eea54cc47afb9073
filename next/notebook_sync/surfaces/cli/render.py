"""Results as text for a terminal. Control characters in a note are shown, never sent to the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from notebook_sync.registry import Operation, as_json

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_WIDEST = 60
_FIRST = 20


def rendered(operation: Operation, answer: Any) -> str:
    """The text of an answer in JSON shape."""
    if operation.words in SPECIAL:
        return SPECIAL[operation.words](answer)
    if operation.shows:
        return str(answer[operation.shows])
    if isinstance(answer, Mapping) and "results" in answer:
        return table(answer["results"], operation.columns) or operation.nothing_found
    return fields_of(answer)


def json_line(value: Any) -> str:
    """A result as JSON on one line."""
    return msgspec.json.encode(as_json(value)).decode()


def complaints_of(answer: Any) -> list[str]:
    """What an answer lacks or warns of, for standard error."""
    if not isinstance(answer, Mapping):
        return []
    lines = [answer["degraded"]] if answer.get("degraded") else []
    return lines + [str(each) for name in ("warnings", "problems") for each in answer.get(name) or ()]


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Rows as aligned columns; the last one is cut at the terminal's edge."""
    if not rows:
        return ""
    names = columns or [name for name, value in rows[0].items() if not isinstance(value, list | dict)]
    cells = [[cell(row.get(name)) for name in names] for row in rows]
    widths = [min(_WIDEST, max(len(line[at]) for line in cells)) for at in range(len(names))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join(map(fitted, lines))


def fields_of(answer: Any) -> str:
    """An object as lines of name and value; what is empty is left out."""
    if not isinstance(answer, Mapping):
        return safe(str(answer))
    shown = {name: value for name, value in answer.items() if value not in (None, "", [], {}, False)}
    width = max((len(name) for name in shown), default=0)
    lines = []
    for name, value in shown.items():
        if name == "diff":
            continue
        lines.append(f"{name.replace('_', ' '):<{width}}  {cell(value)}")
    if diff := answer.get("diff"):
        lines.append(safe_lines(diff).rstrip("\n"))
    return "\n".join(lines)


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


def safe(line: str) -> str:
    """Text on one line, with characters that would control the terminal escaped."""
    return _CONTROL.sub(_escaped, line.replace("\n", "\\n").replace("\t", " "))


def safe_lines(text: str) -> str:
    """Text with its lines and tabs, other control characters escaped."""
    return _CONTROL.sub(_escaped, text.replace("\r\n", "\n"))


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def fitted(line: str) -> str:
    """A line cut at the terminal's edge; whole in a pipe."""
    if not sys.stdout.isatty():
        return line
    import shutil  # loads every compression module

    width = shutil.get_terminal_size().columns
    return line if len(line) <= width else f"{line[: width - 1]}…"


def counts(number: int, noun: str) -> str:
    """The number with its noun, in the plural unless it is one."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def of_sync(report: Mapping[str, Any]) -> str:
    """The counts of a sync on one line, then the first files that failed."""
    changed = ", ".join(f"{report[what]:,} {what}" for what in ("added", "updated", "moved", "deleted") if report[what])
    lines = [
        f"{changed or 'nothing to do'}; {counts(report['unchanged'], 'note')} unchanged ({report['seconds']:.1f} s)"
    ]
    return "\n".join(lines + first(failures_of(report), "failed"))


def failures_of(report: Mapping[str, Any]) -> list[str]:
    """The files that failed, as lines that editors can open."""
    return [f"{each['path']}: {each['error']}" for each in report["failed"]]


def first(lines: Sequence[str], what: str) -> list[str]:
    """The first of many lines, indented, and how many more there are."""
    shown = [f"  {safe(line)}" for line in lines[:_FIRST]]
    more = len(lines) - _FIRST
    return [*shown, f"  … and {more:,} more {what}; --json lists all"] if more > 0 else shown


def of_watch(event: Mapping[str, Any]) -> str:
    """One event of `watch` on one line."""
    kind = event["event"]
    if kind == "ready":
        return "ready" if event.get("file_events", True) else "ready (no file events here: the timer finds changes)"
    if kind == "batch":
        names = [*event["paths"][:_FIRST], *(f"{each['path']} ({each['error']})" for each in event["failed"][:_FIRST])]
        changed = [f"{event[what]:,} {what}" for what in ("added", "updated", "moved", "deleted") if event[what]]
        return f"{', '.join(changed) or 'failed'}: {', '.join(map(safe, names))}"
    detail = event.get("message") or event.get("text") or ""
    rest = {name: value for name, value in event.items() if name not in ("event", "message", "text")}
    return f"{kind}: {safe(str(detail)) or cell(rest)}"


def of_status(status: Mapping[str, Any]) -> str:
    """The parts of `status`, one a line; lists one item a line."""
    lines = []
    for key, value in status.items():
        name = f"{key.replace('_', ' '):<13}"
        if isinstance(value, list):
            lines += [f"{name} {cell(each)}" for each in value[:_FIRST]]
        elif isinstance(value, Mapping) and value and all(isinstance(each, Mapping) for each in value.values()):
            lines += [f"{name} {safe(part)}: {cell(each)}" for part, each in value.items()]
        elif value not in (None, "", {}):
            lines.append(f"{name} {cell(value)}")
    return "\n".join(lines)


def of_diff(answer: Mapping[str, Any]) -> str:
    """A unified diff, or a line that there is none."""
    return safe_lines(answer["diff"]).rstrip("\n") or "no difference"


def of_read(answer: Mapping[str, Any]) -> str:
    """A note's text; escaped on a terminal, as it is in a pipe."""
    text: str = answer["text"]
    return (safe_lines(text) if sys.stdout.isatty() else text).removesuffix("\n")


SPECIAL: dict[str, Callable[[Any], str]] = {
    "sync": of_sync,
    "rebuild": of_sync,
    "status": of_status,
    "diff": of_diff,
    "read": of_read,
}
