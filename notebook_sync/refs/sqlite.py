"""Embedded hot memory, in the same SQLite file as the mirror: the refs, and beside them what `sqlite_memory` holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

from notebook_sync.embedded import NAME, Embedded, from_ms, to_ms
from notebook_sync.files.note import Ref
from notebook_sync.refs.base import Entry, Meaning, Model, Recalled, Told
from notebook_sync.refs.entry import ANNOUNCED, SUMMARY_LIMIT, day_of, entry_for, entry_of_ref, iso, ref_fields
from notebook_sync.refs.ranking import POOL, Candidates, asked_tags, asked_words, behind_told, best_of
from notebook_sync.refs.sqlite_memory import (
    MEMORY_SCHEMA,
    MEMORY_WORDS,
    SqliteMemory,
    as_json,
    memory_vectors,
)
from notebook_sync.refs.sqlite_vectors import LateVectors
from notebook_sync.refs.sqlite_words import LateWords

if TYPE_CHECKING:
    from notebook_sync.refs.base import Embed

_SCHEMA = """
CREATE TABLE IF NOT EXISTS ref (id TEXT PRIMARY KEY, title TEXT NOT NULL, summary TEXT NOT NULL,
    collection TEXT NOT NULL, updated_at INTEGER NOT NULL, status TEXT NOT NULL, version INTEGER NOT NULL,
    digest TEXT NOT NULL, agent TEXT NOT NULL, path TEXT NOT NULL, provenance TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS ref_recent ON ref (updated_at);
"""
_ADDED = (("ref", "provenance", "TEXT NOT NULL DEFAULT ''", ""),)
# So many a recall gives their vectors before it looks: about a second's work.
_AT_ONCE = 10_000
_COLUMNS = (
    *("id", "title", "summary", "collection", "updated_at", "status", "version", "digest", "agent", "path"),
    "provenance",
)
_WORDS = LateWords(
    "ref_words",
    "ref",
    "rowid",
    columns="title, summary",
    indexed=("content",),
    weights=(1.0,),
    texts=lambda row: [f"{row[0]} {row[1]}"],
)


class SqliteRefs(SqliteMemory):
    """`Refs` over one SQLite file, shared by any number of threads and processes."""

    name = NAME

    def __init__(self, path: Path, timezone: tzinfo) -> None:
        columns = ", ".join(f"ref.{column}" for column in _COLUMNS)
        self._memory_vectors = memory_vectors()
        self._ref_vectors = LateVectors("ref", "rowid", columns, _entry)
        late = (MEMORY_WORDS, _WORDS, self._memory_vectors, self._ref_vectors)
        self._db = Embedded(path, MEMORY_SCHEMA + _SCHEMA + "".join(each.schema for each in late), _ADDED)
        self._timezone = timezone

    def write(self, refs: Sequence[Ref], *, announce: bool = True) -> None:
        now = datetime.now(UTC)
        day, at = day_of(now, self._timezone), iso(now)
        with self._db.writing() as connection:
            free = max(_WORDS.free_number(connection), self._ref_vectors.free_number(connection))
            written = [ref for ref in refs if not ref.deleted and ref.action != "opened"]
            connection.executemany(
                f"INSERT OR REPLACE INTO ref (rowid, {', '.join(_COLUMNS)}) VALUES (?{', ?' * len(_COLUMNS)})",
                [[free + n, *_row(ref)] for n, ref in enumerate(written)],
            )
            connection.executemany("DELETE FROM ref WHERE id = ?", [(ref.id,) for ref in refs if ref.deleted])
            if announce:
                connection.executemany(
                    "INSERT INTO daily (day, entry) VALUES (?, ?)",
                    [(day, as_json(entry_for(ref, at))) for ref in refs if ref.action in ANNOUNCED],
                )

    def get(self, note_id: str) -> dict[str, Any] | None:
        return self.get_many([note_id]).get(note_id)

    def get_many(self, note_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        found = self._db.rows_in(f"SELECT {', '.join(_COLUMNS)} FROM ref WHERE id IN ({{marks}})", note_ids)
        return {row[0]: ref_fields(_ref(row)) for row in found}

    def digests(self) -> Iterator[tuple[str, str, int]]:
        yield from self._db.rows("SELECT id, digest, version FROM ref ORDER BY id")

    def recent(self, limit: int = 20) -> list[dict[str, Any]]:
        newest = f"SELECT {', '.join(_COLUMNS)} FROM ref ORDER BY updated_at DESC, id LIMIT ?"
        return [ref_fields(_ref(row)) for row in self._db.rows(newest, (max(limit, 0),))]

    def owner(self) -> str:
        return self._meta("refs_owner")

    def adopt(self, store_id: str, keep: Iterable[str]) -> None:
        told = [note_id for note_id, _, _ in self.digests()]
        kept = set(keep)
        orphans = [(note_id,) for note_id in told if note_id not in kept]
        with self._db.writing() as connection:
            connection.executemany("DELETE FROM ref WHERE id = ?", orphans)
            _set_meta(connection, "refs_owner", store_id)

    def note_loss(self, at: datetime) -> None:
        with self._db.writing() as connection:
            _set_meta(connection, "refs_lost", str(to_ms(at)))

    def lost(self) -> datetime | None:
        at = self._meta("refs_lost")
        return from_ms(int(at)) if at else None

    def recall(
        self,
        query: str,
        *,
        tags: Sequence[str] = (),
        since: datetime | None = None,
        limit: int = 10,
        now: datetime,
        meaning: Meaning | None = None,
        told: Told | None = None,
    ) -> Recalled:
        if limit < 1:
            return Recalled([])
        asked = asked_words(query)
        wanted = asked_tags(tags)
        if meaning and asked and meaning.embed:
            self.embed(meaning.model, meaning.embed, _AT_ONCE)
        meant = meaning if asked else None
        found = self._remembered(asked, wanted, since, meant) + self._refs(asked, wanted, since, meant)
        results = best_of(found, query, tags=tags, since=since, limit=limit, now=now, meaning=meant, told=told)
        return Recalled(results, behind_told(self._behind(meant.model)) if meant else "")

    def embed(self, model: Model, embed: Embed, limit: int) -> int:
        done = self._memory_vectors.catch_up(self._db, model, embed, limit)
        return done + self._ref_vectors.catch_up(self._db, model, embed, limit - done)

    def close(self) -> None:
        self._db.close()

    def _meta(self, name: str) -> str:
        found = self._db.rows("SELECT value FROM meta WHERE name = ?", (name,))
        return str(found[0][0]) if found else ""

    def _behind(self, model: Model) -> int:
        return sum(each.behind(self._db, model) for each in (self._memory_vectors, self._ref_vectors))

    def _refs(
        self, asked: Sequence[str], tags: Sequence[str], since: datetime | None, meaning: Meaning | None
    ) -> Candidates:
        """Candidates among the refs."""
        conditions = [f"ref.collection IN ({', '.join('?' * len(tags))})"] if tags else []
        values: list[Any] = [*tags]
        if since is not None:
            conditions.append("ref.updated_at >= ?")
            values.append(to_ms(since))
        condition = " AND ".join(conditions) or "1"
        columns = ", ".join(["ref.rowid", *(f"ref.{column}" for column in _COLUMNS)])
        if asked:
            found = _WORDS.candidates(self._db, asked, columns, condition, values)
        else:
            newest = f"SELECT {columns} FROM ref WHERE {condition} ORDER BY updated_at DESC LIMIT {POOL}"
            found = iter(self._db.rows(newest, values))
        rows = {number: row for number, *row in found}
        return self._ref_vectors.candidates(self._db, rows, meaning, condition, values)


def _entry(row: Sequence[Any]) -> Entry:
    return entry_of_ref(ref_fields(_ref(row)))


def _row(ref: Ref) -> list[Any]:
    """A ref's columns. What its hash repeats for recall is made again when it is read."""
    row = [getattr(ref, column) for column in _COLUMNS]
    row[2] = ref.summary[:SUMMARY_LIMIT]
    row[4] = to_ms(ref.updated_at)
    row[-1] = ref.provenance or ""
    return row


def _ref(row: Any) -> Ref:
    fields = dict(zip(_COLUMNS, row, strict=True))
    return Ref(**{**fields, "updated_at": from_ms(fields["updated_at"]), "provenance": fields["provenance"] or None})


def _set_meta(connection: Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
