"""The lines of an archive: what a store holds of notes, stream and checkpoints, as JSON. Pure.

Who wrote a line is not known when it is read: what is not as it was written is refused, and reaches no store.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import IO, Any, NoReturn

from notebook_sync.files.note import HISTORY_LIMIT, Seed
from notebook_sync.mirror.base import Document
from notebook_sync.mirror.document import to_milliseconds
from notebook_sync.refs.base import Checkpoint, Entry

LARGEST_LINE = 64 << 20
_LARGEST_VERSION = 2**31 - 1
_CRUMB = {"version", "timestamp", "summary", "changed_by"}
_CHECKPOINT = re.compile(r"[0-9A-Za-z-]{1,64}")
_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?")

Line = dict[str, Any]


def line_of(told: Mapping[str, Any]) -> bytes:
    """One line: the same for the same values."""
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def row_of(document: Document) -> Line:
    """What the file of a note does not say of it."""
    metadata = document["metadata"]
    return {
        "id": document["id"],
        "wants": document["wants"],
        "path": document["path"],
        "version": metadata["version"],
        "created_at": metadata["created_at"].isoformat(),
        "created_from": metadata["created_from"],
        "history": [{**crumb, "timestamp": crumb["timestamp"].isoformat()} for crumb in document["history"]],
    }


def seed_from(row: Line) -> Seed:
    """The past of a note, from its row."""
    history = tuple({**crumb, "timestamp": _time(crumb["timestamp"])} for crumb in row["history"])
    return Seed(row["version"], _time(row["created_at"]), history, row["created_from"])


def lines_in(file: IO[bytes], checked: Callable[[Line], Line]) -> Iterator[tuple[int, Line]]:
    """Each line of a file with its place in it, checked. Raises ValueError naming the line."""
    number = 0
    while True:
        place = file.tell()
        raw = file.readline(LARGEST_LINE + 1)
        if not raw:
            return
        number += 1
        try:
            yield place, checked(_object_in(raw))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
            raise ValueError(f"line {number} is not as it was written ({error})") from None


def checked_row(told: Line) -> Line:
    """A line of mirror.jsonl. Raises ValueError, TypeError or KeyError where it is none, as all of these do."""
    _must(all(_is_text(told[name]) for name in ("id", "wants", "path")) and told["created_from"] in _SOURCES)
    _must(_is_version(told["version"]) and len(told["history"]) <= HISTORY_LIMIT)
    for crumb in told["history"]:
        _must(set(crumb) == _CRUMB and _is_version(crumb["version"]))
        _must(_is_text(crumb["summary"]) and _is_text(crumb["changed_by"]))
        _time(crumb["timestamp"])
    _time(told["created_at"])
    return told


def checked_told(told: Line) -> Line:
    """A line of stream.jsonl: `{day, entry}`."""
    date.fromisoformat(told["day"])
    checked_entry(told["entry"])
    return told


def checked_entry(told: Line) -> Entry:
    """A line of longterm.jsonl."""
    _must(all(_is_text(told[name]) for name in ("id", "content", "source")))
    _must(
        isinstance(told["score"], int | float) and isinstance(told["tags"], list) and all(map(_is_text, told["tags"]))
    )
    _must(all(_is_text(told.get(name, "")) for name in ("action", "agent", "provenance")))
    _must(all(_is_text(value) for value in told.get("ref", {}).values()))
    _time(told["timestamp"])
    return told


def checked_checkpoint(told: Line) -> Checkpoint:
    """A line of checkpoints.jsonl."""
    _must(_CHECKPOINT.fullmatch(told["id"]) and _is_text(told["name"]) and _COMMIT.fullmatch(told["commit"]))
    _time(told["at"])
    for note in told["notebook"]:
        _must(all(_is_text(value) for name, value in note.items() if name != "version"))
        _must(_is_text(note["id"]) and _is_version(note["version"]))
    for day, entries in told["days"].items():
        date.fromisoformat(day)
        for entry in entries:
            checked_entry(entry)
    for entry in told["longterm"]:
        checked_entry(entry)
    return told


_SOURCES = frozenset({"file", "git", "frontmatter"})


def _object_in(raw: bytes) -> Line:
    _must(raw.endswith(b"\n"))
    told = json.loads(raw, parse_constant=_refuse)
    _must(isinstance(told, dict))
    if b"\\u" in raw:
        line_of(told)  # half of a character that takes two is in no store
    line: Line = told
    return line


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _must(so: object) -> None:
    if not so:
        raise ValueError("a value of another kind")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_version(value: object) -> bool:
    return type(value) is int and 0 < value <= _LARGEST_VERSION


def _time(text: str) -> datetime:
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError("a time without a zone")
    return to_milliseconds(when)
