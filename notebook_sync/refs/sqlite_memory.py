"""The daily stream, long-term memory and checkpoints of the embedded hot memory."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, tzinfo
from sqlite3 import Connection
from typing import Any

from notebook_sync.embedded import Embedded, to_ms
from notebook_sync.refs.base import Checkpoint, Entry, Meaning, Swap
from notebook_sync.refs.entry import (
    day_of,
    entry_from_json,
    is_logged,
    light_checkpoint,
    newest_first,
    once_each,
    surplus,
)
from notebook_sync.refs.ranking import POOL, Candidates, asked_tags
from notebook_sync.refs.sqlite_vectors import LateVectors
from notebook_sync.refs.sqlite_words import LateWords
from notebook_sync.refs.swapping import swapped

MEMORY_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS daily (n INTEGER PRIMARY KEY, day TEXT NOT NULL, entry TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS daily_day ON daily (day);
CREATE TABLE IF NOT EXISTS memory (n INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, id TEXT NOT NULL,
    at INTEGER NOT NULL, tags TEXT NOT NULL, entry TEXT NOT NULL, UNIQUE (place, id));
CREATE INDEX IF NOT EXISTS memory_at ON memory (at);
CREATE TABLE IF NOT EXISTS checkpoint (id TEXT PRIMARY KEY, light TEXT NOT NULL, whole TEXT NOT NULL);
"""
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_DAILY, _LONGTERM = "daily", "longterm"


def _texts(row: Sequence[Any]) -> Sequence[str]:
    entry = json.loads(row[0])  # by json_extract a text would end at a NUL
    return entry["content"], entry["source"]


def _entry(row: Sequence[Any]) -> Entry:
    entry: Entry = json.loads(row[0])
    return entry


MEMORY_WORDS = LateWords(
    "memory_words", "memory", "n", columns="entry", indexed=("content", "source"), weights=(2.0, 1.0), texts=_texts
)


def memory_vectors() -> LateVectors:
    """Those of what was logged and kept."""
    return LateVectors("memory", "n", "entry", _entry)


class SqliteMemory:
    """What `Refs` holds beside refs. Rows of `memory` get growing numbers that are never given again."""

    _db: Embedded
    _timezone: tzinfo
    _memory_vectors: LateVectors

    def log(self, entry: Entry) -> None:
        with self._db.writing() as connection:
            _append(connection, day_of(entry["timestamp"], self._timezone), [as_json(entry)])
            if is_logged(entry):
                _remember(connection, _DAILY, [entry])

    def keep(self, entry: Entry) -> None:
        with self._db.writing() as connection:
            _remember(connection, _LONGTERM, [entry])

    def day(self, day: str) -> list[Entry]:
        found = self._db.rows("SELECT entry FROM daily WHERE day = ? ORDER BY n", (day,))
        return once_each([entry for (line,) in found if (entry := entry_from_json(line)) is not None])

    def days(self) -> list[str]:
        return [day for (day,) in self._db.rows("SELECT DISTINCT day FROM daily ORDER BY day")]

    def longterm(self) -> list[Entry]:
        found = self._db.rows("SELECT entry FROM memory WHERE place = ? ORDER BY at, id", (_LONGTERM,))
        return [json.loads(entry) for (entry,) in found]

    def restore(self, days: Mapping[str, Swap], longterm: Swap | None = None) -> None:
        with self._db.writing() as connection:
            for day, swap in days.items():
                _swap_day(connection, day, swap)
            if longterm is not None:
                found = connection.execute("SELECT id, entry FROM memory WHERE place = ?", (_LONGTERM,))
                _swap_findable(connection, _LONGTERM, longterm, dict(found.fetchall()))

    def put_checkpoint(self, checkpoint: Checkpoint, *, spare: Collection[str] = ()) -> None:
        with self._db.writing() as connection:
            light = light_checkpoint(checkpoint)
            connection.execute(
                "INSERT OR REPLACE INTO checkpoint (id, light, whole) VALUES (?, ?, ?)",
                (checkpoint["id"], as_json(light), as_json(checkpoint)),
            )
            there = connection.execute("SELECT light FROM checkpoint").fetchall()
            dropped = surplus((json.loads(light) for (light,) in there), spare)
            connection.executemany("DELETE FROM checkpoint WHERE id = ?", [(each,) for each in dropped])

    def checkpoints(self) -> list[dict[str, Any]]:
        return newest_first(json.loads(light) for (light,) in self._db.rows("SELECT light FROM checkpoint"))

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        found = self._db.rows("SELECT whole FROM checkpoint WHERE id = ?", (checkpoint_id,))
        return json.loads(found[0][0]) if found else None

    def _remembered(
        self, asked: Sequence[str], tags: Sequence[str], since: datetime | None, meaning: Meaning | None
    ) -> Candidates:
        """Candidates among what was logged and kept."""
        conditions = [f"({' OR '.join(['instr(memory.tags, ?)'] * len(tags))})"] if tags else []
        values: list[Any] = [f",{tag}," for tag in tags]
        if since is not None:
            conditions.append("memory.at >= ?")
            values.append(to_ms(since))
        condition = " AND ".join(conditions) or "1"
        if asked:
            found = MEMORY_WORDS.candidates(self._db, asked, "n, entry", condition, values)
        else:
            newest = f"SELECT n, entry FROM memory WHERE {condition} ORDER BY at DESC LIMIT {POOL}"
            found = iter(self._db.rows(newest, values))
        rows = {number: row for number, *row in found}
        return self._memory_vectors.candidates(self._db, rows, meaning, condition, values)


def as_json(value: Any) -> str:
    """JSON that SQLite can hold: a lone surrogate is in no text."""
    text = _JSON.encode(value)
    return text if text.isascii() else text.encode(errors="replace").decode()


def _append(connection: Connection, day: str, lines: Sequence[str]) -> None:
    connection.executemany("INSERT INTO daily (day, entry) VALUES (?, ?)", [(day, line) for line in lines])


def _swap_day(connection: Connection, day: str, swap: Swap) -> None:
    lines = [line for (line,) in connection.execute("SELECT entry FROM daily WHERE day = ? ORDER BY n", (day,))]
    wanted = swapped(lines, swap, as_json)
    if wanted != lines:
        connection.execute("DELETE FROM daily WHERE day = ?", (day,))
        _append(connection, day, wanted)
    logged = Swap([entry for entry in swap.there if is_logged(entry)], swap.gone)
    there = (entry for entry in map(entry_from_json, lines) if entry is not None)
    _swap_findable(connection, _DAILY, logged, {entry["id"]: as_json(entry) for entry in there})


def _swap_findable(connection: Connection, place: str, swap: Swap, there: Mapping[str, str]) -> None:
    """Remember what is missing, or says something else and may go. there: the entries by id."""
    wanted = {entry["id"]: entry for entry in swap.there}
    _forget(connection, place, sorted(swap.gone - wanted.keys()))
    stays = {
        entry_id
        for entry_id, text in there.items()
        if entry_id not in swap.gone or (entry_id in wanted and as_json(wanted[entry_id]) == text)
    }
    _remember(connection, place, [entry for entry_id, entry in wanted.items() if entry_id not in stays])


def _remember(connection: Connection, place: str, entries: Sequence[Entry]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO memory (place, id, at, tags, entry) VALUES (?, ?, ?, ?, ?)",
        [
            (place, entry["id"], to_ms(datetime.fromisoformat(entry["timestamp"])), _tags(entry), as_json(entry))
            for entry in entries
        ],
    )


def _forget(connection: Connection, place: str, ids: Sequence[str]) -> None:
    connection.executemany("DELETE FROM memory WHERE place = ? AND id = ?", [(place, entry_id) for entry_id in ids])


def _tags(entry: Entry) -> str:
    return f",{','.join(asked_tags(entry['tags']))},"
