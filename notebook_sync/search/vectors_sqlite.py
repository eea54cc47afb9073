"""Vectors in the embedded file, beside the mirror's tables: searched by the exact index.

Which notes are behind the file knows by itself: triggers note each note whose digest is not the one its vectors were
made of, so that asking costs nothing where nothing is behind.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from pathlib import Path
from sqlite3 import Connection

from notebook_sync.embedded import NAME, Embedded
from notebook_sync.mirror.sqlite_schema import ADDED, LATER, UNINDEXED
from notebook_sync.mirror.sqlite_schema import SCHEMA as MIRROR_SCHEMA
from notebook_sync.search.base import Counts, Matrix, Near, Vector, Vectored
from notebook_sync.search.exact import ExactIndex, State
from notebook_sync.search.packing import Packed, pack
from notebook_sync.search.rough import Key, RoughRow

_IS_OTHER = "NOT EXISTS (SELECT 1 FROM vector WHERE note_id = note.id AND vector.digest = note.digest)"
# What is looked through stands apart from what is only read of the nearest. A number is never given twice.
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS vector_store (made TEXT NOT NULL);
INSERT INTO vector_store SELECT hex(randomblob(16)) WHERE (SELECT count(*) FROM vector_store) = 0;
CREATE TABLE IF NOT EXISTS vector_model (model TEXT PRIMARY KEY, dimensions INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS vector (n INTEGER PRIMARY KEY AUTOINCREMENT, note_id TEXT NOT NULL UNIQUE,
    model TEXT NOT NULL, dimensions INTEGER NOT NULL, digest TEXT NOT NULL, passages INTEGER NOT NULL,
    rough BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS vector_made_by ON vector (model, dimensions, note_id);
CREATE TABLE IF NOT EXISTS vector_rest (n INTEGER PRIMARY KEY, fine BLOB NOT NULL, places BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS vector_due (note_id TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS vector_due_new AFTER INSERT ON note WHEN NOT new.deleted BEGIN
    INSERT OR IGNORE INTO vector_due SELECT id FROM note WHERE id = new.id AND {_IS_OTHER}; END;
CREATE TRIGGER IF NOT EXISTS vector_due_other AFTER UPDATE OF digest, deleted ON note
    WHEN new.digest <> old.digest OR new.deleted <> old.deleted BEGIN
    DELETE FROM vector_due WHERE note_id = new.id;
    INSERT INTO vector_due SELECT id FROM note WHERE id = new.id AND NOT deleted AND {_IS_OTHER}; END;
CREATE TRIGGER IF NOT EXISTS vector_moved AFTER UPDATE OF room ON note
    WHEN old.room NOT IN (new.room, '{UNINDEXED}') BEGIN
    INSERT OR IGNORE INTO vector_due SELECT note_id FROM vector WHERE note_id = new.id;
    DELETE FROM vector_rest WHERE n = (SELECT n FROM vector WHERE note_id = new.id);
    DELETE FROM vector WHERE note_id = new.id; END;
CREATE TRIGGER IF NOT EXISTS vector_due_gone AFTER DELETE ON note BEGIN
    DELETE FROM vector_due WHERE note_id = old.id; END;
INSERT OR IGNORE INTO vector_due SELECT id FROM note WHERE NOT deleted AND {_IS_OTHER};
"""
_ALIVE = "EXISTS (SELECT 1 FROM note WHERE id = note_id AND NOT deleted)"
_NOT_DUE = f"{_ALIVE} AND note_id NOT IN (SELECT note_id FROM vector_due)"
_LAST = "(SELECT dimensions FROM vector_model WHERE model = ?1)"
# Each by a range of the index, and none twice: to ask for what is unlike something would read all of it, and to leave
# out what comes again, all that is behind.
_BEHIND = f"""SELECT note_id FROM vector_due
    UNION ALL SELECT note_id FROM vector WHERE model < ?1 AND {_NOT_DUE}
    UNION ALL SELECT note_id FROM vector WHERE model > ?1 AND {_NOT_DUE}
    UNION ALL SELECT note_id FROM vector WHERE model = ?1 AND dimensions > {_LAST} AND {_NOT_DUE}
    UNION ALL SELECT note_id FROM vector
        WHERE model = ?1 AND dimensions > 0 AND dimensions < {_LAST} AND {_NOT_DUE}"""
_PAGE = 2_000
# What is kept of whole vectors: those of some thousand notes.
_MOST_BYTES = 1 << 23


class SqliteVectors:
    """`Vectors` over the file of an embedded mirror."""

    name = NAME

    def __init__(self, path: Path) -> None:
        self._db = Embedded(path, MIRROR_SCHEMA + _SCHEMA, ADDED, LATER)
        self._index = ExactIndex(_SqliteRows(self._db))

    def behind(self, model: str, limit: int) -> list[str]:
        return [note_id for (note_id,) in self._db.rows(f"{_BEHIND} LIMIT ?2", (model, max(limit, 0)))]

    def expect(self, model: str, dimensions: int) -> None:
        other = "vector_model WHERE model = ?1 AND dimensions <> ?2"
        # Asked before: to write means to wait for whoever else writes.
        if self._db.rows(f"SELECT 1 FROM {other}", (model, dimensions)):
            with self._db.writing() as connection:
                connection.execute("UPDATE vector_model SET dimensions = ?2 WHERE model = ?1", (model, dimensions))

    def put(self, model: str, notes: Sequence[Vectored]) -> None:
        packed = [pack(note) for note in notes]
        with self._db.writing() as connection:
            for one in packed:
                _put(connection, model, one)

    def nearest(
        self,
        model: str,
        query: Vector,
        limit: int,
        *,
        among: Collection[str] | None = None,
        section: str = "",
        folders: Collection[str] | None = None,
    ) -> list[Near]:
        return self._index.nearest(model, query, limit, among=among, section=section, folders=folders)

    def of(self, model: str, ids: Collection[str]) -> dict[str, Matrix]:
        return self._index.of(model, ids)

    def counts(self, model: str) -> Counts:
        asked = f"SELECT (SELECT count(*) FROM note WHERE NOT deleted), (SELECT count(*) FROM ({_BEHIND}))"
        notes, behind = self._db.rows(asked, (model,))[0]
        return Counts(notes - behind, behind)

    def tidy(self) -> int:
        asked = "SELECT n FROM vector WHERE note_id NOT IN (SELECT id FROM note WHERE NOT deleted)"
        gone = self._db.rows(asked)  # before: to write means to wait for whoever else writes
        if not gone:
            return 0
        with self._db.writing() as connection:
            dropped = connection.executemany(f"DELETE FROM vector WHERE n = ? AND n IN ({asked})", gone).rowcount
            connection.execute("DELETE FROM vector_rest WHERE n NOT IN (SELECT n FROM vector)")
        return max(dropped, 0)

    def close(self) -> None:
        self._db.close()


class _SqliteRows:
    """What the exact index asks of the file."""

    def __init__(self, db: Embedded) -> None:
        self._db = db
        self._lock = threading.Lock()
        # The whole vectors that were read last, by the store and the number of their row, and how many bytes they have.
        self._read: OrderedDict[tuple[str, int], tuple[str, Packed]] = OrderedDict()
        self._bytes = 0

    def state(self, model: str) -> State:
        asked = f"""SELECT (SELECT made FROM vector_store), coalesce({_LAST}, 0),
            coalesce((SELECT max(n) FROM vector), 0), (SELECT count(*) FROM vector)"""
        made, dimensions, newest, rows = self._db.rows(asked, (model,))[0]
        return State(made, dimensions, (newest,), rows)

    def since(self, model: str, known: State | None, held: Container[Key]) -> Iterator[list[RoughRow]]:
        is_of = f"model = ?1 AND dimensions = {_LAST}"
        asked = f"""SELECT n, note_id, passages, CASE WHEN {is_of} THEN rough ELSE x'' END,
            coalesce((SELECT room FROM note WHERE id = note_id), 'apart')
            FROM vector WHERE n > ?2 ORDER BY n LIMIT {_PAGE}"""
        (last,) = known.newest if known else (0,)
        while page := self._db.rows(asked, (model, last)):
            yield [RoughRow(*row) for row in page]
            last = page[-1][0]

    def keys(self) -> list[Key]:
        return [n for (n,) in self._db.rows("SELECT n FROM vector")]

    def whole(self, model: str, ids: Sequence[str]) -> list[Packed]:
        """Which row a note has is asked each time, what it holds is read once: no row changes, or has another's number
        in the same store."""
        asked = f"SELECT (SELECT made FROM vector_store), n FROM vector WHERE note_id IN ({{marks}}) AND {_ALIVE}"
        keys = [(made, n) for made, n in self._db.rows_in(asked, ids)]
        with self._lock:
            found = {key: self._read[key] for key in keys if key in self._read}
        found |= self._rows_of([n for made, n in keys if (made, n) not in found])
        self._keep(found)
        return [found[key][1] for key in keys if key in found and found[key][0] == model]

    def _rows_of(self, numbers: Sequence[int]) -> dict[tuple[str, int], tuple[str, Packed]]:
        asked = """SELECT (SELECT made FROM vector_store), n, model, note_id, digest, passages, dimensions, rough, fine,
            places FROM vector JOIN vector_rest USING (n) WHERE n IN ({marks})"""
        return {(made, n): (of, Packed(*row)) for made, n, of, *row in self._db.rows_in(asked, numbers)}

    def _keep(self, read: Mapping[tuple[str, int], tuple[str, Packed]]) -> None:
        with self._lock:
            for key, row in read.items():
                self._bytes += 0 if key in self._read else _size_of(row[1])
                self._read[key] = row
                self._read.move_to_end(key)
            while self._bytes > _MOST_BYTES:
                _, (_, oldest) = self._read.popitem(last=False)
                self._bytes -= _size_of(oldest)


def _size_of(packed: Packed) -> int:
    return len(packed.rough) + len(packed.fine) + len(packed.places)


def _put(connection: Connection, model: str, packed: Packed) -> None:
    """Older vectors never take the place of those of the note as it is now; nothing is kept of a note that is gone."""
    asked = """SELECT note.digest, vector.n, vector.digest = note.digest AND model = ? AND dimensions IN (0, ?)
        FROM note LEFT JOIN vector ON note_id = id WHERE id = ? AND NOT deleted"""
    note_id = packed.note_id.encode(errors="replace").decode()  # a lone surrogate is in no id that a row has
    found = connection.execute(asked, (model, packed.dimensions, note_id)).fetchone()
    if found is None:
        return
    digest, n, is_current = found
    if is_current and packed.digest != digest:
        return
    connection.execute("DELETE FROM vector WHERE n = ?", (n,))
    connection.execute("DELETE FROM vector_rest WHERE n = ?", (n,))
    row = (packed.note_id, model, packed.dimensions, packed.digest, packed.passages, packed.rough)
    columns = "note_id, model, dimensions, digest, passages, rough"
    made = connection.execute(f"INSERT INTO vector ({columns}) VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.execute("INSERT INTO vector_rest VALUES (?, ?, ?)", (made.lastrowid, packed.fine, packed.places))
    if packed.dimensions:
        connection.execute("INSERT OR REPLACE INTO vector_model VALUES (?, ?)", (model, packed.dimensions))
    if packed.digest == digest:
        connection.execute("DELETE FROM vector_due WHERE note_id = ?", (packed.note_id,))
    else:
        connection.execute("INSERT OR IGNORE INTO vector_due VALUES (?)", (packed.note_id,))
