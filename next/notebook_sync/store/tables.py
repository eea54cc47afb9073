"""The tables of a collection, and conditions on them, as SQL. Pure; every value is a parameter, every name declared.

A collection `c` has the table `c` with light columns; `c_heavy` with the others and the terms that FTS5 was given; and
`c_many`, by which `Has` finds rows, filled by triggers. `n` is common to them, and the rowid in the word tables. A row
that ended stays for a year, with its kept columns: `ended_at` says since when, negative where nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from notebook_sync.store.cells import CODECS, Cell, as_json, as_list, clean
from notebook_sync.store.rows import (
    EVERYTHING,
    NOTHING,
    All,
    CollectionSpec,
    Column,
    ColumnType,
    Either,
    Has,
    Is,
    Not,
    Row,
    Where,
)

# A list of any length is one parameter.
LISTED: Final = "(SELECT value FROM json_each(?))"
_TYPES: Final[dict[ColumnType, str]] = {
    "text": "TEXT",
    "json": "TEXT",
    "list": "TEXT",
    "int": "INTEGER",
    "time": "INTEGER",
    "real": "REAL",
}
_COMPARED: Final = {"=": "IS", "!=": "IS NOT", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

# What follows a row: a note that is put takes its path over from another row, which may get it back in the same batch;
# vectors and breadcrumbs go where the row goes.
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
        statement.replace("NAME", name)
        for name in ("documents", "facts")
        for statement in (
            """CREATE TRIGGER NAME_moved AFTER UPDATE OF id ON NAME BEGIN
                UPDATE state SET value = value + 1 WHERE name = 'local_rev';
                UPDATE OR REPLACE vectors SET id = 'NAME:' || new.id,
                    rev = (SELECT value FROM state WHERE name = 'local_rev') WHERE id = 'NAME:' || old.id;
            END""",
            """CREATE TRIGGER NAME_left AFTER UPDATE OF ended_at ON NAME WHEN new.ended_at IS NOT NULL BEGIN
                DELETE FROM vectors_heavy WHERE n IN (SELECT n FROM vectors WHERE id = 'NAME:' || old.id);
                DELETE FROM vectors WHERE id = 'NAME:' || old.id;
            END""",
        )
    ),
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
        self.heavy = [column.name for column in columns if column.heavy]
        self.kept = [column.name for column in columns if column.kept]
        self.projected = [column.name for column in columns if not (column.heavy or column.kept)]
        self.light = ["id", "rev", *(column.name for column in columns if not column.heavy)]
        self.known_by = [name for name in ("path", "digest", "day") if name in self.columns]

        put, put_heavy = ["rev", "seal", "held", "ended_at", *self.projected], ["terms_put", *self.heavy]
        self.insert = _upsert(spec.name, "id", ["n", "rev", "id", *put[1:], *self.kept], put)
        if spec.versioned_by:
            self.insert += f", version = version + ({spec.versioned_by} IS NOT excluded.{spec.versioned_by})"
        if spec.first_wins:
            self.insert += f' ON CONFLICT ("{spec.unique}") WHERE ended_at IS NULL DO NOTHING'
        self.insert_heavy = _upsert(f"{spec.name}_heavy", "n", ["n", *put_heavy], put_heavy)
        self.insert_waiting = _upsert(spec.name, "id", ["id", "ended_at", *self.known_by, *self.kept], self.kept)
        # What came from the file goes, but for what the row is known by if the file comes back.
        blank = "".join(f', "{name}" = NULL' for name in self.projected if name not in self.known_by)
        self.end = f"UPDATE {spec.name} SET ended_at = ?, rev = ?, seal = NULL, held = 0{blank} WHERE n = ?"

    def statements(self) -> list[str]:
        """What creates the tables. `seal` is of what was last put, `held` says which word table has the row."""
        name, spec = self.name, self.spec
        declared = {each: f', "{each}" {_TYPES.get(column.type, "BLOB")}' for each, column in self.columns.items()}
        light, heavy = ("".join(declared[each] for each in names) for names in (self.light[2:], self.heavy))
        unique = f'UNIQUE INDEX {name}_unique ON {name} ("{spec.unique}") WHERE ended_at IS NULL'
        indexed = ["rev", *(column.name for column in spec.columns if column.indexed and column.name != spec.unique)]
        return [
            f"CREATE TABLE {name} (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, rev INTEGER NOT NULL DEFAULT 0,"
            f" seal INTEGER, held INTEGER NOT NULL DEFAULT 0, ended_at INTEGER{light})",
            f"CREATE TABLE {name}_heavy (n INTEGER PRIMARY KEY, terms_put BLOB{heavy})",
            f"CREATE TABLE {name}_many (field INTEGER, value TEXT, n INTEGER,"
            " PRIMARY KEY (field, value, n)) WITHOUT ROWID",
            f"CREATE INDEX {name}_ended ON {name} (ended_at) WHERE ended_at IS NOT NULL",
            *(f'CREATE INDEX "{name}_{each}" ON {name} ("{each}")' for each in indexed),
            *([f"CREATE {unique}"] if spec.unique else []),
            *(trigger for at, field in enumerate(spec.many) for trigger in _list_triggers(name, at, field)),
        ]

    def cells(self, names: Iterable[str], row: Row) -> list[Cell]:
        """The row's values as stored, or its columns' defaults."""
        found = [(self.columns[name], row.get(name)) for name in names]
        values = [(column.type, column.default if value is None else value) for column, value in found]
        return [None if value is None else CODECS[kind][0](value) for kind, value in values]

    def sql(self, name: str) -> str:
        """A column in SQL. Raises KeyError for a name that the collection does not have."""
        return f'{self.name}{"_heavy" * self.columns[name].heavy}."{name}"'

    def compile(self, where: Where, values: list[Cell]) -> str:
        """A condition as one SQL expression; its parameters are added to `values`."""
        match where:
            case All(conditions):
                return f"({' AND '.join(self.compile(each, values) for each in conditions) or 1})"
            case Either(conditions):
                return f"({' OR '.join(self.compile(each, values) for each in conditions) or 0})"
            case Not(condition):
                return f"NOT coalesce({self.compile(condition, values)}, 0)"
            case Has(name, wanted):
                values += [self.spec.many.index(name), as_list(wanted)]
                return f"{self.name}.n IN (SELECT n FROM {self.name}_many WHERE field = ? AND value IN {LISTED})"
        column, encode = self.sql(where.field), CODECS[self.columns[where.field].type][0]
        if where.op == "under":
            folder = clean(where.value).rstrip("/")
            values += [f"{folder}/", f"{folder}0"]  # "0" follows "/"
            return f"({column} >= ? AND {column} < ?)"
        if where.op == "in":
            values.append(as_json([encode(each) for each in where.value if each is not None]))
            return f"({column} IN {LISTED}{f' OR {column} IS NULL' if None in where.value else ''})"
        values.append(None if where.value is None else encode(where.value))
        return f"{column} {_COMPARED[where.op]} ?"


def assume(where: Where, field: str, value: str) -> Where:
    """The condition for rows whose `field` is `value`: comparisons for equality with it are decided."""
    match where:
        case Is(name, "=", wanted) if name == field:
            return EVERYTHING if wanted == value else NOTHING
        case All(conditions):
            return All(tuple(assume(each, field, value) for each in conditions))
        case Either(conditions):
            left = tuple(assume(each, field, value) for each in conditions)
            return EVERYTHING if EVERYTHING in left else Either(left)
    return where


def beyond(order: Sequence[str], after: Sequence[Any]) -> Where:
    """What comes behind the row with the values `after` in this order, in which NULL is the least."""
    if not order:
        return NOTHING
    name, value = order[0].removeprefix("-"), after[0]
    further: Where = Is(name, "!=", None) if value is None else Is(name, ">", value)
    if order[0].startswith("-"):
        further = NOTHING if value is None else Not(Is(name, ">=", value))
    return Either((further, All((Is(name, "=", value), beyond(order[1:], after[1:])))))


def _upsert(table: str, key: str, columns: Sequence[str], replaced: Sequence[str]) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    changes = ", ".join(f'"{column}" = excluded."{column}"' for column in replaced) or "n = n"
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {changes}"


def _list_triggers(name: str, at: int, field: str) -> tuple[str, str]:
    add = f"INSERT INTO {name}_many SELECT {at}, value, new.n FROM json_each(new.{field});"
    listed = f"field = {at} AND n = old.n AND value IN (SELECT value FROM json_each(old.{field}))"
    changed = f"AFTER UPDATE OF {field} ON {name} WHEN old.{field} IS NOT new.{field}"
    return (
        f"CREATE TRIGGER {name}_{field}_added AFTER INSERT ON {name} BEGIN {add} END",
        f"CREATE TRIGGER {name}_{field}_set {changed} BEGIN DELETE FROM {name}_many WHERE {listed}; {add} END",
    )
