"""Embedded hot memory: the refs and the daily stream in the same SQLite file as the mirror."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from notebook_sync.embedded import NAME, Embedded
from notebook_sync.files.note import Ref
from notebook_sync.refs.base import Entry
from notebook_sync.refs.entry import ANNOUNCED, SUMMARY_LIMIT, entry_for, once_each, ref_fields

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ref (id TEXT PRIMARY KEY, title TEXT NOT NULL, summary TEXT NOT NULL,
    collection TEXT NOT NULL, updated_at INTEGER NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL,
    digest TEXT NOT NULL, agent TEXT NOT NULL, path TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS ref_recent ON ref (updated_at);
CREATE TABLE IF NOT EXISTS daily (n INTEGER PRIMARY KEY, day TEXT NOT NULL, entry TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS daily_day ON daily (day);
"""
_COLUMNS = ("id", "title", "summary", "collection", "updated_at", "status", "version", "digest", "agent", "path")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SqliteRefs:
    """`Refs` over one SQLite file, shared by any number of threads and processes."""

    name = NAME

    def __init__(self, path: Path, timezone: tzinfo) -> None:
        self._db = Embedded(path, _SCHEMA)
        self._timezone = timezone

    def write(self, refs: Sequence[Ref], *, announce: bool = True) -> None:
        now = datetime.now(UTC)
        day = now.astimezone(self._timezone).date().isoformat()
        with self._db.writing() as connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO ref ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})",
                [_row(ref) for ref in refs if not ref.deleted],
            )
            connection.executemany("DELETE FROM ref WHERE id = ?", [(ref.id,) for ref in refs if ref.deleted])
            if announce:
                connection.executemany(
                    "INSERT INTO daily (day, entry) VALUES (?, ?)",
                    [(day, _json(entry_for(ref, now))) for ref in refs if ref.action in ANNOUNCED],
                )

    def get(self, note_id: str) -> dict[str, Any] | None:
        found = self._db.rows(f"SELECT {', '.join(_COLUMNS)} FROM ref WHERE id = ?", (note_id,))
        return ref_fields(_ref(found[0])) if found else None

    def digests(self) -> Iterator[tuple[str, str, int]]:
        yield from self._db.rows("SELECT id, digest, version FROM ref ORDER BY id")

    def recent(self, limit: int = 20) -> list[dict[str, Any]]:
        newest = f"SELECT {', '.join(_COLUMNS)} FROM ref ORDER BY updated_at DESC, id LIMIT ?"
        return [ref_fields(_ref(row)) for row in self._db.rows(newest, (max(limit, 0),))]

    def day(self, day: str) -> list[Entry]:
        return once_each(
            [json.loads(e) for (e,) in self._db.rows("SELECT entry FROM daily WHERE day = ? ORDER BY n", (day,))]
        )

    def owner(self) -> str:
        found = self._db.rows("SELECT value FROM meta WHERE name = 'refs_owner'")
        return str(found[0][0]) if found else ""

    def adopt(self, store_id: str, keep: Iterable[str]) -> None:
        told = [note_id for note_id, _, _ in self.digests()]
        kept = set(keep)
        orphans = [(note_id,) for note_id in told if note_id not in kept]
        with self._db.writing() as connection:
            connection.executemany("DELETE FROM ref WHERE id = ?", orphans)
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('refs_owner', ?)", (store_id,))

    def close(self) -> None:
        self._db.close()


def _row(ref: Ref) -> list[Any]:
    """A ref's columns. What its hash repeats for recall is made again when it is read."""
    row = [getattr(ref, column) for column in _COLUMNS]
    row[2] = ref.summary[:SUMMARY_LIMIT]
    row[4] = (ref.updated_at - _EPOCH) // timedelta(milliseconds=1)
    return row


def _ref(row: Any) -> Ref:
    fields = dict(zip(_COLUMNS, row, strict=True))
    return Ref(**{**fields, "updated_at": _EPOCH + timedelta(milliseconds=fields["updated_at"])})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
