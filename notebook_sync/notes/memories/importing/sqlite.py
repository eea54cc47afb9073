"""Memories in a SQLite file of another program: its tables are known by their columns. Opened to be read only."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from notebook_sync.errors import UsageError
from notebook_sync.mirror.memories import Link
from notebook_sync.notes.memories.importing.columns import COLUMNS, Record, renamed
from notebook_sync.notes.memories.importing.lines import Beside, Found
from notebook_sync.notes.memories.importing.values import as_link

MAGIC = b"SQLite format 3\0"
(_TEXT,) = COLUMNS["text"]
_LINKING = {"from_memory_id", "to_memory_id", "relationship_type"}
_BUSY_SECONDS = 5.0


class SqliteExport:
    """An export in SQLite; `names` renames its columns. Raises UsageError for a file that holds no memories, or cannot
    be read."""

    def __init__(self, file: Path, names: Mapping[str, str]) -> None:
        self._file = file
        self._names = names
        with self._opened() as db:
            tables, virtual = _tables(db, names)
            texts = [name for name, columns in tables.items() if _TEXT in columns]
            self._tables = [name for name in texts if "memor" in name.casefold()] or texts
            if not self._tables:
                raise UsageError(_none_in(file, [*tables], virtual))
            ids = {str(row["id"]) for name in self._tables if "id" in tables[name] for row in self._rows(db, name)}
            links: dict[str, list[Link]] = {}
            left = {
                name: self._add_links(db, name, ids, links) if columns >= _LINKING else _count(db, name)
                for name, columns in tables.items()
                if name not in self._tables
            }
            self.beside = Beside(links, tuple(_rows_of(name, left[name]) for name in sorted(left) if left[name]))

    def records(self) -> Iterator[Found]:
        """Every row, numbered on from table to table."""
        number = 0
        with self._opened() as db:
            for name in self._tables:
                for row in db.execute(f"SELECT * FROM {_quoted(name)}"):
                    number += 1
                    fields = {column: row[column] for column in row.keys()}  # noqa: SIM118 - a Row is no mapping
                    raw = json.dumps(fields, ensure_ascii=True, default=_as_text).encode()
                    yield Found(number, fields, raw)

    def _rows(self, db: sqlite3.Connection, table: str) -> Iterator[Record]:
        return (renamed(dict(row), self._names) for row in db.execute(f"SELECT * FROM {_quoted(table)}"))

    def _add_links(self, db: sqlite3.Connection, table: str, ids: Collection[str], links: dict[str, list[Link]]) -> int:
        """Add the links of a table; how many of its rows are none."""
        left = 0
        for row in self._rows(db, table):
            start = str(row["from_memory_id"])
            try:
                link = as_link(row)
            except UsageError:
                link = None
            if link is None or start not in ids:
                left += 1
            else:
                links.setdefault(start, []).append(link)
        return left

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            place = f"file:{quote(str(self._file.absolute()))}?mode=ro"
            with closing(sqlite3.connect(place, uri=True, timeout=_BUSY_SECONDS)) as db:
                db.execute("PRAGMA trusted_schema = OFF")
                db.row_factory = sqlite3.Row
                db.text_factory = lambda raw: raw.decode(errors="surrogateescape")
                yield db
        except sqlite3.Error as error:
            raise UsageError(f"{self._file} cannot be read: {error}; close the program that writes to it") from None


def _none_in(file: Path, tables: Sequence[str], virtual: Sequence[str]) -> str:
    """What to do where no table has memories."""
    why = f"{file} has no table with a column `{_TEXT}`; it has: {', '.join(tables) or 'none'}"
    if not virtual:
        return f"{why}; name the column with the texts, as in: --map body={_TEXT}"
    name = virtual[0]
    copy = f"CREATE TABLE {_quoted(f'{name}_copy')} AS SELECT * FROM {_quoted(name)}"
    return (
        f"{why}, and virtual tables, which are not read: {', '.join(virtual)}; in a copy of the file, make a plain "
        f"table of the one with the memories: {copy}"
    )


def _tables(db: sqlite3.Connection, names: Mapping[str, str]) -> tuple[dict[str, set[str]], list[str]]:
    """The columns of every table that is not part of a virtual one; and the virtual tables."""
    kinds = {row["name"]: row["type"] for row in db.execute("PRAGMA table_list") if row["schema"] == "main"}
    found = list(_plain(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name")))
    virtual = [name for name, sql in found if str(sql).lstrip().upper().startswith("CREATE VIRTUAL")]
    columns = {
        name: {names.get(row["name"], row["name"]) for row in db.execute(f"PRAGMA table_info({_quoted(name)})")}
        for name, _ in found
        if not name.startswith("sqlite_") and name not in virtual and kinds.get(name) != "shadow"
    }
    return columns, virtual


def _rows_of(table: str, count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'} of the table {table!r}"


def _count(db: sqlite3.Connection, table: str) -> int:
    (count,) = next(_plain(db.execute(f"SELECT count(*) FROM {_quoted(table)}")))
    return int(count)


def _plain(cursor: sqlite3.Cursor) -> Iterator[tuple[Any, ...]]:
    return (tuple(row) for row in cursor)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _as_text(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
