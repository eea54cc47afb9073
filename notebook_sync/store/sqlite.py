"""One SQLite file: how it is created, opened, shared by threads and processes, and blamed.

Each thread has a connection. The file may be deleted or replaced at any time: each use checks that the one at the path
is the one that is open.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from notebook_sync.errors import Busy, IndexDamaged, IndexOutdated, NotebookError, ReadOnly
from notebook_sync.store.tables import terms_of

_BUSY_SECONDS = 20.0
_SETTINGS = """
    PRAGMA secure_delete = ON; PRAGMA temp_store = MEMORY; PRAGMA synchronous = NORMAL;
    PRAGMA journal_size_limit = 8388608;"""
# Before the first table. A note is some kilobytes: on smaller pages, a fifth of the file would be empty; on larger
# ones, the tables of a small notebook, most of which have few rows.
_FIRST_SETTINGS = "PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
_LOGS = ("-wal", "-shm")

_Identity = tuple[int, int] | None


class Database:
    """A file that one transaction at a time writes. `statements` make its tables, `version` is its `user_version`."""

    def __init__(self, path: Path, version: int, statements: Callable[[], Sequence[str]], *, read_only: bool) -> None:
        self.path = path
        self._version = version
        self._statements = statements
        self._mode = "ro" if read_only else "rw"
        self._lock = threading.RLock()
        self._is_writing = self._is_durable = False
        # By thread: its connection, and which file that has open. A thread may inherit that of one that is over.
        self._connections: dict[int, tuple[sqlite3.Connection, _Identity]] = {}

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """The thread's connection, inside `write` with the transaction open."""
        with blamed(self.path):
            connection, identity = self._connections.get(threading.get_ident(), (None, None))
            if connection is None or not (connection.in_transaction or identity == self._identity()):
                connection = self._connect()
            yield connection

    @contextmanager
    def write(
        self, *, durable: bool = False, upgrade: bool = False, patience: float | None = None
    ) -> Iterator[sqlite3.Connection]:
        """One immediate transaction: what is read inside it cannot be out of date when it is written.

        The thread may open it again inside. `upgrade`: the file may be of an older version. `patience`: Busy is raised
        after so many seconds in which others write; None: after 20 in which other processes do.
        """
        with self._locked(patience), self.read() as connection:
            if self._is_writing:
                if durable and not self._is_durable:
                    raise ValueError("only the outermost transaction can be made durable")
                yield connection
                return
            # Inside a transaction this setting is refused.
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._is_writing, self._is_durable = True, durable
            try:
                if patience is not None:
                    connection.execute(f"PRAGMA busy_timeout = {patience * 1000:.0f}")
                with _transaction(connection):
                    if self._connections[threading.get_ident()][1] != self._identity():
                        raise Busy("the index was replaced")
                    if not upgrade and user_version(connection) != self._version:
                        raise outdated(self.path)
                    yield connection
                    connection.execute("UPDATE state SET value = value + 1 WHERE name = 'commits'")
            finally:
                self._is_writing = False
                if patience is not None:
                    connection.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000:.0f}")

    @contextmanager
    def _locked(self, patience: float | None) -> Iterator[None]:
        """Keep other threads from writing; without a `patience`, wait for them without end."""
        if not self._lock.acquire(timeout=-1 if patience is None else patience):
            raise Busy("another thread writes to the index")
        try:
            yield
        finally:
            self._lock.release()

    def get_state(self, name: str) -> int:
        """One number of the table `state`, 0 where there is none."""
        with self.read() as connection:
            found = connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return int(found[0]) if found else 0

    def set_state(self, name: str, value: int) -> None:
        """Set a number of the table `state`."""
        with self.write() as connection:
            connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))

    def next_revs(self, counter: str, count: int) -> range:
        """Numbers for `count` changes, from a counter row, inside `write`."""
        raised = "UPDATE state SET value = value + ? WHERE name = ? RETURNING value"
        with self.read() as connection:
            (last,) = connection.execute(raised, (count, counter)).fetchone()
        return range(last + 1 - count, last + 1)

    def recreate(self, connection: sqlite3.Connection) -> None:
        """Drop all tables and create those of this version. Virtual ones go first, with the tables behind them."""
        for kind in ("CREATE VIRTUAL", "CREATE VIEW", "CREATE TABLE"):
            found = "SELECT type, name FROM sqlite_schema WHERE sql LIKE ? || '%' AND name NOT LIKE 'sqlite_%'"
            for type_, name in connection.execute(found, (kind,)).fetchall():
                connection.execute(f'DROP {type_} "{name}"')
        for statement in self._statements():
            connection.execute(statement)
        connection.execute("CREATE TABLE state (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID")
        # No later file at this path repeats the first two: they are what readers cache by.
        state = {"commits": time.time_ns(), "vectors": time.time_ns(), "needs_restore": 1, "rev": 0, "local_rev": 0}
        connection.executemany("INSERT INTO state VALUES (?, ?)", state.items())
        connection.execute(f"PRAGMA user_version = {self._version}")

    def set_aside(self) -> Path | None:
        """Rename the damaged file, and return its new path; None where another process did so already."""
        with self._lock, _folder_locked(self.path.parent):
            is_same = self._identity() in [identity for _, identity in tuple(self._connections.values())]
            self.close()
            if not is_same:
                return None
            aside = Path(f"{self.path}.damaged-{time.time_ns()}")
            for suffix in ("", *_LOGS):
                with suppress(FileNotFoundError):
                    Path(f"{self.path}{suffix}").rename(f"{aside}{suffix}")
            return aside

    def close(self) -> None:
        """Close all connections. A later use opens the file again."""
        with self._lock:
            while self._connections:
                self._connections.popitem()[1][0].close()

    # ---- connections

    def _connect(self) -> sqlite3.Connection:
        """Open the file, or create it for its owner only: SQLite gives its log the same mode.

        The schema comes whole or not at all, so that a process that is killed leaves a file that the next one can use.
        A file that exists is opened by SQLite alone, since to close it would release the locks of this process. A log
        without its file belongs to a deleted one, and may be in use by a process that still has it open.
        """
        stale, _ = self._connections.pop(threading.get_ident(), (None, None))
        if stale is not None:
            stale.close()
        with _folder_locked(self.path.parent):  # of two that switch a file to a log at once, SQLite refuses one
            if self._identity() is None and self._mode == "rw":
                for suffix in _LOGS:
                    Path(f"{self.path}{suffix}").unlink(missing_ok=True)
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            identity = self._identity()  # before it is opened: the next use notices one that is replaced meanwhile
            uri = f"{self.path.absolute().as_uri()}?mode={self._mode}"
            connection = sqlite3.connect(
                uri,
                timeout=_BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
                uri=True,
            )
            self._connections[threading.get_ident()] = connection, identity
            connection.create_function("terms_of", 2, terms_of, deterministic=True)
            connection.executescript(_SETTINGS)
            if user_version(connection) == 0 and self._mode == "rw":
                connection.executescript(_FIRST_SETTINGS)
                with _transaction(connection):
                    self.recreate(connection)
        return connection

    def _identity(self) -> _Identity:
        try:
            found = os.stat(self.path)  # noqa: PTH116 - before every use; pathlib takes four times as long
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino


@contextmanager
def blamed(path: Path) -> Iterator[None]:
    """Raise the project's errors for SQLite's."""
    try:
        yield
    except sqlite3.Error as error:
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # the other bits say more about the kind
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                raise IndexDamaged(str(path), str(error)) from error
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise Busy("another process writes to the index") from error
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN:
                raise ReadOnly(str(path), str(error)) from error
        raise NotebookError(f"{path} cannot be used: {error}", next="check the disk, then repeat the call") from error


def user_version(connection: sqlite3.Connection) -> int:
    """Which version of the program made the tables; 0 before there are any."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def outdated(path: Path) -> IndexOutdated:
    """The error for a file that another version of the program made."""
    return IndexOutdated(
        f"{path} belongs to a newer version of notebook-sync", next="restart this program with the newer version"
    )


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


@contextmanager
def _folder_locked(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
