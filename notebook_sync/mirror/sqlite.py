"""The embedded content store. Light columns stand apart from the text, so that listing never reads a note's body."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from notebook_sync.embedded import NAME, Embedded, from_ms
from notebook_sync.files.note import COLLECTIONS, Ref, Stamp
from notebook_sync.mirror import sqlite_rows as rows
from notebook_sync.mirror.base import ALL, Document, Filter, Known, MarkStale, Name, Order, Put, Remove, Touch, Write
from notebook_sync.mirror.document import superseded, unsigned
from notebook_sync.mirror.sqlite_queries import admitting, in_rooms, words_of
from notebook_sync.mirror.sqlite_schema import ADDED, LATER, SCHEMA
from notebook_sync.mirror.sqlite_search import best, counted
from notebook_sync.permissions import room_of
from notebook_sync.settings import PromptSettings

_KNOWN = """id, wants, has_own_id, coalesce(path, ''), digest, size, mtime_ns, ctime_ns, inode, revision, version,
    stale, problems, broken, pending"""
_REF = """id, title, summary, collection, updated_at, status, version, digest, created_by,
    coalesce(path, was_at, '') AS path, pending, serial, event, deleted, nullif(provenance, '') AS provenance"""
_REF_FIELDS = (
    *("id", "title", "summary", "collection", "updated_at", "status", "version", "digest"),
    *("agent", "path", "action", "serial", "event", "deleted", "provenance"),
)
_LIGHT = """id, coalesce(path, '') AS path, collection, title, summary, tags, updated_at, status, created_by,
    word_count, version, provenance, beside, created_at"""
_LIGHT_FIELDS = (
    *("id", "path", "collection", "title", "summary", "tags"),
    *("updated_at", "status", "created_by", "word_count", "version", "provenance", "beside", "created_at"),
)
_ORDERS = {"changed": "updated_at DESC, id", "made": "created_at DESC, updated_at DESC, id"}
_PAGE = 500


class SqliteMirror:
    """`Mirror` over one SQLite file, shared by any number of threads and processes."""

    name = NAME

    def __init__(self, path: Path, settings: PromptSettings | None = None) -> None:
        """`settings` say which files every session is shown a part of, or not every session may read."""
        self._db = Embedded(path, SCHEMA, ADDED, LATER)
        self._room_of = partial(room_of, settings=settings or PromptSettings())
        self._settle(repr(settings))

    def known(self, places: Iterable[str] | None = None) -> list[Known]:
        if places is None:
            return [_known(row) for row in self._db.rows(f"SELECT {_KNOWN} FROM note WHERE NOT deleted")]
        found: dict[str, Known] = {}
        for place in places:
            below = "WHERE NOT deleted" if not place else "WHERE path = ? OR (path >= ? AND path < ?)"
            values = (place, place + "/", place + "0") if place else ()
            for row in self._db.rows(f"SELECT {_KNOWN} FROM note {below}", values):
                found[row[0]] = _known(row)
        return list(found.values())

    def claimants(self, ids: Iterable[str]) -> list[Known]:
        wanted = list(ids)
        by_id = self._db.rows_in(f"SELECT {_KNOWN} FROM note WHERE id IN ({{marks}}) AND NOT deleted", wanted)
        by_wish = self._db.rows_in(
            f"SELECT {_KNOWN} FROM note WHERE wants IN ({{marks}}) AND wants <> id AND NOT deleted", wanted
        )
        return list({row[0]: _known(row) for row in by_id + by_wish}.values())

    def apply(self, writes: Sequence[Write]) -> list[Write]:
        lost: list[Write] = []
        with self._db.writing() as connection:
            batch = rows.Batch(connection, writes, self._room_of)
            for write in writes:
                match write:
                    case Put():
                        won = batch.put(write)
                    case Touch():
                        won = batch.touch(write)
                    case MarkStale():
                        won = batch.mark_stale(write)
                    case Remove():
                        won = batch.remove(write)
                if not won:
                    lost.append(write)
        return lost

    def pending(self, ids: Iterable[str] | None = None) -> list[Ref]:
        where = "(pending <> '' OR deleted)"
        if ids is None:
            return [_ref(row) for row in self._db.rows(f"SELECT {_REF} FROM note WHERE {where} ORDER BY id")]
        statement = f"SELECT {_REF} FROM note WHERE id IN ({{marks}}) AND {where} ORDER BY id"
        return [_ref(row) for row in self._db.rows_in(statement, list(ids))]

    def refs_written(self, refs: Sequence[Ref]) -> list[Ref]:
        with self._db.writing() as connection:
            kept = connection.executemany(
                "UPDATE note SET pending = '' WHERE id = ? AND serial = ? AND NOT deleted",
                [(ref.id, ref.serial) for ref in refs if not ref.deleted],
            )
            gone = [(ref.id, ref.serial) for ref in refs if ref.deleted]
            connection.executemany(
                "DELETE FROM body WHERE n = (SELECT n FROM note WHERE id = ? AND serial = ? AND deleted)", gone
            )
            dropped = connection.executemany("DELETE FROM note WHERE id = ? AND serial = ? AND deleted", gone)
            if max(kept.rowcount, 0) + max(dropped.rowcount, 0) == len(refs):
                return []
        found = self._db.rows_in(f"SELECT {_REF} FROM note WHERE id IN ({{marks}})", [ref.id for ref in refs])
        return superseded(refs, map(_ref, found))

    def refs(self) -> Iterator[Ref]:
        for row in self._paged(f"SELECT {_REF} FROM note WHERE NOT deleted AND id > ? ORDER BY id LIMIT {_PAGE}"):
            yield _ref(row)

    def get(self, note_id: str) -> Document | None:
        return self.get_many([note_id]).get(note_id)

    def get_many(self, ids: Sequence[str]) -> dict[str, Document]:
        statement = f"SELECT {rows.DOCUMENT} FROM note JOIN body USING (n) WHERE id IN ({{marks}}) AND NOT deleted"
        return {row[0]: rows.document_from(row) for row in self._db.rows_in(statement, list(ids))}

    def documents(self) -> Iterator[Document]:
        statement = f"""SELECT {rows.DOCUMENT} FROM note JOIN body USING (n)
            WHERE NOT deleted AND id > ? ORDER BY id LIMIT {_PAGE}"""
        for row in self._paged(statement):
            yield rows.document_from(row)

    def paths(self) -> Iterator[str]:
        # Tombstones have none.
        return (path for (path,) in self._db.rows("SELECT path FROM note WHERE path IS NOT NULL"))

    def names(self) -> Iterator[Name]:
        return map(Name._make, self._db.rows("SELECT path, title, wants FROM note WHERE path IS NOT NULL"))

    def light(self, filter: Filter = ALL, limit: int = 50, by: Order = "changed") -> list[Document]:
        admitted, values = admitting(filter)
        found: dict[str, Any] = {}
        for of_room, bounds in in_rooms(filter):
            # By itself, SQLite might read all that the filter admits, of other rooms too, and sort it.
            is_in_order = bool(of_room) and (by == "changed" or filter.collections == ("channels",))
            index = f"INDEXED BY note_{by}_in_room" if is_in_order else ""
            asked = f"SELECT {_LIGHT} FROM note {index} WHERE {of_room}{admitted} ORDER BY {_ORDERS[by]} LIMIT ?"
            found |= {row[0]: row for row in self._db.rows(asked, (*bounds, *values, max(limit, 0)))}
        moments = [_LIGHT_FIELDS.index(name) for name in ("created_at", "updated_at")[by == "changed" :]]
        in_order = sorted(found.values(), key=lambda row: (*(-row[at] for at in moments), row[0]))
        return [_light(row) for row in in_order[: max(limit, 0)]]

    def light_many(self, ids: Sequence[str], filter: Filter = ALL) -> dict[str, Document]:
        admitted, values = admitting(filter)
        # By id: by an index of the filter's, all that it admits would be read.
        found = self._db.rows(
            f"SELECT {_LIGHT} FROM note WHERE id IN (SELECT value FROM json_each(?)) AND +({admitted})",
            (json.dumps(list(ids)), *values),
        )
        return {row[0]: _light(row) for row in found}

    def search(self, query: str, limit: int = 10, filter: Filter = ALL) -> list[Document]:
        hits = dict(best(self._db, query, limit, filter))
        # The filter once more: by now a number may have come to be another note's.
        admitted, values = admitting(filter)
        is_hit = "n IN (SELECT value FROM json_each(?))"
        # By number: by an index of the filter's, all that it admits would be read.
        found = self._db.rows(
            f"SELECT {_LIGHT}, n FROM note NOT INDEXED WHERE {is_hit} AND {admitted}", (json.dumps(list(hits)), *values)
        )
        rows_by_n = {row[-1]: row for row in found}
        return [{**_light(rows_by_n[n]), "score": score} for n, score in hits.items() if n in rows_by_n]

    def rarities(self, query: str) -> dict[str, float]:
        return {word.text.strip('"'): word.rarity for word in counted(self._db, words_of(query))}

    def counts(self) -> dict[str, int]:
        notes, stale, problems, pending = self._db.rows(
            """SELECT count(*) FILTER (WHERE NOT deleted), count(*) FILTER (WHERE stale <> '' AND NOT deleted),
            count(*) FILTER (WHERE problems AND NOT deleted), count(*) FILTER (WHERE pending <> '' OR deleted)
            FROM note"""
        )[0]
        by_collection = dict(
            self._db.rows("SELECT collection, count(*) FROM note WHERE NOT deleted GROUP BY collection")
        )
        return {
            "notes": notes,
            "stale": stale,
            "problems": problems,
            "pending": pending,
            **{f"collection:{name}": by_collection.get(name, 0) for name in COLLECTIONS},
        }

    def note_count(self) -> int:
        return int(self._db.rows("SELECT count(*) FROM note WHERE NOT deleted")[0][0])

    def store_id(self) -> str:
        asked = "SELECT value FROM meta WHERE name = 'store_id'"
        found = self._db.rows(asked)
        if not found:  # only then: to write means to wait for whoever else writes
            with self._db.writing() as connection:
                connection.execute("INSERT OR IGNORE INTO meta VALUES ('store_id', ?)", (uuid.uuid4().hex,))
            found = self._db.rows(asked)
        return str(found[0][0])

    def close(self) -> None:
        self._db.close()

    def _settle(self, settings: str) -> None:
        """Bring words into the index of the room where their note is by these settings."""
        asked = "SELECT 1 FROM meta WHERE name = 'rooms' AND value = ?"
        if self._db.rows(asked, (settings,)):
            return
        with self._db.writing() as connection:
            for n, path, room in connection.execute("SELECT n, path, room FROM note WHERE NOT deleted").fetchall():
                wanted = "apart" if path is None else self._room_of(path)
                if wanted != room:
                    rows.index_words(connection, n, room, wanted)
                    connection.execute("UPDATE note SET room = ? WHERE n = ?", (wanted, n))
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('rooms', ?)", (settings,))

    def _paged(self, statement: str) -> Iterator[Any]:
        """Rows of a statement with `id > ? … LIMIT`, page by page: no cursor stays open between two rows."""
        last = ""
        while page := self._db.rows(statement, (last,)):
            yield from page
            last = page[-1][0]


def _known(row: Any) -> Known:
    note_id, wants, has_own_id, path, digest, size, mtime, ctime, inode, *rest = row
    stamp = Stamp(size, mtime, ctime, unsigned(inode))
    return Known(note_id, wants, bool(has_own_id), path, digest, stamp, *rest)


def _ref(row: Any) -> Ref:
    found = dict(zip(_REF_FIELDS, row, strict=True))
    return Ref(**{**found, "updated_at": from_ms(found["updated_at"]), "deleted": bool(found["deleted"])})


def _light(row: Any) -> Document:
    light = dict(zip(_LIGHT_FIELDS, row, strict=False))
    beside, created_at = rows.from_json(light.pop("beside")), light.pop("created_at")
    if not light["provenance"]:
        del light["provenance"]
    if light["collection"] == "channels":
        light["created_at"] = from_ms(created_at)
    return {**light, **beside, "tags": rows.from_json(light["tags"]), "updated_at": from_ms(light["updated_at"])}
