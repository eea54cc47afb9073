"""Memories in a SQLite file of another program: its tables are known by what they hold. Opened to be read only."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from notebook_sync.errors import UsageError
from notebook_sync.mirror.memories import Link
from notebook_sync.notes.memories.importing.columns import LINK_NAMES, TAG_NAMES, by_name, columns_of
from notebook_sync.notes.memories.importing.lines import Beside, Found
from notebook_sync.notes.memories.importing.values import as_link

MAGIC = b"SQLite format 3\0"
_SAMPLE = 200
_BUSY_SECONDS = 5.0


class SqliteExport:
    """An export in SQLite. Raises UsageError for a file that holds no memories, or cannot be read."""

    def __init__(self, file: Path) -> None:
        self._file = file
        with self._opened() as db:
            tables, unsure, virtual = _tables(db)
            self._tables = _with_memories(tables)
            if not self._tables:
                raise UsageError(_none_in(file, [*tables, *unsure], virtual))
            ids = self._ids(db, tables)
            links: dict[str, list[Link]] = {}
            tags: dict[str, list[str]] = {}
            others = {name: _count(db, name) for name in unsure}
            for name, sample in tables.items():
                if name in self._tables or not sample:
                    continue
                roles = _roles(sample, LINK_NAMES), _roles(sample, TAG_NAMES)
                if _is_all_there(roles[0], ("from", "to", "type"), sample, ids, ("from", "to")):
                    others[name] = _add_links(db, name, roles[0], ids, links)
                elif _is_all_there(roles[1], ("from", "tag"), sample, ids, ("from",)):
                    others[name] = _add_tags(db, name, roles[1], ids, tags)
                else:
                    others[name] = _count(db, name)
            self.beside = Beside(
                links, tags, tuple(_rows_of(name, others[name]) for name in sorted(others) if others[name])
            )

    def records(self) -> Iterator[Found]:
        """Every row, numbered on from table to table."""
        number = 0
        with self._opened() as db:
            for name in self._tables:
                for row in db.execute(f"SELECT * FROM {_quoted(name)}"):
                    number += 1
                    fields = {column: row[column] for column in row.keys()}  # noqa: SIM118 - a Row is no mapping
                    raw = json.dumps(fields, ensure_ascii=True, default=_as_text).encode()
                    yield Found(number, fields, raw, table=name)

    def _ids(self, db: sqlite3.Connection, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> set[str]:
        ids: set[str] = set()
        for name in self._tables:
            for column in columns_of(tables[name])["id"][:1]:
                ids |= {str(one) for (one,) in _plain(db.execute(f"SELECT {_quoted(column)} FROM {_quoted(name)}"))}
        return ids

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
    why = f"{file} has no table with texts of memories; it has: {', '.join(tables) or 'none'}"
    if not virtual:
        return f"{why}; export the memories as JSON lines"
    name = virtual[0]
    copy = f"CREATE TABLE {_quoted(f'{name}_copy')} AS SELECT * FROM {_quoted(name)}"
    return (
        f"{why}, and virtual tables, which are not read: {', '.join(virtual)}; in a copy of the file, make a plain "
        f"table of the one with the memories: {copy}"
    )


def _tables(db: sqlite3.Connection) -> tuple[dict[str, list[dict[str, Any]]], list[str], list[str]]:
    """Every table that is nobody's shadow, with some of its rows; those that may be the shadow of a virtual table that
    nothing here can open: only what opens it knows which are; and the virtual ones."""
    kinds = {row["name"]: row["type"] for row in db.execute("PRAGMA table_list") if row["schema"] == "main"}
    found = list(_plain(db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name")))
    virtual = [name for name, sql in found if str(sql).lstrip().upper().startswith("CREATE VIRTUAL")]
    closed = [name for name in virtual if not kinds or not _is_open_to(db, name)]  # none before SQLite 3.37
    own = [
        name
        for name, _ in found
        if not name.startswith("sqlite_") and name not in virtual and kinds.get(name) != "shadow"
    ]
    unsure = [name for name in own if any(name.startswith(f"{one}_") for one in closed)]
    sampled = {
        name: [dict(row) for row in db.execute(f"SELECT * FROM {_quoted(name)} LIMIT {_SAMPLE}")]
        for name in own
        if name not in unsure
    }
    return sampled, unsure, virtual


def _is_open_to(db: sqlite3.Connection, table: str) -> bool:
    try:
        db.execute(f"SELECT 1 FROM {_quoted(table)} LIMIT 0")
    except sqlite3.Error:
        return False
    return True


def _with_memories(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """The tables whose rows have a text, by the name of a column or, where none is called so, by its length; and an id,
    a time or tags beside it: those that are called memories, else that with the longest texts and any like it."""
    likely = {}
    for name, sample in tables.items():
        columns = columns_of(sample)
        is_link = _roles(sample, LINK_NAMES).keys() >= {"from", "to", "type"}
        if columns["text"] and not is_link and any(columns[role] for role in ("id", "created_at", "tags", "agent")):
            likely[name] = sum(len(str(row[columns["text"][0]] or "")) for row in sample) / len(sample)
    called = [name for name in likely if "memor" in name.casefold()]
    if called or not likely:
        return called
    likeliest = max(likely, key=lambda name: likely[name])
    return [name for name in likely if tables[name][0].keys() == tables[likeliest][0].keys()]


def _roles(sample: Sequence[Mapping[str, Any]], names: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """By what it tells of a link or tag, the column; one column tells one thing."""
    columns = list(sample[0]) if sample else []
    roles: dict[str, str] = {}
    for role, called in names.items():
        free = [column for column in by_name(columns, called) if column not in roles.values()]
        if free:
            roles[role] = free[0]
    return roles


def _is_all_there(
    roles: Mapping[str, str],
    needed: Sequence[str],
    sample: Sequence[Mapping[str, Any]],
    ids: set[str],
    named: Sequence[str],
) -> bool:
    """Whether a table has the columns, and at least one row in it speaks of memories."""
    return all(role in roles for role in needed) and any(
        all(str(row[roles[role]]) in ids for role in named) for row in sample
    )


def _add_links(
    db: sqlite3.Connection, table: str, roles: Mapping[str, str], ids: set[str], links: dict[str, list[Link]]
) -> int:
    """Add the links of a table; how many of its rows are none."""
    left = 0
    for row in db.execute(f"SELECT * FROM {_quoted(table)}"):
        start = str(row[roles["from"]])
        try:
            link = as_link({role: row[column] for role, column in roles.items()})
        except UsageError:
            link = None
        if link is None or start not in ids:
            left += 1
        else:
            links.setdefault(start, []).append(link)
    return left


def _add_tags(
    db: sqlite3.Connection, table: str, roles: Mapping[str, str], ids: set[str], tags: dict[str, list[str]]
) -> int:
    """Add the tags of a table; how many of its rows are none."""
    left = 0
    for row in db.execute(f"SELECT * FROM {_quoted(table)}"):
        start, tag = str(row[roles["from"]]), row[roles["tag"]]
        if start not in ids or not isinstance(tag, str | int) or not str(tag).strip():
            left += 1
        else:
            tags.setdefault(start, []).append(str(tag))
    return left


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
