"""The index of one notebook: one SQLite file with every collection, derived from the files but for its kept columns.

It is opened or created, upgraded by a rebuild, and set aside where it is damaged. Nothing here reads a note's file.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from notebook_sync.errors import IndexDamaged, NotebookError
from notebook_sync.store.collection import YEAR, Collection
from notebook_sync.store.collections import COLLECTIONS
from notebook_sync.store.rows import Analyzer, Change, from_milliseconds, to_milliseconds
from notebook_sync.store.sqlite import Database, outdated, user_version
from notebook_sync.store.tables import CODECS, LISTED, STATISTICS, TRIGGERS, Table, as_json, from_json, unpack
from notebook_sync.store.words import WordTables

# Raised when the tables change. An index with a lower number, or of an older analyzer, is emptied and filled again.
SCHEMA = 5
_ANALYZERS = 1000
_DUMP_FILE = "index.jsonl"


class Index:
    """Every collection of a notebook, and the feed of their changes.

    May be used by several threads and processes at once. A read sees the last commit; inside `write()` it sees the
    transaction. A file that is deleted or replaced is noticed by the next use, which opens or creates the one at the
    path. Errors: IndexDamaged (call `recover`), IndexOutdated (restart), Busy, ReadOnly.
    """

    def __init__(self, path: Path, analyzer: Analyzer, *, read_only: bool = False) -> None:
        """Open the index at `path`, or create it (0600, in an existing folder).

        The file of an older version, or of an older analyzer, is emptied, its kept columns and dumped collections
        carried over. A damaged one is set aside.
        """
        self.path = path
        self._version = SCHEMA * _ANALYZERS + analyzer.version
        self._db = Database(path, self._version, schema_statements, read_only=read_only)
        (
            self.documents,
            self.history,
            self.facts,
            self.fact_places,
            self.stream,
            self.longterm,
            self.checkpoints,
            self.cache,
            self.counters,
            self.events,
            self.intents,
            self.attachments,
            self.vectors,
            self.refused,
            self.targets,
        ) = found = tuple(Collection(self._db, spec, analyzer) for spec in COLLECTIONS)
        self.collections: Mapping[str, Collection] = {each.spec.name: each for each in found}
        try:
            self._bring_up_to_date()
        except NotebookError as error:
            if read_only or not isinstance(error, IndexDamaged):
                self.close()  # nobody else can
                raise
            self.recover()

    def write(self, *, durable: bool = False, patience: float | None = None) -> AbstractContextManager[Any]:
        """One transaction: all that is put, updated, renamed and deleted inside it, or nothing after an exception.

        The thread may open it again inside itself; other threads and processes wait, and Busy is raised after
        `patience` seconds, 20 for None. `durable`: the commit survives a power failure; only the outermost may ask for
        it.
        """
        return self._db.write(durable=durable, patience=patience)

    def version(self) -> int:
        """A number that differs after every commit by any process: the key of what readers cache. Inside `write` it
        does not see what is written there."""
        return self._db.get_state("commits")

    def vectors_version(self) -> int:
        """As `version`, of the collection `vectors` alone."""
        return self._db.get_state("vectors")

    def without_vectors(
        self, collection: str, column: str, model: str, *, stage: str, since: int, ids: AnyCollection[str]
    ) -> set[str]:
        """The rows, of those with a rev after `since` and of `ids`, that have no vectors which `model` made of what is
        in their `column` now, with their audience. The ids of vectors are `stage`, `collection`, a colon, the row's id.
        """
        asked = f"""SELECT id FROM {collection} AS row WHERE ended_at IS NULL AND (rev > ? OR id IN {LISTED})
            AND NOT EXISTS (SELECT 1 FROM vectors WHERE id = ? || row.id AND model = ?
                AND digest IS row."{column}" AND audience IS row.audience)"""
        with self._db.read() as db:
            return {id for (id,) in db.execute(asked, (since, as_json(list(ids)), f"{stage}{collection}:", model))}

    def new_event_id(self) -> str:
        """An id for the next event: larger than those of all others, also after the clock was set back."""
        with self._db.read() as db:
            (newest,) = db.execute("SELECT max(id) FROM events").fetchone()
        at = time.time_ns()
        with suppress(TypeError, ValueError):  # no event, or an id that came from elsewhere
            at = max(at, int(newest[:16], 16) + 1)
        return f"{at:016x}{os.urandom(4).hex()}"

    # ---- the feed

    def changes(
        self, since: int, limit: int, collections: AnyCollection[str] | None = None, *, heavy: bool = True
    ) -> list[Change]:
        """The feed after `since`: at most `limit` changes, ordered by rev, each row as it is now, ends included.

        A row appears once, at its last rev. One that changes again meanwhile appears again behind.
        """
        fed = [name for name, each in self.collections.items() if each.spec.feed]
        wanted = [name for name in fed if collections is None or name in collections]
        tables = [f"SELECT rev, '{name}' AS name, id FROM {name} WHERE rev > ?" for name in wanted]
        asked = f"{' UNION ALL '.join(tables)} ORDER BY rev LIMIT ?"
        with self._db.read() as db:
            found = db.execute(asked, (*(since for _ in wanted), limit)).fetchall() if wanted else []
        of = {name: [row_id for _, at, row_id in found if at == name] for name in wanted}
        rows = {name: self.collections[name].get(ids, heavy=heavy) for name, ids in of.items() if ids}
        return [Change(name, row_id, rev, rows[name].get(row_id)) for rev, name, row_id in found]

    def rev(self) -> int:
        """The last number that a change in the feed got, 0 before the first: a cursor there has seen everything."""
        return self._db.get_state("rev")

    def raise_rev(self, to: int) -> None:
        """Let the next change be numbered above `to`."""
        with self._db.write():
            self._db.set_state("rev", max(self._db.get_state("rev"), to))

    # ---- what only the index knows

    def dump(self, folder: Path) -> Path:
        """Write the kept columns and dumped collections to `folder`/index.jsonl, atomically, and return its path.

        An index that needs a restore loads that file first. Rows that ended over a year ago are removed, and with
        them their breadcrumbs.
        """
        if self.needs_restore():
            self.load_dump(folder)
        now = datetime.now(UTC)
        with self._db.write() as db:
            for name in self.collections:
                db.execute(f"DELETE FROM {name} WHERE abs(ended_at) < ?", (to_milliseconds(now) - YEAR,))
            _write_lines(_dump_lines(db), folder / _DUMP_FILE)
            self._db.set_state("dumped_at", to_milliseconds(now))
        return folder / _DUMP_FILE

    def load_dump(self, folder: Path) -> None:
        """Load what `dump` wrote to `folder`; no file is no error."""
        path = folder / _DUMP_FILE
        with self._db.write():
            self._db.set_state("needs_restore", 0)
            self.load(path.read_bytes().splitlines() if path.exists() else ())

    def load(self, lines: Iterable[str | bytes]) -> None:
        """Put rows, each as `{"in": COLLECTION, "row": {…}}` in JSON; what cannot be read as one is left out.

        Kept columns go to the rows that exist, and else wait for the row, as those of ended rows do. Of the other
        dumped collections, rows that are missing are put.
        """
        with self._db.write():
            for line in lines:
                # Raised before anything is written.
                with suppress(ValueError, TypeError, KeyError, AttributeError, OverflowError):
                    found = from_json(line)
                    self.collections[found["in"]].load(found["row"])

    def dumped_at(self) -> datetime | None:
        """When `dump` last wrote."""
        at = self._db.get_state("dumped_at")
        return from_milliseconds(at) if at else None

    def needs_restore(self) -> bool:
        """Whether the file was created since the last `load_dump`: kept columns may be in the dump only."""
        return bool(self._db.get_state("needs_restore"))

    def recover(self) -> Path | None:
        """After IndexDamaged: set the file aside, return its new path, and go on with an empty one.

        None where another process did so already. The caller loads the dump and puts the rows of the files again.
        """
        return self._db.set_aside()

    def optimize(self) -> None:
        """Remove what was deleted from the file itself: merge the word tables, free pages, empty the log."""
        with self._db.write() as db:
            for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE sql LIKE '%USING fts5(%'").fetchall():
                db.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
        with self._db.read() as db:
            db.execute("PRAGMA incremental_vacuum").fetchall()
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def checkpoint(self) -> None:
        """Move what was committed from the log to the file, which else a commit does now and then, and waits for it."""
        with self._db.read() as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def close(self) -> None:
        """Close the file. A later use opens it again."""
        self._db.close()

    def _bring_up_to_date(self) -> None:
        """Empty an older file in one transaction; what only it knows waits in the new tables."""
        with self._db.read() as db:
            version = user_version(db)
        if version > self._version:
            raise outdated(self.path)
        if version < self._version:
            with self._db.write(durable=True, upgrade=True) as db:
                if user_version(db) < self._version:  # no other process was faster
                    lines = list(_dump_lines(db))
                    self._db.recreate(db)
                    self._db.set_state("needs_restore", 0)
                    self.load(lines)


def _dump_lines(db: sqlite3.Connection) -> Iterator[bytes]:
    """What only an index knows, as JSON lines `{"in": COLLECTION, "row": {…}}`: the kept columns of documents and
    facts, those that wait for an ended row (with `ended_at`) included; whole rows of the other dumped collections. Of
    an older version's, what its tables have. Times are ISO 8601."""
    for table in (Table(spec) for spec in COLLECTIONS if spec.dumped):
        name, of_table = table.name, "SELECT name FROM pragma_table_info(?)"
        there, packed = ([column for (column,) in db.execute(of_table, (each,))] for each in (name, f"{name}_heavy"))
        wanted = ["id", "ended_at", *table.known_by, *table.kept] if table.kept else table.light
        light, heavy = [each for each in wanted if each in there], [] if table.kept or not packed else table.heavy
        joined = f"LEFT JOIN {name}_heavy USING (n)" if heavy else ""
        alive = "coalesce(ended_at, 1) > 0" if table.kept else "ended_at IS NULL"
        columns = ", ".join([*map(table.sql, light), "packed" if heavy else "NULL"])
        for *cells, cell in (
            db.execute(f"SELECT {columns} FROM {name} {joined} WHERE {alive} ORDER BY n") if light else ()
        ):
            held = unpack(cell) if cell else {}
            row = {**dict(zip(light, cells, strict=True)), **{each: held.get(each) for each in heavy}}
            decoders = {each: CODECS[table.columns[each].type][1] for each in row if row[each] is not None}
            row = {each: decode(row[each]) if decode else row[each] for each, decode in decoders.items()}
            yield msgspec.json.encode({"in": name, "row": row}) + b"\n"


def _write_lines(lines: Iterable[bytes], path: Path) -> None:
    """Write a file for its owner only, line by line, and exchange it for the earlier one."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def schema_statements() -> list[str]:
    """All that creates the tables of an index."""
    tables = [Table(spec) for spec in COLLECTIONS]
    own = [statement for table in tables for statement in (*table.statements(), *WordTables(table).statements())]
    return [*own, *TRIGGERS, *STATISTICS]
