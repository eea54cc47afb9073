"""The one SQLite file behind both embedded stores: how it is opened, locked and blamed. No table is defined here."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from notebook_sync.errors import BackendDown

NAME = "SQLite (embedded)"
_BUSY_SECONDS = 20.0
# SQLite's default bound on `?` in one statement is 32,766; short statements are also kept in its cache.
_CHUNK = 500


class Embedded:
    """A connection shared by threads: one statement or transaction at a time, other processes waited for.

    Deleted at any time, also while it is open, the file is made anew by its next use; nothing a person wrote is only
    in it. `added` are columns (table, name, definition, expression of what the rows there are get, "" for the default)
    that a file of an earlier version may lack; `later` are tables that it may lack, and what makes and fills them.
    """

    def __init__(
        self,
        path: Path,
        schema: str,
        added: Sequence[tuple[str, str, str, str]] = (),
        later: Sequence[tuple[str, Sequence[str]]] = (),
    ) -> None:
        self._path = path
        self._schema = schema
        self._added = added
        self._later = later
        self._lock = threading.RLock()
        self._closed = False
        with self._blamed():
            self._connection = self._connect()

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Every row of one statement."""
        with self._lock, self._blamed():
            return self._current().execute(statement, [_storable(value) for value in values]).fetchall()

    def rows_in(self, statement: str, values: Sequence[Any]) -> list[Any]:
        """Rows of a statement with one `IN ({marks})`, asked in chunks."""
        found: list[Any] = []
        for start in range(0, len(values), _CHUNK):
            chunk = values[start : start + _CHUNK]
            found += self.rows(statement.format(marks=",".join("?" * len(chunk))), chunk)
        return found

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction, immediate, so that what is read inside it cannot be out of date when it is written."""
        with self._lock, self._blamed():
            connection = self._current()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.commit()
            except BaseException:
                connection.rollback()
                raise

    def close(self) -> None:
        """Let the file go. Twice is allowed; a later use is `BackendDown`."""
        with self._lock:
            self._closed = True
            self._connection.close()

    def _current(self) -> sqlite3.Connection:
        """The connection to the file that is at the path: what is written to a deleted one nobody would see."""
        if not self._closed and not self._connection.in_transaction and self._identity() != self._opened:
            replaced, self._connection = self._connection, self._connect()
            replaced.close()
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(exist_ok=True)
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        # A note is some kilobytes: on small pages a fifth of the file would be empty. Must come before the first table.
        connection.execute("PRAGMA page_size = 32768")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        for table, statements in self._later:
            _add_table(connection, table, statements)
        connection.executescript(self._schema)
        for column in self._added:
            _add_column(connection, *column)
        self._opened = self._identity()
        return connection

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - before every statement; pathlib takes four times as long
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            remedy = "; .notebook/ may be deleted and is then made anew" if is_damage(error) else ""
            raise BackendDown(NAME, f"{error}{remedy}") from error


def _add_table(connection: sqlite3.Connection, table: str, statements: Sequence[str]) -> None:
    def is_missing() -> bool:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return bool(names) and table not in names  # a new file is made whole by the schema

    if is_missing():
        connection.execute("BEGIN IMMEDIATE")  # another process may be adding it
        for statement in statements if is_missing() else ():
            connection.execute(statement)
        connection.execute("COMMIT")


def _add_column(connection: sqlite3.Connection, table: str, column: str, definition: str, value: str) -> None:
    def is_there() -> bool:
        found = connection.execute("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", (table, column))
        return found.fetchone() is not None

    if is_there():
        return
    connection.execute("BEGIN IMMEDIATE")  # another process may be adding it
    if not is_there():
        connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {definition}")
        if value:
            connection.execute(f"UPDATE {table} SET {column} = {value}")  # noqa: S608 - a constant of the store
    connection.execute("COMMIT")


def is_damage(error: BaseException | None) -> bool:
    """Whether the file itself is broken; one that is locked, full or closed is as good as ever."""
    # The low byte is the kind, the others say more about it.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _storable(value: Any) -> Any:
    """Text that UTF-8 can hold: a lone surrogate, as from a file name, is in no row and becomes what is in none."""
    return value.encode(errors="replace").decode() if isinstance(value, str) and not value.isascii() else value
