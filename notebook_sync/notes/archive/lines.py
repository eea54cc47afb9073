"""The lines of an archive: what a store holds of notes, facts, stream and checkpoints, as JSON. Pure.

Who wrote a line is not known when it is read: what is not as it was written is refused, and reaches no store.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import IO, Any, NoReturn

from notebook_sync.files.facts import id_of
from notebook_sync.files.note import HISTORY_LIMIT, Seed
from notebook_sync.mirror.base import Document
from notebook_sync.mirror.document import to_milliseconds
from notebook_sync.mirror.facts import HISTORY_LIMIT as FACT_HISTORY_LIMIT
from notebook_sync.mirror.facts import Fact
from notebook_sync.mirror.memories import Memory
from notebook_sync.mirror.sqlite_rows import from_json, to_json
from notebook_sync.notes.archive.format import CHECKPOINTS, FACTS, LONGTERM, MIRROR, STREAM, USE
from notebook_sync.refs.base import Checkpoint, Entry

LARGEST_LINE = 64 << 20
_LARGEST_VERSION = 2**31 - 1
_CRUMB = {"version", "timestamp", "summary", "changed_by"}
_CHECKPOINT = re.compile(r"[0-9A-Za-z-]{1,64}")
_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})?")

Line = dict[str, Any]


def line_of(told: Mapping[str, Any], checked: Callable[[Line], Line]) -> bytes:
    """One line: the same for the same values. Raises ValueError with the reason where no import would take it."""
    raw = _raw(told)
    if len(raw) > LARGEST_LINE:
        raise ValueError(f"it has {len(raw):,} bytes, more than {LARGEST_LINE:,}")
    _checked(raw, checked)
    return raw


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
    history = tuple({**crumb, "timestamp": _time(crumb["timestamp"], "timestamp")} for crumb in row["history"])
    return Seed(row["version"], _time(row["created_at"], "created_at"), history, row["created_from"])


def fact_line(fact: Fact) -> Line:
    """What the file of a fact does not say of it. Its vector is made anew, as those of notes are."""
    return {
        "id": fact.note_id,
        "content": fact.content,
        "path": fact.path,
        "section": fact.section,
        "line": fact.line,
        "importance": fact.unpinned,
        "decay_rate": fact.decay_rate,
        "access_count": fact.access_count,
        "last_accessed": _told_time(fact.last_accessed),
        "created_at": fact.created_at.isoformat(),
        "updated_at": fact.updated_at.isoformat(),
        "gone_at": _told_time(fact.gone_at),
        "metadata": json.loads(to_json(dict(fact.metadata))),
        "history": json.loads(to_json([dict(event) for event in fact.source_history])),
    }


def fact_from(line: Line) -> Fact:
    """The row of a fact, from its line."""
    return Fact(
        line["id"],
        line["content"],
        _time(line["created_at"], "created_at"),
        _time(line["updated_at"], "updated_at"),
        line["section"],
        line["path"],
        line["line"],
        float(line["importance"]),
        unpinned=float(line["importance"]),
        decay_rate=float(line["decay_rate"]),
        access_count=line["access_count"],
        last_accessed=_time_or_none(line["last_accessed"], "last_accessed"),
        metadata=from_json(_text_of(line["metadata"])),
        source_history=tuple(from_json(_text_of(line["history"]))),
        gone_at=_time_or_none(line["gone_at"], "gone_at"),
    )


def use_line(memory: Memory) -> Line:
    """How a memory was used."""
    used = _told_time(memory.last_accessed)
    return {"id": memory.id, "accesses": memory.accesses, "last_accessed": used, "score": memory.score}


def use_from(line: Line) -> tuple[str, int, datetime | None]:
    """How a memory was used, as `MemoryRows.restore_usage` takes it."""
    return line["id"], line["accesses"], _time_or_none(line["last_accessed"], "last_accessed")


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
            yield place, _checked(raw, checked)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None


def checked_row(told: Line) -> Line:
    """A line of mirror.jsonl. Raises ValueError, TypeError or KeyError where it is none, as all of these do."""
    for name in ("id", "wants", "path"):
        _text(told[name], name)
    _must(told["created_from"] in _SOURCES, "created_from", f"one of {', '.join(sorted(_SOURCES))}")
    _number(told["version"], "version", 1)
    _must(len(told["history"]) <= HISTORY_LIMIT, "history", f"at most {HISTORY_LIMIT} crumbs")
    for crumb in told["history"]:
        _must(set(crumb) == _CRUMB, "history", f"crumbs of {', '.join(sorted(_CRUMB))}")
        _number(crumb["version"], "history.version", 1)
        for name in ("summary", "changed_by"):
            _text(crumb[name], f"history.{name}")
        _time(crumb["timestamp"], "history.timestamp")
    _time(told["created_at"], "created_at")
    return told


def checked_told(told: Line) -> Line:
    """A line of stream.jsonl: `{day, entry}`."""
    _day(told["day"], "day")
    checked_entry(told["entry"])
    return told


def checked_entry(told: Line) -> Entry:
    """A line of longterm.jsonl."""
    for name in ("id", "content", "source"):
        _text(told[name], name)
    _must(isinstance(told["score"], int | float), "score", "a number")
    _must(isinstance(told["tags"], list), "tags", "a list")
    for tag in told["tags"]:
        _text(tag, "tags")
    for name in ("action", "agent", "provenance"):
        _text(told.get(name, ""), name)
    for name, value in told.get("ref", {}).items():
        _text(value, f"ref.{name}")
    _time(told["timestamp"], "timestamp")
    return told


def checked_checkpoint(told: Line) -> Checkpoint:
    """A line of checkpoints.jsonl."""
    _text(told["id"], "id")
    _must(_CHECKPOINT.fullmatch(told["id"]), "id", "letters, digits and hyphens")
    _text(told["name"], "name")
    _text(told["commit"], "commit")
    _must(_COMMIT.fullmatch(told["commit"]), "commit", "the id of a commit, or empty")
    _text(told.get("created_by", ""), "created_by")
    _time(told["at"], "at")
    for note in told["notebook"]:
        for name in ("id", *(name for name in note if name != "version")):
            _text(note[name], f"notebook.{name}")
        _number(note["version"], "notebook.version", 0)  # of a note that the mirror had not seen yet
    for day, entries in told["days"].items():
        _day(day, "days")
        for entry in entries:
            checked_entry(entry)
    for entry in told["longterm"]:
        checked_entry(entry)
    return told


def checked_fact(told: Line) -> Line:
    """A line of facts.jsonl."""
    for name in ("id", "content", "path", "section"):
        _text(told[name], name)
    _must(told["content"].strip() and told["id"] == id_of(told["content"]), "id", "that of its text")
    _must("\0" not in told["path"], "path", "a path")
    _fraction(told["importance"], "importance")
    _must(_is_number(told["decay_rate"]) and told["decay_rate"] >= 0, "decay_rate", "a number that is not negative")
    for name in ("access_count", "line"):
        _number(told[name], name, 0)
    _must(isinstance(told["metadata"], dict), "metadata", "an object")
    _must(len(told["history"]) <= FACT_HISTORY_LIMIT, "history", f"at most {FACT_HISTORY_LIMIT} events")
    fact = fact_from(told)
    _must(isinstance(fact.metadata, dict), "metadata", "an object")  # a time is one in the line
    for value in (fact.metadata, *fact.source_history):
        _must(_fits(value), "metadata, history", "whole numbers of 64 bits")
    for event in fact.source_history:
        _text(event["action"], "history.action")
        _must(isinstance(event["at"], datetime), "history.at", "a time")
        _fraction(event["importance"], "history.importance")
    return told


def _fits(value: object) -> bool:
    """Whether every store can hold the numbers in it."""
    if isinstance(value, dict):
        return all(map(_fits, value.values()))
    if isinstance(value, list):
        return all(map(_fits, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def checked_use(told: Line) -> Line:
    """A line of use.jsonl."""
    _text(told["id"], "id")
    _number(told["accesses"], "accesses", 0)
    if told["score"] is not None:
        _fraction(told["score"], "score")
    use_from(told)
    return told


CHECKS: Mapping[str, Callable[[Line], Line]] = {
    MIRROR: checked_row,
    STREAM: checked_told,
    LONGTERM: checked_entry,
    CHECKPOINTS: checked_checkpoint,
    FACTS: checked_fact,
    USE: checked_use,
}
"""By the name of a file with lines, what makes sure of one."""

_SOURCES = frozenset({"file", "git", "frontmatter"})


def _raw(told: Mapping[str, Any]) -> bytes:
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _checked(raw: bytes, checked: Callable[[Line], Line]) -> Line:
    try:
        return checked(_object_in(raw))
    except KeyError as error:
        raise ValueError(f"it has no {error}") from None
    except (TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"a value in it is of another kind: {error}") from None


def _object_in(raw: bytes) -> Line:
    if not raw.endswith(b"\n"):
        raise ValueError("it is cut off, or too long")
    told = json.loads(raw, parse_constant=_refuse)
    if not isinstance(told, dict):
        raise TypeError("it is no JSON object")
    if b"\\u" in raw:
        _raw(told)  # half of a character that takes two is in no store
    return told


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _must(so: object, field: str, what: str) -> None:
    if not so:
        raise ValueError(f"its {field!r} is not {what}")


def _text(value: object, field: str) -> None:
    _must(isinstance(value, str), field, "text")


def _number(value: object, field: str, lowest: int) -> None:
    _must(type(value) is int and lowest <= value <= _LARGEST_VERSION, field, f"a whole number from {lowest} on")


def _is_number(value: object) -> bool:
    return type(value) in {int, float} and math.isfinite(value)  # type: ignore[arg-type]  # asked for just before


def _fraction(value: Any, field: str) -> None:
    _must(_is_number(value) and 0 <= value <= 1, field, "a number from 0 to 1")


def _day(value: str, field: str) -> None:
    try:
        date.fromisoformat(value)
    except (ValueError, TypeError):
        raise ValueError(f"its {field!r} is not a day, as 2026-02-18") from None


def _time(text: str, field: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
        if when.tzinfo is not None:
            return to_milliseconds(when)
    except (ValueError, TypeError, OverflowError):
        pass
    raise ValueError(f"its {field!r} is not a time with its zone, as 2026-02-18T10:30:00+00:00")


def _told_time(when: datetime | None) -> str | None:
    return when.isoformat() if when else None


def _time_or_none(text: str | None, field: str) -> datetime | None:
    return None if text is None else _time(text, field)


def _text_of(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
