"""The word tables of a collection: one FTS5 table of the rows that everybody may read, one of the others.

FTS5 gets terms that the analyzer made and only proposes rows: how they rank is decided elsewhere. How rare a term is
comes from everybody's rows alone. A term is a quoted parameter, never syntax.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence

from notebook_sync.store.rows import Where
from notebook_sync.store.tables import LISTED, Cell, Table, clean

NOWHERE, EVERYONE, PRIVATE = 0, 1, 2  # `held`: which of the tables has a row
# Of more rows than the second, those with the rarest words are scored: at least the first, where there are.
_ENOUGH, _MOST = 1000, 2000
_MOST_TERMS = 64
_SATURATION = 1.2  # BM25's k1, as FTS5 has it


class WordTables:
    """The word tables of one collection, if it has texts. Every method runs inside its caller's transaction.

    FTS5 reads what it was given of a row, which it has to know to delete it, from a view on the row's packed terms.
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._name = table.name
        self._fields = dict(table.spec.text)
        self._columns = ", ".join(f'"{field}"' for field in self._fields)
        kinds = {EVERYONE: "words", PRIVATE: "private"} if "audience" in table.columns else {EVERYONE: "words"}
        # The number of commits, of rows that everybody may read, and of those with each term that was asked for since.
        self._known: tuple[int, int, dict[str, int]] = (-1, 0, {})
        self._tables = {held: f"{table.name}_{kind}" for held, kind in kinds.items() if self._fields}

    def statements(self) -> list[str]:
        """What creates the tables. The terms are ready: FTS5 parts them at spaces."""
        terms = ", ".join(f'terms_of(packed, {at}) AS "{field}"' for at, field in enumerate(self._fields))
        rows = f"SELECT n, {terms} FROM {self._name} JOIN {self._name}_heavy USING (n) WHERE held ="
        found = [f"CREATE VIEW {table}_given AS {rows} {held}" for held, table in self._tables.items()]
        for table in self._tables.values():
            options = f"{self._columns}, content='{table}_given', content_rowid='n', tokenize='ascii'"
            found.append(f"CREATE VIRTUAL TABLE {table} USING fts5({options})")
        vocabulary = f"CREATE VIRTUAL TABLE {self._name}_terms USING fts5vocab({self._name}_words, row)"
        return [*found, vocabulary] if found else []

    def held_by(self, audience: str | None) -> int:
        """Which table a row of this audience belongs to."""
        return PRIVATE if PRIVATE in self._tables and audience != "" else EVERYONE

    def rebuild(self, db: sqlite3.Connection) -> None:
        """Fill the tables from the terms that the rows keep."""
        for table in self._tables.values():
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")

    def replace(self, db: sqlite3.Connection, numbers: str, rows: Sequence[tuple[int, int, Sequence[str]]]) -> None:
        """Remove rows, by their numbers in JSON, then add rows: number, table, and the terms of each field, joined by
        spaces. Comes before their cells change, of which a damaged table is filled again."""
        marks = ", ".join("?" * (1 + len(self._fields)))
        for held, table in self._tables.items():
            # For DELETE, FTS5 would read all terms of a row twice.
            had = f"SELECT 'delete', n, {self._columns} FROM {table}_given WHERE n IN {LISTED}"
            db.execute(f"INSERT INTO {table} ({table}, rowid, {self._columns}) {had}", (numbers,))
            given = [(n, *terms) for n, at, terms in rows if at == held]
            db.executemany(f"INSERT INTO {table} (rowid, {self._columns}) VALUES ({marks})", given)

    def frequencies(self, db: sqlite3.Connection, terms: Collection[str]) -> tuple[int, dict[str, int]]:
        """How many rows everybody may read, and how many of them have each term in any field."""
        (commits,) = db.execute("SELECT value FROM state WHERE name = 'commits'").fetchone()
        held = self._known
        if held[0] != commits or db.in_transaction:
            (rows,) = db.execute(f"SELECT count(*) FROM {self._tables[EVERYONE]}_docsize").fetchone()
            held = self._known = (-1 if db.in_transaction else commits, int(rows), {})
        _, rows, known = held
        for term in [term for term in terms if term not in known]:  # FTS5 reads where each word is to count its rows
            found = db.execute(f"SELECT doc FROM {self._name}_terms WHERE term = ?", (clean(term),)).fetchone()
            known[term] = found[0] if found else 0
        return rows, {term: known[term] for term in terms}

    def search(
        self, db: sqlite3.Connection, terms: Iterable[str], where: Where, limit: int, private: bool
    ) -> dict[str, float]:
        """The scores of rows that have any of the terms, by id, the most promising first."""
        rows, counts = self.frequencies(db, list(dict.fromkeys(map(clean, terms)))[:_MOST_TERMS])
        hits = self._among_everyone(db, rows, {term: count for term, count in counts.items() if count}, where, limit)
        if private and PRIVATE in self._tables:
            rarity = {term: math.log(1 + (rows - count + 0.5) / (count + 0.5)) for term, count in counts.items()}
            hits += self._among_private(db, rarity, where, limit)
        return dict(sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:limit])

    def _among_everyone(
        self, db: sqlite3.Connection, rows: int, counts: Mapping[str, int], where: Where, limit: int
    ) -> list[tuple[str, float]]:
        """By FTS5's own score. To score a row costs many times as much as to find it: of very many rows, those with a
        word in the first field are scored, and the newest of those with the rarest words. A word of half the rows
        makes no difference then."""
        table = self._tables[EVERYONE]
        rarest = sorted(counts, key=lambda term: (counts[term], term))
        match, narrow = f"SELECT rowid FROM {table} WHERE {table} MATCH ?", ""
        values: list[Cell] = [_any_of(rarest)]
        if sum(counts.values()) > _MOST:
            telling = [term for term in rarest if counts[term] * 2 <= rows]
            rarest = telling if sum(counts[term] for term in telling) >= _ENOUGH else rarest
            values = [_any_of(rarest)]
            few = rarest[:1]
            while sum(counts[term] for term in few) < _ENOUGH:
                few = rarest[: len(few) + 1]
            newest = f"SELECT rowid FROM ({match} ORDER BY rowid DESC LIMIT {_MOST})"
            narrow = f"AND +rowid IN ({newest} UNION ALL {match})"
            values += [_any_of(few), f'{{"{next(iter(self._fields))}"}} : ({_any_of(rarest)})']
        scored = f"""SELECT rowid AS n, -bm25({table}, {", ".join(map(str, self._fields.values()))}) AS points
            FROM {table} WHERE {table} MATCH ? {narrow} ORDER BY points DESC LIMIT -1"""
        # Rows are looked up best first, until there are enough: to look up one costs as much as to score it. The inner
        # limit keeps the order.
        asked = f"""SELECT id, points FROM ({scored}) CROSS JOIN {self._name} USING (n)
            WHERE {self._table.compile(where, values)} LIMIT ?"""
        return db.execute(asked, (*values, limit)).fetchall() if rarest else []

    def _among_private(
        self, db: sqlite3.Connection, rarity: Mapping[str, float], where: Where, limit: int
    ) -> list[tuple[str, float]]:
        """By the presence of words, each as rare as in everybody's rows: no score depends on a row that the session
        may not read."""
        table = self._tables[PRIVATE]
        part = f"SELECT rowid AS n, ? AS term, ? AS rarity, ? AS weight FROM {table} WHERE {table} MATCH ?"
        values: list[Cell] = []
        for term, weight_of_term in rarity.items():
            for field, weight in self._fields.items():
                values += [term, weight_of_term, weight, f'{{"{field}"}} : {_quoted(term)}']
        scored = f"""SELECT n, rarity * sum(weight) * {_SATURATION + 1} / (sum(weight) + {_SATURATION}) AS points
            FROM ({" UNION ALL ".join([part] * (len(values) // 4))}) GROUP BY n, term"""
        condition = self._table.compile(where, values)
        asked = f"""SELECT id, sum(points) AS total FROM ({scored}) AS scored JOIN {self._name} USING (n)
            WHERE {condition} GROUP BY id ORDER BY total DESC, id LIMIT ?"""
        return db.execute(asked, (*values, limit)).fetchall() if rarity else []


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _any_of(terms: Iterable[str]) -> str:
    return " OR ".join(map(_quoted, terms))
