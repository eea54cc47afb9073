"""The one SQLite file behind both embedded stores: how it is opened, locked and blamed. No table is defined here."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from notebook_sync.errors import BackendDown
from notebook_sync.folder import attempts, open_private

NAME = "SQLite (embedded)"
_BUSY_SECONDS = 20.0
# SQLite's default bound on `?` in one statement is 32,766; short statements are also kept in its cache.
_CHUNK = 500
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED = re.compile(r"IF NOT EXISTS (\w+)")


class Embedded:
    """A connection shared by threads: one statement or transaction at a time, other processes waited for.

    Deleted at any time, also while it is open, the file is made anew by its next use; nothing a person wrote is only
    in it. `added` are columns (table, name, definition, expression of what the rows there are get, "" for the default)
    that a file of an earlier version may lack; `later` are tables that it may lack, each with one that it has in any
    version, and what makes and fills the table.
    """

    def __init__(
        self,
        path: Path,
        schema: str,
        added: Sequence[tuple[str, str, str, str]] = (),
        later: Sequence[tuple[str, str, Sequence[str]]] = (),
    ) -> None:
        self._path = path
        self._schema = schema
        self._named = set(_NAMED.findall(schema))
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
        # SQLite gives its log and its shared memory the file's mode. An existing file is not opened here: closing it
        # would release the locks of this process.
        with suppress(FileExistsError):
            os.close(open_private(self._path, os.O_EXCL))
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        # A note is some kilobytes: on small pages a fifth of the file would be empty. Must come before the first table.
        connection.execute("PRAGMA page_size = 32768")
        _write_ahead(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        if self._lacks_something(connection):
            self._complete(connection)
        self._opened = self._identity()
        return connection

    def _lacks_something(self, connection: sqlite3.Connection) -> bool:
        """Asked before anything is made: to write means to wait for whoever else writes."""
        return not self._named <= _names_in(connection) or any(not _is_there(connection, *of[:2]) for of in self._added)

    def _complete(self, connection: sqlite3.Connection) -> None:
        """Make what is missing, all of it or nothing: a process that is killed leaves no half of a schema behind."""
        connection.execute("BEGIN IMMEDIATE")
        try:
            there = _names_in(connection)  # by now: another process may have made it
            for table, of, statements in self._later:
                for statement in statements if of in there and table not in there else ():
                    connection.execute(statement)
            for statement in _statements_in(self._schema):
                connection.execute(statement)
            for table, column, definition, value in self._added:
                if not _is_there(connection, table, column):
                    connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {definition}")
                    if value:
                        connection.execute(f"UPDATE {table} SET {column} = {value}")  # noqa: S608 - the store's own
            connection.commit()
        except BaseException:
            connection.rollback()
            raise

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


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log. Of several connections that switch a new file, SQLite refuses one at once,
    whatever its timeout: each waits for the lock that the other would have to give up.
    """
    for _ in attempts(_BUSY_SECONDS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            refused = error
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                break
    raise refused


def _names_in(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}


def _is_there(connection: sqlite3.Connection, table: str, column: str) -> bool:
    found = connection.execute("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", (table, column))
    return found.fetchone() is not None


def _statements_in(schema: str) -> Iterator[str]:
    """The statements of a script: a trigger has semicolons of its own, and `executescript` ends a transaction."""
    statement = ""
    for piece in schema.split(";")[:-1]:
        statement += f"{piece};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def to_ms(moment: datetime) -> int:
    """Milliseconds since the epoch."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_ms(milliseconds: int) -> datetime:
    """The moment `to_ms` was given, to the millisecond, in UTC."""
    seconds, rest = divmod(milliseconds, 1000)
    return _EPOCH + timedelta(0, seconds, rest * 1000)  # by position, and whole: keywords take twice as long


def is_damage(error: BaseException | None) -> bool:
    """Whether the file itself is broken; one that is locked, full or closed is as good as ever."""
    # The low byte is the kind, the others say more about it.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _storable(value: Any) -> Any:
    """Text that UTF-8 can hold: a lone surrogate, as from a file name, is in no row and becomes what is in none."""
    return value.encode(errors="replace").decode() if isinstance(value, str) and not value.isascii() else value
