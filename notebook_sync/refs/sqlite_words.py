"""A word index that is brought up to date when it is asked, not when rows are written: a sync never waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import Any

from notebook_sync.embedded import Embedded
from notebook_sync.refs.ranking import POOL, words

_PIECE = 1000
# A row that is written anew gets another number and leaves its words behind, under one that no row has. At so many left
# behind for each row, and not for a few, the index is made anew.
_LEFT_BEHIND, _FEW = 3, 5000
# To weigh a match costs microseconds: of a word that more rows have than these, only the newest are candidates.
_COMMON = 3000


@dataclass(frozen=True, slots=True)
class LateWords:
    """The index `name` of the words of `table`, whose rows have growing numbers that are never given again.

    number: the column of these numbers. columns: what `texts` is given of a row, to say what is indexed of it.
    weights: of each indexed column.
    """

    name: str
    table: str
    number: str
    columns: str
    indexed: tuple[str, ...]
    weights: tuple[float, ...]
    texts: Callable[[Sequence[Any]], Sequence[str]]

    @property
    def schema(self) -> str:
        """The statement that makes the index. Words are folded before they come to it."""
        return f"""CREATE VIRTUAL TABLE IF NOT EXISTS {self.name} USING fts5 ({", ".join(self.indexed)}, content = '',
            tokenize = "porter unicode61 remove_diacritics 0 tokenchars '_'");"""

    def candidates(
        self, db: Embedded, asked: Sequence[str], columns: str, condition: str, values: Sequence[Any]
    ) -> Iterator[Any]:
        """`columns` of the rows that have one of the words and meet the condition; some of them twice."""
        self.catch_up(db)
        among = f"""SELECT {columns} FROM {self.name} JOIN {self.table}
            ON {self.table}.{self.number} = {self.name}.rowid WHERE {self.name} MATCH ? AND ({condition})"""
        common = [word for word in asked if self._is_common(db, word)]
        if rare := [word for word in asked if word not in common]:
            best = f"bm25({', '.join([self.name, *map(str, self.weights)])})"
            yield from db.rows(f"{among} ORDER BY {best} LIMIT {POOL}", [_any_of(rare), *values])
        if len(common) > 1:
            yield from db.rows(f"{among} ORDER BY {self.name}.rowid DESC LIMIT {POOL}", [_all_of(common), *values])
        for word in common:
            yield from db.rows(f"{among} ORDER BY {self.name}.rowid DESC LIMIT {POOL}", [_any_of([word]), *values])

    def catch_up(self, db: Embedded) -> None:
        """Index the rows that were written since the last time, some at a time: who writes waits for one piece only."""
        while db.rows(f"SELECT 1 FROM {self.table} WHERE {self.number} > ({self._mark('upto')}) LIMIT 1"):
            with db.writing() as connection:
                there = _one(connection, f"SELECT count(*) FROM {self.table}")
                if _one(connection, self._mark("held")) > _LEFT_BEHIND * there + _FEW:
                    connection.execute(f"INSERT INTO {self.name} ({self.name}) VALUES ('delete-all')")
                    self._note(connection, upto=0, held=0)
                self._add(connection)

    def free_number(self, connection: Connection) -> int:
        """A number above all that rows have, and above all whose words are indexed."""
        highest = f"SELECT max(coalesce(max({self.number}), 0), ({self._mark('upto')})) FROM {self.table}"
        return _one(connection, highest) + 1

    def _add(self, connection: Connection) -> None:
        piece = connection.execute(
            f"""SELECT {self.number}, {self.columns} FROM {self.table}
            WHERE {self.number} > ({self._mark("upto")}) ORDER BY {self.number} LIMIT {_PIECE}"""
        ).fetchall()
        if not piece:  # somebody else was faster
            return
        marks = ", ".join("?" * len(self.indexed))
        statement = f"INSERT INTO {self.name} (rowid, {', '.join(self.indexed)}) VALUES (?, {marks})"
        connection.executemany(statement, [(number, *map(_searchable, self.texts(row))) for number, *row in piece])
        self._note(connection, upto=piece[-1][0], held=_one(connection, self._mark("held")) + len(piece))

    def _is_common(self, db: Embedded, word: str) -> bool:
        counted = f"SELECT count(*) FROM (SELECT 1 FROM {self.name} WHERE {self.name} MATCH ? LIMIT {_COMMON + 1})"
        return bool(db.rows(counted, [_any_of([word])])[0][0] > _COMMON)

    def _mark(self, what: str) -> str:
        """The highest number indexed (`upto`), or how many rows were (`held`)."""
        return f"SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM meta WHERE name = '{self.name}_{what}'"

    def _note(self, connection: Connection, **marks: int) -> None:
        connection.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)",
            [(f"{self.name}_{what}", str(value)) for what, value in marks.items()],
        )


def _any_of(asked: Sequence[str]) -> str:
    return " OR ".join(f'"{word}"' for word in asked)


def _all_of(asked: Sequence[str]) -> str:
    return " AND ".join(f'"{word}"' for word in asked)


def _searchable(text: str) -> str:
    """A text as it is indexed: its words as ranking knows them, whatever marks stand between."""
    return text if text.isascii() and "\0" not in text else " ".join(words(text))


def _one(connection: Connection, statement: str) -> int:
    return int(connection.execute(statement).fetchone()[0])
