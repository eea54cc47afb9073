"""Memories in a file of JSON: an object a line, or one list of them. Read as often as is asked, and never changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.mirror.memories import Link
from notebook_sync.notes.memories.importing.columns import KNOWN

LONGEST_LINE = 64 << 20
_LARGEST_LIST = 512 << 20
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Found:
    """One record: its line, or its number in a list or table; what it says, None where `error` tells why it cannot be
    read; and as what it stands there, to be kept where nothing can be made of it."""

    line: int
    fields: Mapping[str, Any] | None
    raw: bytes
    error: str = ""


@dataclass(frozen=True, slots=True)
class Beside:
    """What an export says of its memories beside their records, by their ids there. `untold` is in it, and nowhere
    else: what has no place in a notebook."""

    links: Mapping[str, Sequence[Link]] = field(default_factory=dict)
    untold: tuple[str, ...] = ()


class JsonLines:
    """An export of JSON lines. Raises UsageError for what is none."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.beside = Beside()

    def records(self) -> Iterator[Found]:
        """Every record, in order. Blank lines are none."""
        with self._file.open("rb") as opened:
            number = 0
            while line := opened.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise UsageError(
                        f"{self._file}: line {number:,} is longer than {LONGEST_LINE:,} bytes; part the file"
                    )
                line = line.removeprefix(_BOM) if number == 1 else line
                if line.strip():
                    yield _found(number, line)


class JsonList:
    """An export that is one list, or an object with one. Raises UsageError for what is none."""

    def __init__(self, file: Path, whole: Any) -> None:
        lists = [one for one in whole.values() if isinstance(one, list)] if isinstance(whole, dict) else [whole]
        if len(lists) != 1:
            raise UsageError(f"{file} holds {len(lists):,} lists, not one of memories; give JSON lines of them")
        others = [name for name, value in whole.items() if value is not lists[0]] if isinstance(whole, dict) else []
        self._records: list[Any] = lists[0]
        self.beside = Beside(untold=tuple(f"{name!r}, beside the list of memories" for name in others))

    def records(self) -> Iterator[Found]:
        """Every record, in order."""
        for number, value in enumerate(self._records, 1):
            error = _twice_in(value) if isinstance(value, dict) else _NO_RECORD
            raw = (_written(value) if isinstance(value, dict) and error else json.dumps(value)).encode()
            yield Found(number, None if error else value, raw, error)


def open_json(file: Path) -> JsonLines | JsonList:
    """The export in a file of JSON: lines, unless all of it is one list, or one object with a list of objects. Raises
    UsageError, OSError."""
    with file.open("rb") as opened:
        lines = (line.removeprefix(_BOM).strip() for line in iter(lambda: opened.readline(LONGEST_LINE), b""))
        first, second = next(filter(None, lines), b""), next(filter(None, lines), b"")
    if second and _read(first) is not None:
        return JsonLines(file)
    if second and file.stat().st_size > _LARGEST_LIST:
        return JsonLines(file)
    whole = _read(file.read_bytes().removeprefix(_BOM)) if second else _read(first)
    return JsonList(file, whole) if isinstance(whole, list) or _has_records(whole) else JsonLines(file)


def _read(raw: bytes) -> Any:
    """What JSON says; None where it is none."""
    try:
        whole = json.loads(raw, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None
    return None if isinstance(whole, _Twice) else whole


def _has_records(whole: Any) -> bool:
    """Whether it is an object with a list of objects, and with no column that a record would have."""
    if not isinstance(whole, dict) or whole.keys() & KNOWN:
        return False
    return any(isinstance(each, dict) for one in whole.values() if isinstance(one, list) for each in one)


_NO_RECORD = "it is no JSON object"


def _found(number: int, line: bytes) -> Found:
    try:
        value = json.loads(line, object_pairs_hook=_object)
        error = _twice_in(value) if isinstance(value, dict) else _NO_RECORD
    except (ValueError, RecursionError) as unread:
        return Found(number, None, line, f"it is no JSON: {_reason(unread)}")
    return Found(number, None if error else value, line, error)


class _Twice(dict[str, Any]):
    """An object that names something twice: of two, JSON keeps one in silence."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    return value if len(value) == len(pairs) else _Twice(pairs)


def _twice_in(value: Any) -> str:
    """What is amiss where an object in it names something twice, else ""."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _Twice):
            names = [name for name, _ in one.pairs]
            return f"it names {next(name for name in names if names.count(name) > 1)!r} twice"
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return ""


def _written(value: Any) -> str:
    """The JSON of it, with both of what is named twice."""
    if isinstance(value, dict):
        pairs = value.pairs if isinstance(value, _Twice) else value.items()
        return "{" + ", ".join(f"{json.dumps(name)}: {_written(one)}" for name, one in pairs) + "}"
    return "[" + ", ".join(map(_written, value)) + "]" if isinstance(value, list) else json.dumps(value)


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1:,}"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start:,}"
    return "it nests too deep" if isinstance(error, RecursionError) else str(error)
