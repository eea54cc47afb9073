"""The tables of a collection, and its values and conditions as SQLite takes them. Pure: text that SQLite can compare,
numbers in range, times as milliseconds; every value is a parameter, every name declared.

A collection `c` has the table `c` with light columns; `c_heavy` with the others in one cell, and the terms that FTS5
was given; and `c_many`, by which `Has` finds rows, filled by triggers. `n` is common to them, and the rowid in the word
tables. A row that ended stays for a year, with its kept columns: `ended_at` says since when, negative where nothing is
kept.
"""

from __future__ import annotations

import math
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from notebook_sync.store.rows import (
    NOTHING,
    All,
    CollectionSpec,
    Column,
    ColumnType,
    Either,
    Few,
    Has,
    Is,
    Not,
    Row,
    Where,
    from_milliseconds,
    to_milliseconds,
)

Cell = str | int | float | bytes | None

_LARGEST = 2**63 - 1
_DEEPEST = 100
_SMALL = 200  # bytes
# What a heavy cell holds next to columns: the terms of each text of the row.
_TERMS: Final = ""

from_json: Final[Callable[[str | bytes], Any]] = msgspec.json.decode


def clean(text: str) -> str:
    """Text of the same length without NULs and lone surrogates."""
    if not text.isascii():
        text = text.encode(errors="replace").decode()
    return text.replace("\0", "\ufffd") if "\0" in text else text


def as_json(value: Any) -> str:
    """JSON of any value that YAML or a program may give."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.json.encode(_plain(value)).decode()


def as_list(values: Any) -> str:
    """JSON of a many field: texts, each once."""
    return as_json(list(dict.fromkeys(map(clean, values))))


def pack(head: Mapping[str, Cell], tail: Mapping[str, Any], *, compress: bool) -> bytes:
    """Values by column as one cell: most of a compression is spent on its start, and texts of one row are alike. Of the
    head alone, `unpack` takes less time."""
    first, rest = msgspec.msgpack.encode(head), msgspec.msgpack.encode(tail)
    raw = first + rest
    is_packed = compress and len(raw) > _SMALL
    return len(first).to_bytes(4) + (b"z" + zlib.compress(raw, 3) if is_packed else b"-" + raw)


def unpack(cell: bytes, *, whole: bool = True) -> dict[str, Any]:
    """The values in a heavy cell, or those of its head."""
    length, raw = int.from_bytes(cell[:4]), cell[5:]
    if cell[4:5] == b"z":
        raw = zlib.decompressobj().decompress(raw, 0 if whole else length)  # 0: all of it
    found: dict[str, Any] = msgspec.msgpack.decode(raw[:length])
    return {**found, **msgspec.msgpack.decode(raw[length:])} if whole else found


@lru_cache(maxsize=1)  # FTS5 asks for one field after the other
def _terms_in(cell: bytes) -> list[str]:
    found: list[str] = unpack(cell)[_TERMS]
    return found


def terms_of(cell: bytes, at: int) -> str:
    """The terms of one text of the row with this heavy cell."""
    return _terms_in(cell)[at]


def _plain(value: Any, depth: int = 0) -> Any:
    """The same without what msgspec refuses: odd keys, lone surrogates, other types, endless nesting."""
    if value is None or isinstance(value, int | float | bytes | date):
        return value
    if isinstance(value, dict) and depth < _DEEPEST:
        return {clean(str(key)): _plain(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth < _DEEPEST:
        return [_plain(each, depth + 1) for each in value]
    return clean(str(value)) if isinstance(value, str) or depth < _DEEPEST else "…"


def _as_milliseconds(value: datetime | str) -> int:
    return to_milliseconds(datetime.fromisoformat(value) if isinstance(value, str) else value)


# How a value of each type is stored, and read where the cell is not the value.
CODECS: Final[dict[ColumnType, tuple[Callable[[Any], Cell], Callable[[Any], Any] | None]]] = {
    "text": (lambda value: clean(str(value)), None),
    "int": (lambda value: max(-_LARGEST - 1, min(_LARGEST, int(value))), None),
    "real": (lambda value: float(value) if math.isfinite(value) else None, None),
    "time": (_as_milliseconds, from_milliseconds),
    "json": (as_json, from_json),
    "list": (as_list, from_json),
    "bytes": (lambda value: b64decode(value) if isinstance(value, str) else bytes(value), None),
    "blob": (bytes, None),
}

# A list of any length is one parameter.
LISTED: Final = "(SELECT value FROM json_each(?))"
_TYPES: Final[dict[ColumnType, str]] = {
    "text": "TEXT",
    "json": "TEXT",
    "list": "TEXT",
    "int": "INTEGER",
    "time": "INTEGER",
    "real": "REAL",
    "bytes": "BLOB",
    "blob": "BLOB",
}
_COMPARED: Final = {"=": "IS", "!=": "IS NOT", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

# What follows a row: a note that is put takes its path over from another row, which may get it back in the same batch;
# vectors and breadcrumbs go where the row goes. A process that holds vectors in memory asks how often they changed.
TRIGGERS: Final = (
    """CREATE TRIGGER documents_taken BEFORE INSERT ON documents WHEN new.ended_at IS NULL AND EXISTS
        (SELECT 1 FROM documents WHERE path = new.path AND id <> new.id AND ended_at IS NULL)
    BEGIN
        UPDATE state SET value = value + 1 WHERE name = 'rev';
        UPDATE documents SET path = NULL, seal = NULL, rev = (SELECT value FROM state WHERE name = 'rev')
            WHERE path = new.path AND id <> new.id AND ended_at IS NULL;
    END""",
    """CREATE TRIGGER history_moved AFTER UPDATE OF id ON documents BEGIN
        UPDATE OR REPLACE history SET note = new.id, id = new.id || '@' || version WHERE note = old.id;
    END""",
    "CREATE TRIGGER history_over AFTER DELETE ON documents BEGIN DELETE FROM history WHERE note = old.id; END",
    *(
        f"""CREATE TRIGGER vectors_{event.lower()} AFTER {event} ON vectors BEGIN
            UPDATE state SET value = value + 1 WHERE name = 'vectors';
        END"""
        for event in ("INSERT", "UPDATE", "DELETE")
    ),
    *(
        statement.replace("NAME", name)
        for name in ("documents", "facts")
        for statement in (
            """CREATE TRIGGER NAME_moved AFTER UPDATE OF id ON NAME BEGIN
                UPDATE state SET value = value + 1 WHERE name = 'local_rev';
                UPDATE OR REPLACE vectors SET id = substr(id, 1, length(id) - length(old.id)) || new.id,
                    rev = (SELECT value FROM state WHERE name = 'local_rev')
                    WHERE id IN ('NAME:' || old.id, '2:NAME:' || old.id);
            END""",
            """CREATE TRIGGER NAME_left AFTER UPDATE OF ended_at ON NAME WHEN new.ended_at IS NOT NULL BEGIN
                DELETE FROM vectors_heavy WHERE n IN
                    (SELECT n FROM vectors WHERE id IN ('NAME:' || old.id, '2:NAME:' || old.id));
                DELETE FROM vectors WHERE id IN ('NAME:' || old.id, '2:NAME:' || old.id);
            END""",
        )
    ),
)


# How many rows indexes with a condition have, and have of each value: without, SQLite takes them for a few rows, and
# would rather read all notes of a collection than look up a hundred ids. Other indexes are judged as before.
STATISTICS: Final = (
    "ANALYZE sqlite_schema",  # makes the table, and later reads it
    "DELETE FROM sqlite_stat1",
    """INSERT INTO sqlite_stat1 VALUES ('documents', 'documents_unique', '1000000 1'),
        ('documents', 'documents_0', '1000000 500000 1 1'), ('documents', 'documents_1', '1000000 1000 500 500'),
        ('documents', 'documents_2', '1000000 100 100 50 50')""",
    "ANALYZE sqlite_schema",
)


class Table:
    """A collection's columns, and the statements that change its rows. A many field is a projected column."""

    def __init__(self, spec: CollectionSpec) -> None:
        self.spec = spec
        self.name = spec.name
        self.counter = "rev" if spec.feed else "local_rev"
        own = (Column("n", "int"), Column("id"), Column("rev", "int"), Column("ended_at", "time"))
        columns = (*spec.columns, *(Column(name, "list", default=()) for name in spec.many))
        self.columns = {column.name: column for column in (*own, *columns)}
        self._encoders = {name: (column.default, CODECS[column.type][0]) for name, column in self.columns.items()}
        self.heavy = [column.name for column in columns if column.heavy]
        self.kept = [column.name for column in columns if column.kept]
        self.projected = [column.name for column in columns if not (column.heavy or column.kept)]
        self.light = ["id", "rev", *(column.name for column in columns if not column.heavy)]
        self.known_by = [name for name in ("path", "digest", "day") if name in self.columns]

        # Heavy columns share one cell, of which the first alone takes less time to read.
        self.has_heavy = bool(self.heavy or spec.text)
        self._compresses = all(self.columns[name].type != "blob" for name in self.heavy)

        put = ["rev", "seal", "held", "ended_at", *self.projected]
        self.insert = _upsert(spec.name, ["n", "rev", "id", *put[1:], *self.kept], put)
        if spec.versioned_by:
            self.insert += f", version = version + ({spec.versioned_by} IS NOT excluded.{spec.versioned_by})"
        if spec.first_wins:
            self.insert += f' ON CONFLICT ("{spec.unique}") WHERE ended_at IS NULL DO NOTHING'
        self.insert_heavy = f"INSERT OR REPLACE INTO {spec.name}_heavy VALUES (?, ?)"
        self.insert_waiting = _upsert(spec.name, ["id", "ended_at", *self.known_by, *self.kept], self.kept)
        # What came from the file goes, but for what the row is known by if the file comes back.
        blank = "".join(f', "{name}" = NULL' for name in self.projected if name not in self.known_by)
        self.end = f"UPDATE {spec.name} SET ended_at = ?, rev = ?, seal = NULL, held = 0{blank} WHERE n = ?"

    def statements(self) -> list[str]:
        """What creates the tables. `seal` is of what was last put, `held` says which word table has the row."""
        name, spec = self.name, self.spec
        light = "".join(f', "{each}" {_TYPES[self.columns[each].type]}' for each in self.light[2:])
        unique = f'UNIQUE INDEX {name}_unique ON {name} ("{spec.unique}") WHERE ended_at IS NULL'
        indexed = [column.name for column in spec.columns if column.indexed and column.name != spec.unique]
        statements = [
            f"CREATE TABLE {name} (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, rev INTEGER NOT NULL DEFAULT 0,"
            f" seal INTEGER, held INTEGER NOT NULL DEFAULT 0, ended_at INTEGER{light})",
            *(f'CREATE INDEX "{name}_{each}" ON {name} ("{each}")' for each in ["rev"] * spec.feed + indexed),
            *(f"CREATE INDEX {name}_{at} ON {name} {each}" for at, each in enumerate(spec.indexes)),
        ]
        # A table takes a page, empty or not.
        if self.has_heavy:
            statements.append(f"CREATE TABLE {name}_heavy (n INTEGER PRIMARY KEY, packed BLOB)")
        if spec.feed:
            statements.append(f"CREATE INDEX {name}_ended ON {name} (ended_at) WHERE ended_at IS NOT NULL")
        if spec.unique:
            statements.append(f"CREATE {unique}")
        if spec.many:
            columns = "field INTEGER, value TEXT, n INTEGER, PRIMARY KEY (field, value, n)"
            statements.append(f"CREATE TABLE {name}_many ({columns}) WITHOUT ROWID")
        return [*statements, *(each for at, field in enumerate(spec.many) for each in _list_triggers(name, at, field))]

    def cells(self, names: Iterable[str], row: Row) -> list[Cell]:
        """The row's values as stored, or its columns' defaults."""
        cells = list[Cell]()
        for name in names:
            value, (default, encode) = row.get(name), self._encoders[name]
            value = default if value is None else value
            cells.append(None if value is None else encode(value))
        return cells

    def pack(self, row: Row, terms: Sequence[str]) -> bytes:
        """The heavy cell of a row."""
        values = dict(zip(self.heavy, self.cells(self.heavy, row), strict=True))
        head, tail = self.heavy[:1], self.heavy[1:]
        rest = {**{name: values[name] for name in tail}, **({_TERMS: terms} if self.spec.text else {})}
        return pack({name: values[name] for name in head}, rest, compress=self._compresses)

    def sql(self, name: str) -> str:
        """A column in SQL, NULL for a heavy one. Raises KeyError for a name that the collection does not have."""
        return "NULL" if self.columns[name].heavy else f'{self.name}."{name}"'

    def compile(self, where: Where, values: list[Cell]) -> str:
        """A condition as one SQL expression; its parameters are added to `values`."""
        match where:
            case All(conditions):
                return f"({' AND '.join(self.compile(each, values) for each in conditions) or 1})"
            case Either(conditions):
                return f"({' OR '.join(self.compile(each, values) for each in conditions) or 0})"
            case Few(conditions):
                found = f"SELECT n FROM {self.name} WHERE ended_at IS NULL AND"
                asked = " UNION ALL ".join(f"{found} {self.compile(each, values)}" for each in conditions)
                return f"{self.name}.n IN ({asked})"
            case Not(condition):
                return f"NOT coalesce({self.compile(condition, values)}, 0)"
            case Has(name, wanted):
                values += [self.spec.many.index(name), as_list(wanted)]
                return f"{self.name}.n IN (SELECT n FROM {self.name}_many WHERE field = ? AND value IN {LISTED})"
        column, encode = self.sql(where.field), CODECS[self.columns[where.field].type][0]
        if where.op == "!=" and where.value is None:
            return f"+{column} IS NOT NULL"  # true of most rows: by an index of the column, SQLite would sort them all
        if where.op == ">" and where.value == "":
            return f"{column} > ''"  # by a parameter, SQLite would not know that an index of such rows has them all
        if where.op == "under":
            folder = clean(where.value).rstrip("/")
            values += [f"{folder}/", f"{folder}0"]  # "0" follows "/"
            return f"({column} >= ? AND {column} < ?)"
        if where.op == "in":
            values.append(as_json([encode(each) for each in where.value if each is not None]))
            return f"({column} IN {LISTED}{f' OR {column} IS NULL' if None in where.value else ''})"
        values.append(None if where.value is None else encode(where.value))
        return f"{column} {_COMPARED[where.op]} ?"


def beyond(order: Sequence[str], after: Sequence[Any]) -> Where:
    """What comes behind the row with the values `after` in this order, in which NULL is the least."""
    if not order:
        return NOTHING
    name, value = order[0].removeprefix("-"), after[0]
    further: Where = Is(name, "!=", None) if value is None else Is(name, ">", value)
    if order[0].startswith("-"):
        further = NOTHING if value is None else Not(Is(name, ">=", value))
    return Either((further, All((Is(name, "=", value), beyond(order[1:], after[1:])))))


def _upsert(table: str, columns: Sequence[str], replaced: Sequence[str]) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    changes = ", ".join(f'"{column}" = excluded."{column}"' for column in replaced) or "n = n"
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT (id) DO UPDATE SET {changes}"


def _list_triggers(name: str, at: int, field: str) -> tuple[str, str]:
    add = f"INSERT INTO {name}_many SELECT {at}, value, new.n FROM json_each(new.{field});"
    listed = f"field = {at} AND n = old.n AND value IN (SELECT value FROM json_each(old.{field}))"
    changed = f"AFTER UPDATE OF {field} ON {name} WHEN old.{field} IS NOT new.{field}"
    return (
        f"CREATE TRIGGER {name}_{field}_added AFTER INSERT ON {name} BEGIN {add} END",
        f"CREATE TRIGGER {name}_{field}_set {changed} BEGIN DELETE FROM {name}_many WHERE {listed}; {add} END",
    )
