"""Rows of facts in the embedded file, beside the mirror's. Each change of what stands where is one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

from notebook_sync.embedded import NAME, Embedded, from_ms, to_ms
from notebook_sync.mirror.fact_change import after, merged, weighed
from notebook_sync.mirror.fact_store import FactStore, moment, must_be_change, must_be_importance, must_be_whole
from notebook_sync.mirror.facts import DECAY_RATE, Change, Embedding, Fact, Place, Source
from notebook_sync.mirror.sqlite_rows import from_json, to_json

if TYPE_CHECKING:
    from notebook_sync.mirror.facts import Vector

_SCHEMA = """
CREATE TABLE IF NOT EXISTS fact (
    note_id TEXT PRIMARY KEY, content TEXT NOT NULL, importance REAL NOT NULL, decay_rate REAL,
    access_count INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
    last_accessed INTEGER, metadata TEXT NOT NULL DEFAULT '{}', history TEXT NOT NULL DEFAULT '[]',
    section TEXT NOT NULL DEFAULT '', path TEXT NOT NULL DEFAULT '', line INTEGER NOT NULL DEFAULT 0,
    gone_at INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fact_source (path TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fact_place (
    path TEXT NOT NULL, note_id TEXT NOT NULL, section TEXT NOT NULL, line INTEGER NOT NULL, pin REAL,
    PRIMARY KEY (path, note_id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS fact_place_of ON fact_place (note_id);
CREATE TABLE IF NOT EXISTS fact_vector (
    note_id TEXT PRIMARY KEY, model TEXT NOT NULL, vector BLOB NOT NULL) WITHOUT ROWID;
"""
_NOTHING = "{}"
_ROWS = """SELECT note_id, content, importance, decay_rate, access_count, created_at, updated_at, last_accessed,
    metadata, history, section, path, line, gone_at FROM fact"""
_PLACES = "SELECT note_id, path, section, line, pin FROM fact_place"
_PUT = "INSERT OR REPLACE INTO fact VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_USED = """UPDATE fact SET access_count = access_count + 1, last_accessed = max(coalesce(last_accessed, ?1), ?1)
    WHERE note_id = ?2"""
_UNKNOWN = "UPDATE fact_source SET digest = '' WHERE path IN (SELECT path FROM fact_place WHERE note_id = ?)"
# What somebody brought back meanwhile keeps its row: else it had none until its file changes.
_NOWHERE = "NOT EXISTS (SELECT 1 FROM fact_place WHERE fact_place.note_id = ?1)"
_GONE = "gone_at < ? AND NOT EXISTS (SELECT 1 FROM fact_place WHERE fact_place.note_id = fact.note_id)"


class SqliteFacts(FactStore):
    """`FactRows` over one SQLite file, shared by any number of threads and processes."""

    name = NAME

    def __init__(self, path: Path, embedder: Embedding | None = None, decay_rate: float = DECAY_RATE) -> None:
        super().__init__(embedder, decay_rate)
        self._db = Embedded(path, _SCHEMA)

    def upsert_note(self, fact: Fact) -> Fact:
        wanted = must_be_whole(fact)
        with self._db.writing() as connection:
            self._put(connection, wanted)
        return self.get_many([fact.note_id])[fact.note_id]

    def increment_access(self, *note_ids: str, at: datetime | None = None) -> int:
        when = to_ms(moment(at))
        with self._db.writing() as connection:
            return sum(
                connection.execute(_USED, (when, note_id)).rowcount for note_id in dict.fromkeys(map(_known, note_ids))
            )

    def update_importance(
        self,
        note_id: str,
        importance: float | None = None,
        *,
        by: float = 0.0,
        action: str = "weighed",
        actor: str = "",
        at: datetime | None = None,
    ) -> Fact | None:
        wanted = None if importance is None else must_be_importance(importance)
        change, when = must_be_change(by), moment(at)
        found = self._rewrite(note_id, lambda row: weighed(row, wanted, change, action, when, actor))
        return self.get_note(note_id) if found else None

    def bulk_update_importance(self, importances: Mapping[str, float], *, at: datetime | None = None) -> int:
        wanted = {note_id: must_be_importance(importance) for note_id, importance in importances.items()}
        when = moment(at)
        with self._db.writing() as connection:
            rows = self._rows_now(connection, wanted)
            for note_id, row in rows.items():
                self._put(connection, weighed(row, wanted[note_id], 0.0, "weighed", when))
        return len(rows)

    def merge_notes(self, keep: str, drop: str, *, by: float = 0.05, at: datetime | None = None) -> Fact | None:
        change, when = must_be_change(by), moment(at)
        with self._db.writing() as connection:
            rows = self._rows_now(connection, {keep, drop})
            if len(rows) < 2:
                return None
            self._put(connection, merged(rows[keep], rows[drop], change, when))
            self._forget(connection, drop)
        return self.get_note(keep)

    def delete_note(self, note_id: str) -> bool:
        with self._db.writing() as connection:
            return self._forget(connection, note_id)

    def clear_all(self) -> int:
        with self._db.writing() as connection:
            for table in ("fact_place", "fact_source", "fact_vector"):
                connection.execute(f"DELETE FROM {table}")
            return connection.execute("DELETE FROM fact").rowcount

    def put_vectors(self, model: str, vectors: Mapping[str, Vector]) -> None:
        packed = [(note_id, model, vector.astype("<f4").tobytes()) for note_id, vector in vectors.items()]
        with self._db.writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO fact_vector SELECT ?1, ?2, ?3 WHERE EXISTS "
                "(SELECT 1 FROM fact WHERE note_id = ?1)",
                packed,
            )

    def vectors(self, model: str) -> Mapping[str, Vector]:
        import numpy as np

        found = self._db.rows("SELECT note_id, vector FROM fact_vector WHERE model = ?1 OR ?1 = ''", (model,))
        return {note_id: np.frombuffer(vector, "<f4").astype(np.float32) for note_id, vector in found}

    def sources(self) -> dict[str, str]:
        return dict(self._db.rows("SELECT path, digest FROM fact_source"))

    def apply(self, sources: Sequence[Source], changes: Sequence[Change]) -> bool:
        with self._db.writing() as connection:
            known = dict(connection.execute("SELECT path, digest FROM fact_source"))
            if any(known.get(source.path, "") != source.base for source in sources):
                return False
            for source in sources:
                _place(connection, source)
            ids = {change.note_id for change in changes} | {change.was for change in changes}
            rows = self._rows_now(connection, ids)
            for change in changes:
                rows[change.note_id] = after(
                    rows.get(change.note_id), change, rows.get(change.was), decay_rate=self._decay_rate
                )
                self._put(connection, rows[change.note_id])
            ended = [(change.was,) for change in changes if change.was]
            for table in ("fact_vector", "fact"):
                connection.executemany(f"DELETE FROM {table} WHERE note_id = ?1 AND {_NOWHERE}", ended)
        return True

    def prune(self, before: datetime) -> int:
        with self._db.writing() as connection:
            when = to_ms(moment(before))
            connection.execute(
                f"DELETE FROM fact_vector WHERE note_id IN (SELECT note_id FROM fact WHERE {_GONE})", (when,)
            )
            return connection.execute(f"DELETE FROM fact WHERE {_GONE}", (when,)).rowcount

    def close(self) -> None:
        self._db.close()

    def _rows(self, note_ids: Collection[str] | None) -> list[Fact]:
        if note_ids is None:
            return [self._fact(row) for row in self._db.rows(_ROWS)]
        wanted = [_known(note_id) for note_id in note_ids]
        return [self._fact(row) for row in self._db.rows_in(_ROWS + " WHERE note_id IN ({marks})", wanted)]

    def _places(self, note_ids: Collection[str] | None) -> list[Place]:
        if note_ids is None:
            return [Place(*row) for row in self._db.rows(_PLACES)]
        wanted = [_known(note_id) for note_id in note_ids]
        return [Place(*row) for row in self._db.rows_in(_PLACES + " WHERE note_id IN ({marks})", wanted)]

    def _rewrite(self, note_id: str, change: Callable[[Fact], Fact]) -> bool:
        with self._db.writing() as connection:
            rows = self._rows_now(connection, {note_id})
            for row in rows.values():
                self._put(connection, change(row))
        return bool(rows)

    def _rows_now(self, connection: Connection, note_ids: Collection[str]) -> dict[str, Fact]:
        """Inside a transaction, so that nobody changes them before they are written."""
        wanted = json.dumps([_known(note_id) for note_id in note_ids])
        rows = connection.execute(_ROWS + " WHERE note_id IN (SELECT value FROM json_each(?))", (wanted,))
        return {row[0]: self._fact(row) for row in rows}

    def _put(self, connection: Connection, fact: Fact) -> None:
        own_rate = None if fact.decay_rate == self._decay_rate else fact.decay_rate
        used = to_ms(moment(fact.last_accessed)) if fact.last_accessed else None
        gone = to_ms(moment(fact.gone_at)) if fact.gone_at else None
        made, changed = to_ms(moment(fact.created_at)), to_ms(moment(fact.updated_at))
        told = (to_json(dict(fact.metadata)), to_json([dict(event) for event in fact.source_history]))
        values = (fact.note_id, fact.content, fact.unpinned, own_rate, fact.access_count, made, changed, used, *told)
        connection.execute(_PUT, (*values, fact.section, fact.path, fact.line, gone))

    def _fact(self, row: Any) -> Fact:
        note_id, content, importance, rate, accesses, made, changed, used, metadata, history, *place, gone = row
        section, path, line = place
        return Fact(
            note_id,
            content,
            from_ms(made),
            from_ms(changed),
            section,
            path,
            line,
            importance,
            unpinned=importance,
            decay_rate=self._decay_rate if rate is None else rate,
            access_count=accesses,
            last_accessed=None if used is None else from_ms(used),
            metadata=from_json(metadata) if metadata != _NOTHING else {},
            source_history=tuple(from_json(history)),
            gone_at=None if gone is None else from_ms(gone),
        )

    def _forget(self, connection: Connection, note_id: str) -> bool:
        """End a row. Where its bullet stands, the file is to be read again."""
        connection.execute(_UNKNOWN, (_known(note_id),))
        connection.execute("DELETE FROM fact_vector WHERE note_id = ?", (_known(note_id),))
        return connection.execute("DELETE FROM fact WHERE note_id = ?", (_known(note_id),)).rowcount > 0


def _place(connection: Connection, source: Source) -> None:
    connection.execute("DELETE FROM fact_place WHERE path = ?", (source.path,))
    connection.execute("DELETE FROM fact_source WHERE path = ?", (source.path,))
    if source.digest:
        connection.execute("INSERT INTO fact_source VALUES (?, ?)", (source.path, source.digest))
        connection.executemany(
            "INSERT INTO fact_place VALUES (?, ?, ?, ?, ?)",
            [(place.path, place.note_id, place.section, place.line, place.pin) for place in source.places],
        )


def _known(note_id: str) -> str:
    """An id as it can be asked for: none that a row has holds half a character."""
    return note_id.encode(errors="replace").decode()
