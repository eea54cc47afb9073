"""What other programs wrote in Redis, read when somebody asks, for a moment only, and never stored: lines and hashes in
both shapes of the original designs, as rows of the stream.

They may hold anything. What is missing or no number gets what is usual; no value raises.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AnySet
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, NamedTuple

from notebook_sync.dates import in_utc
from notebook_sync.store.owner import Mark
from notebook_sync.store.rows import Is, Row, both
from notebook_sync.store.tables import clean

if TYPE_CHECKING:
    from notebook_sync.store.index import Index
    from notebook_sync.store.publish import Publisher
    from notebook_sync.store.redis import RedisTarget

UNHEARD = "what other programs wrote in Redis is missing: it does not answer"
_SECONDS = 0.3
# An emptied server gets the stream of so many days; that an older line is missing there says nothing.
REFILL = timedelta(days=30)
_LONGEST, _MOST_TAGS = 8 << 10, 20
_SCORE = 0.5
# Fields of an entry about the note that it names, flat in its line.
OF_NOTE = ("title", "summary", "collection", "status", "updated_at", "version")


class Line(NamedTuple):
    """One line of a day's list: as it is there, and what it says, a text where it is no JSON. `id` is its own, or a
    digest of what it says."""

    id: str
    day: str
    raw: bytes
    value: Any


class Heard(NamedTuple):
    """What Redis has of some days: lines of other programs in their order, hashes of theirs by key, and the ids of our
    lines that another program has cut. `trouble`: why nothing was heard, "" for no server that is set."""

    lines: Sequence[Line] = ()
    hashes: Mapping[str, Mapping[str, str]] = {}
    cut: AnySet[str] = frozenset()
    is_heard: bool = False
    trouble: str = ""

    def rows(self, now: datetime, zone: tzinfo) -> list[Row]:
        """What other programs wrote, hashes first. A line without a time has that of the line before it."""
        today, found, last = now.astimezone(zone).date().isoformat(), list[Row](), dict[str, datetime]()

        def start_of(day: str) -> datetime:
            return datetime.combine(date.fromisoformat(day), time.min, zone).astimezone(UTC)

        for key, fields in self.hashes.items():
            kind, _, rest = key.partition(":")
            id = rest if kind == "longterm" else rest.partition(":")[2]
            value = {**fields, "notebook_id": id} if kind == "notebook" else fields
            row = row_of_other(id or rest, today, value, start_of(today))
            found.append({**row, "is_foreign": True, "kept": kind == "longterm"})
        for line in self.lines:
            row = row_of_other(line.id, line.day, line.value, last.get(line.day) or start_of(line.day))
            last[line.day] = row["at"]
            found.append({**row, "is_foreign": True})
        return found


def hear(
    publisher: Publisher,
    index: Index,
    notebook: str,
    days: Sequence[str],
    *,
    words: Sequence[str] = (),
    with_longterm: bool = False,
    seconds: float = _SECONDS,
) -> Heard:
    """What Redis has of these days, and hashes with these words, or all of long-term memory; nothing of a server that
    another notebook owns, and nothing after so many seconds."""

    def read(target: RedisTarget) -> tuple[Mark | None, dict[str, list[bytes]], dict[str, dict[str, str]]]:
        mark, lists = target.read_days(days)
        if mark is not None and mark.notebook != notebook:
            return mark, {}, {}
        hashes = target.find_hashes(words) if words else {}
        return mark, lists, hashes | (target.read_longterm() if with_longterm else {})

    answer, trouble = publisher.ask("redis", read, seconds)
    if answer is None:
        return Heard(trouble=UNHEARD if trouble else "")
    mark, lists, hashes = answer
    lines = [read_line(raw, day) for day, raws in lists.items() for raw in raws]
    there = {line.id for line in lines}
    known, cut = index.stream.known(there), set[str]()
    if mark is not None:
        lately = Is("at", ">", datetime.now(UTC) - REFILL)
        pushed = both(Is("day", "in", list(lists)), Is("rev", "<=", mark.cursor), lately)
        cut = {id for (id,) in index.stream.tuples(("id",), pushed)} - there
    others = {(line.day, line.id): line for line in lines if line.id not in known}
    return Heard(list(others.values()), hashes, cut, is_heard=True)


def read_line(raw: bytes, day: str) -> Line:
    """A line of a day's list."""
    text = raw.decode(errors="replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    return Line(id_of(value), day, raw, value)


def id_of(value: Any) -> str:
    """What names a line, by what it says."""
    own = value.get("id") if isinstance(value, dict) else None
    return clean(str(own)) if own else hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def raw_of(value: Any) -> bytes:
    """A line that says this."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.encode(errors="replace")


def row_of_other(id: str, day: str, value: Any, before: datetime) -> Row:
    """What a line or a hash says, as a row. `before` is the time of one that gives none."""
    found = value if isinstance(value, Mapping) else {"content": value}
    texts = {name: _text(each) for name, each in found.items() if isinstance(name, str)}
    note, action = texts.get("notebook_id", ""), texts.get("action") or texts.get("status", "updated")
    title, summary = texts.get("title", ""), texts.get("summary", "")
    named = f"[Notebook {action.upper()}] {title}: {summary}" if note or title else ""
    return {
        "id": id,
        "day": day,
        "at": _moment(found, before),
        "content": texts.get("content") or named,
        "source": texts.get("source", "notebook" if note else ""),
        "score": _number(found.get("score")),
        "agent": texts.get("agent", ""),
        "action": action if note else "",
        "note": note,
        "path": texts.get("path", ""),
        "provenance": texts.get("provenance", ""),
        "ref": {name: texts.get(name, "") for name in OF_NOTE} if note else None,
        "tags": _tags(found.get("tags")),
    }


def _text(value: Any) -> str:
    if value is None or isinstance(value, dict | list):
        return ""
    return clean(str(value)[:_LONGEST])


def _tags(value: Any) -> list[str]:
    given = value if isinstance(value, list) else _text(value).split(",")
    return list(dict.fromkeys(filter(None, (_text(each).strip() for each in given))))[:_MOST_TAGS]


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return _SCORE
    return _SCORE if math.isnan(number) else min(max(number, 0.0), 1.0)


def _moment(found: Mapping[str, Any], before: datetime) -> datetime:
    """When it was written: ISO 8601, in UTC where it names no zone, or seconds since 1970."""
    for given in (found.get("timestamp"), found.get("at"), found.get("updated_at")):
        with suppress(ValueError, OverflowError):
            return in_utc(datetime.fromisoformat(str(given)), UTC)
        with suppress(ValueError, OverflowError, OSError):
            return datetime.fromtimestamp(float(str(given)), UTC)
    return before
