"""Rows of the embedded store: what each write does to them inside one transaction, and how they become documents."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from notebook_sync.embedded import from_ms, to_ms
from notebook_sync.mirror.base import Document, MarkStale, Put, Remove, Touch, Write
from notebook_sync.mirror.document import beside_light, document_of, moment, signed, unsigned
from notebook_sync.mirror.memories import DEFAULT_PRIORITY, UNSCORED, folded, marks
from notebook_sync.mirror.past import first_version, may_put, next_version, untold
from notebook_sync.mirror.sqlite_schema import INDEX, UNINDEXED
from notebook_sync.permissions import is_private

DOCUMENT = """id, wants, coalesce(path, ''), coalesce(path, was_at, ''), collection, title, summary, content, code,
    created_by, created_at, created_from, updated_at, version, tags, status, word_count, digest, size, mtime_ns,
    ctime_ns, inode, revision, has_own_id, broken, stale, provenance, rest, history"""
_SECTION = ("heading", "level", "anchor", "line", "start", "end", "token_count")
_SOURCE = ("digest", "size", "mtime_ns", "ctime_ns", "inode", "revision", "has_own_id", "broken")
_COMMON = frozenset(
    (
        *("id", "wants", "path", "collection", "title", "summary", "content", "code", "sections", "metadata"),
        *("source", "problems", "stale"),
    )
)
# A key that no frontmatter can hold: the parser replaces NUL.
_TIME = "\0time"


@dataclass(slots=True)
class _Row:
    n: int
    id: str
    digest: str
    path: str | None
    version: int
    pending: str
    deleted: bool
    created_at: int
    created_from: str
    collection: str
    serial: int
    event: int
    room: str


class Batch:
    """The writes of one transaction: each method makes one of them, or tells by False that it lost."""

    def __init__(self, connection: sqlite3.Connection, writes: Sequence[Write], room_of: Callable[[str], str]) -> None:
        self._connection = connection
        self._room_of = room_of
        puts = [write for write in writes if isinstance(write, Put)]
        self._bound_for = {note_id: put.note.path for put in puts for note_id in (put.id, put.replaces) if note_id}

    def put(self, put: Put) -> bool:
        """Make or replace the row. Lost where the row or the path has come to belong to what `put` does not know of."""
        row = self._row(put.id)
        carried = self._row(put.replaces) if put.replaces is not None else None
        if row is not None and not row.deleted and not may_put(put, row.digest, row.path or "", row.version):
            return False
        if not self._vacate(put):
            return False
        # A row that is there although none was expected is this note: its tombstone, or written by another process.
        past = row if row is not None else carried
        changed = past is None or past.digest != put.note.digest
        document = document_of(put)
        history = self._history(past.n) if past is not None else []
        if past is None:
            version, history = first_version(put)
        else:
            version = past.version
            if changed:
                version, history = next_version(put, version, history)
            if document["metadata"]["created_from"] != "frontmatter" and past.created_from != "frontmatter":
                document["metadata"] |= {
                    "created_at": from_ms(past.created_at),
                    "created_from": past.created_from,
                }
        if carried is not None:
            if row is None:
                self._connection.execute("UPDATE OR IGNORE memory_use SET id = ? WHERE id = ?", (put.id, carried.id))
            self._bury(carried, announce=is_private(put.note.path))
        self._store(put, document, version, history, row)
        return True

    def touch(self, touch: Touch) -> bool:
        """Set the stamp and clear `stale`."""
        stamp = touch.stamp
        return self._update(
            """size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, updated_at = ?, stale = '',
            pending = CASE pending WHEN '' THEN 'touched' ELSE pending END""",
            (stamp.size, stamp.mtime_ns, stamp.ctime_ns, signed(stamp.inode), to_ms(moment(stamp.mtime_ns))),
            touch,
        )

    def mark_stale(self, mark: MarkStale) -> bool:
        """Set `stale`, and nothing else: the row's ref stays as it is."""
        return self._update("stale = ?", (mark.reason.encode(errors="replace").decode(),), mark)

    def remove(self, remove: Remove) -> bool:
        """Bury the row. One that is already gone was removed as asked."""
        row = self._row(remove.id)
        if row is None or row.deleted:
            return True
        if row.digest != remove.base:
            return False
        self._bury(row, announce=True)
        return True

    def _update(self, assignments: str, values: tuple[Any, ...], write: Touch | MarkStale) -> bool:
        cursor = self._connection.execute(
            f"UPDATE note SET {assignments}, serial = serial + 1 WHERE id = ? AND digest = ? AND NOT deleted",
            (*values, write.id, write.base),
        )
        return cursor.rowcount == 1

    def _row(self, note_id: str) -> _Row | None:
        found = self._connection.execute(
            """SELECT n, id, digest, path, version, pending, deleted, created_at, created_from, collection,
            serial, event, room FROM note WHERE id = ?""",
            (note_id,),
        ).fetchone()
        return _Row(*found) if found else None

    def _vacate(self, put: Put) -> bool:
        """Whether the Put's path is free, or held by a note that this batch moves away: two may have swapped names."""
        path = put.note.path
        found = self._connection.execute("SELECT id FROM note WHERE path = ?", (path,)).fetchone()
        if found is None or found[0] in {put.id, put.replaces}:
            return True
        if self._bound_for.get(found[0], path) == path:
            return False
        self._connection.execute("UPDATE note SET was_at = path, path = NULL WHERE id = ?", found)
        return True

    def _history(self, n: int) -> list[dict[str, Any]]:
        found = self._connection.execute("SELECT history FROM body WHERE n = ?", (n,)).fetchone()
        return from_json(found[0]) if found else []

    def _store(
        self, put: Put, document: Document, version: int, history: list[dict[str, Any]], row: _Row | None
    ) -> None:
        metadata, source = document["metadata"], document["source"]
        light = {
            **{key: document[key] for key in ("id", "wants", "path", "collection", "title", "summary")},
            **{key: source[key] for key in ("digest", "size", "mtime_ns", "ctime_ns", "inode", "revision")},
            **{key: metadata[key] for key in ("status", "created_by", "created_from", "word_count")},
            "inode": signed(source["inode"]),
            "has_own_id": int(source["has_own_id"]),
            "broken": int(source["broken"]),
            "tags": to_json(metadata["tags"]),
            "beside": to_json(beside_light(document["collection"], document, metadata["extra"])),
            "created_at": to_ms(metadata["created_at"]),
            "updated_at": to_ms(metadata["updated_at"]),
            "version": version,
            "problems": len(document["problems"]),
            "stale": "",
            "provenance": metadata["provenance"] or "",
            "pending": untold(row.pending if row is not None and not row.deleted else "", _action_of(put, row)),
            "deleted": 0,
            "event": _event_of(put, row),
            "room": self._room_of(put.note.path),
        }
        if row is None:
            light["serial"] = light["event"]
            marks = ", ".join("?" * len(light))
            statement = f"INSERT INTO note ({', '.join(light)}) VALUES ({marks})"
            n = self._connection.execute(statement, tuple(light.values())).lastrowid
        else:
            n = row.n
            if not row.deleted:
                index_words(self._connection, n, row.room, UNINDEXED)
            changes = ", ".join(f"{column} = ?" for column in light)
            self._connection.execute(
                f"UPDATE note SET {changes}, serial = serial + 1 WHERE n = ?", (*light.values(), n)
            )
        if "memories" in (document["collection"], row.collection if row is not None else ""):
            self._store_memory(n, document)
        code = document.get("code") or ""
        self._connection.execute(
            "INSERT OR REPLACE INTO body VALUES (?, ?, ?, ?, ?)",
            (n, document["content"], code, _rest(document), to_json(history)),
        )
        index_words(self._connection, n, UNINDEXED, light["room"])

    def _store_memory(self, n: int | None, document: Document) -> None:
        """What the row of a memory has beside that of every note; nothing of a note that is no memory any more."""
        self._connection.execute("DELETE FROM memory_note WHERE n = ?", (n,))
        if document["collection"] != "memories":
            return
        kind, domain, agent = (document.get(key) or "" for key in ("kind", "domain", "agent"))
        relations, priority = document.get("relations") or [], document.get("priority", DEFAULT_PRIORITY)
        told = (kind, domain, folded(domain), agent, priority, bool(document.get("needs_review")), to_json(relations))
        self._connection.execute(
            """INSERT INTO memory_note SELECT n, id, ?, ?, ?, ?, ?, ?, ?, coalesce(score, ?), ?
            FROM note LEFT JOIN memory_use USING (id) WHERE n = ?""",
            (*told, UNSCORED, " ".join(document.get("missing") or ()), n),
        )
        metadata = document["metadata"]
        told_by = [*marks("t", metadata["tags"]), *marks("p", [metadata["provenance"] or ""])]
        self._connection.executemany("INSERT INTO memory_mark VALUES (?, ?)", [(mark, n) for mark in told_by])
        targets = dict.fromkeys(link["to"] for link in relations)
        self._connection.executemany("INSERT INTO memory_link VALUES (?, ?)", [(target, n) for target in targets])

    def _bury(self, row: _Row, *, announce: bool) -> None:
        """Leave a tombstone: no path, no text, no words; its version and history stay, should the note come back."""
        if row.deleted:
            return
        index_words(self._connection, row.n, row.room, UNINDEXED)
        self._connection.execute("DELETE FROM memory_note WHERE n = ?", (row.n,))
        self._connection.execute("UPDATE body SET content = '', code = '', rest = '{}' WHERE n = ?", (row.n,))
        self._connection.execute(
            """UPDATE note SET was_at = coalesce(path, was_at), path = NULL, deleted = 1, pending = ?,
            serial = serial + 1, event = serial + 1 WHERE n = ?""",
            ("deleted" if announce else "", row.n),
        )


def index_words(connection: sqlite3.Connection, n: int | None, before: str, after: str) -> None:
    """Take a note's words out of the index of one room and put them into that of another. To forget them, an index
    without content is given the same words again."""
    found = "SELECT title, summary, content, code FROM note JOIN body USING (n) WHERE n = ?"
    texts = connection.execute(found, (n,)).fetchone()
    for room, command in ((before, "'delete'"), (after, "NULL")):
        if room != UNINDEXED:
            index = _index_of(connection, room)
            statement = (
                f"INSERT INTO {index} ({index}, rowid, title, summary, content, code) VALUES ({command}, ?, ?, ?, ?, ?)"
            )
            connection.execute(statement, (n, *texts))


def _index_of(connection: sqlite3.Connection, room: str) -> str:
    """The index of a room's words, which is made where it is not there."""
    if not room:
        return "open_words"
    found = connection.execute("SELECT n FROM room WHERE room = ?", (room,)).fetchone()
    if found:
        return f"words_{found[0]}"
    index = f"words_{connection.execute('INSERT INTO room (room) VALUES (?)', (room,)).lastrowid}"
    connection.execute(f"CREATE VIRTUAL TABLE {index} {INDEX}")
    return index


def document_from(row: Any) -> Document:
    """The document of a row selected as `DOCUMENT`."""
    note_id, wants, path, source_path, collection, title, summary, content, code, created_by, created_at, *more = row
    created_from, updated_at, version, tags, status, word_count, *source, stale, provenance, rest, history = more
    kept = from_json(rest)
    metadata = {
        "created_by": created_by,
        "created_at": from_ms(created_at),
        "created_from": created_from,
        "updated_at": from_ms(updated_at),
        "version": version,
        "tags": from_json(tags),
        "status": status,
        "word_count": word_count,
        "provenance": provenance or None,
        **kept["metadata"],
    }
    sections = [dict(zip(_SECTION, values, strict=True)) for values in kept["sections"]]
    document = {
        "id": note_id,
        "wants": wants,
        "path": path,
        "collection": collection,
        "title": title,
        "summary": summary,
        "content": content,
        "sections": [{**section, "content": content[section["start"] : section["end"]]} for section in sections],
        **kept["fields"],
        "metadata": metadata,
        "history": from_json(history),
        "source": {"path": source_path, **dict(zip(_SOURCE, source, strict=True))},
        "problems": kept["problems"],
        "stale": stale or None,
    }
    document["source"] |= {key: bool(document["source"][key]) for key in ("has_own_id", "broken")}
    document["source"]["inode"] = unsigned(document["source"]["inode"])
    if kept["has_code"]:
        document["code"] = code
    return document


def to_json(value: Any) -> str:
    """JSON that keeps datetimes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=lambda when: {_TIME: to_ms(when)})


def from_json(text: str) -> Any:
    """What `to_json` was given."""
    found, _ = _DECODER.raw_decode(text)  # nothing stands around what a row holds
    return found


# Made once: `json.loads` with a hook makes one for each text.
_DECODER = json.JSONDecoder(object_hook=lambda found: from_ms(found[_TIME]) if _TIME in found else found)


def _event_of(put: Put, row: _Row | None) -> int:
    if row is None:
        return time.time_ns() // 1_000_000  # beyond any serial that an earlier row of the same id had
    return row.event if _says(row, put) else row.serial + 1


def _action_of(put: Put, row: _Row | None) -> str:
    return "touched" if row is not None and _says(row, put) else put.action


def _says(row: _Row, put: Put) -> bool:
    """Whether the row says already what `put` wants: another writer was faster, and tells what happened."""
    return not row.deleted and row.path == put.note.path and row.digest == put.note.digest


def _rest(document: Document) -> str:
    """What has no column of its own. Sections are kept as spans: their text is a slice of the content."""
    metadata = document["metadata"]
    return to_json(
        {
            "sections": [[section[key] for key in _SECTION] for section in document["sections"]],
            "fields": {key: value for key, value in document.items() if key not in _COMMON},
            "metadata": {key: metadata[key] for key in ("token_count", "links", "extra")},
            "problems": document["problems"],
            "has_code": "code" in document,
        }
    )
