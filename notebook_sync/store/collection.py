"""One collection of the index: rows in, rows out. What is in a note is set by `put`; what only the database knows
about it, by `update`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as AnyCollection
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from notebook_sync.errors import IndexDamaged
from notebook_sync.store.rows import (
    EVERYTHING,
    Analyzer,
    CollectionSpec,
    Column,
    Few,
    Is,
    Row,
    Where,
    both,
)
from notebook_sync.store.sqlite import Database
from notebook_sync.store.tables import CODECS, LISTED, Cell, Table, as_json, beyond, clean, unpack
from notebook_sync.store.words import NOWHERE, WordTables

_Answer = TypeVar("_Answer")
YEAR = 365 * 86_400_000  # milliseconds
# SQLite makes a real number of an integer that is too wide.
_INCREASED = 'CAST(coalesce("{0}", 0) + ? AS INTEGER)'


class Collection:
    """The rows of one `CollectionSpec`. Each method is one transaction, or a part of the caller's `Index.write()`."""

    def __init__(self, database: Database, spec: CollectionSpec, analyzer: Analyzer) -> None:
        self.spec = spec
        self.table = Table(spec)
        self._words = WordTables(self.table)
        self._db = database
        self._analyzer = analyzer
        self._name = spec.name

    # ---- reads

    def one(self, row_id: str, *, heavy: bool = True) -> Row | None:
        """The row, or None."""
        return next(iter(self.get([row_id], heavy=heavy).values()), None)

    def get(self, ids: AnyCollection[str], *, heavy: bool = True) -> dict[str, Row]:
        """Rows by id, in no order; those that do not exist are left out."""
        return {row["id"]: row for row in self.find(Is("id", "in", ids), heavy=heavy)}

    def find(
        self,
        where: Where = EVERYTHING,
        *,
        order: Sequence[str] = (),
        limit: int = -1,
        after: Sequence[Any] | None = None,
        fields: Sequence[str] | None = None,
        heavy: bool = False,
    ) -> list[Row]:
        """Rows that match, with all light columns, or only `fields`, which may name heavy ones.

        `order`: columns, `-` before one that descends; equal rows are in order of id. NULL comes first, or last where
        it descends. `after`: a value for each item of `order`, those of the last row of the page before; a caller who
        pages names `id` last. `limit` -1: all.
        """
        names = [*self.table.light, *self.table.heavy * heavy] if fields is None else fields
        where = where if after is None else both(where, beyond(order, after))
        by = [self.table.sql(each.removeprefix("-")) + " DESC" * each.startswith("-") for each in (*order, "id")]
        if limit > 0 and order and order[0].startswith("-"):
            # By an index, SQLite finds the last row at once, but it would sort all rows before it returns the first.
            first = order[0].removeprefix("-")
            near = self._select(["n", first], where, f"ORDER BY {by[0]} LIMIT {limit:d}")
            tied = [both(where, Is(first, "=", value)) for _, value in near[-1:]]
            where = Few((Is("n", "in", [n for n, _ in near]), *tied))
        found = self._select(names, where, f"ORDER BY {', '.join(by)} LIMIT {limit:d}")
        return [dict(zip(names, values, strict=True)) for values in found]

    def tuples(self, fields: Sequence[str], where: Where = EVERYTHING) -> list[tuple[Any, ...]]:
        """Columns of the rows that match, in no order: the fast way to scan a collection."""
        return self._select(fields, where)

    def stored(self, fields: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Light columns of all rows, one row at a time, each value as it is stored: JSON and times are not decoded."""
        columns = ", ".join(map(self.table.sql, fields))
        with self._db.read() as db:
            yield from db.execute(f"SELECT {columns} FROM {self._name} WHERE ended_at IS NULL")

    def count(self, where: Where = EVERYTHING) -> int:
        """How many rows match."""
        values: list[Cell] = []
        asked = f"SELECT count(*) FROM {self._name} WHERE ended_at IS NULL AND {self.table.compile(where, values)}"
        with self._db.read() as db:
            return int(db.execute(asked, values).fetchone()[0])

    def distinct(self, field: str, where: Where = EVERYTHING) -> dict[Any, int]:
        """The texts or numbers in a column or a many field of the rows that match, and how many rows have each."""
        values, name = list[Cell](), self._name
        rows = f"{name} WHERE ended_at IS NULL AND {self.table.compile(where, values)}"
        asked = f"SELECT {self.table.sql(field)}, count(*) FROM {rows} GROUP BY 1"
        if field in self.spec.many:
            among = "" if where == EVERYTHING else f"AND n IN (SELECT n FROM {rows})"  # rows that ended have no values
            of_field = f"field = {self.spec.many.index(field)} {among}"
            asked = f"SELECT value, count(*) FROM {name}_many WHERE {of_field} GROUP BY 1"
        with self._db.read() as db:
            return dict(db.execute(asked, values).fetchall())

    def ended(self, where: Where = EVERYTHING) -> list[Row]:
        """Rows that ended within a year and may come back, the latest first: id, rev, ended_at; digest, path, day and
        the kept columns, where the collection has them."""
        names = ["id", "rev", "ended_at", *self.table.known_by, *self.table.kept]
        found = self._select(names, where, "ORDER BY ended_at DESC, id", f"ended_at > {_now() - YEAR}")
        return [dict(zip(names, values, strict=True)) for values in found]

    def known(self, ids: AnyCollection[str]) -> set[str]:
        """Those of the ids that a row has, or had within a year."""
        lately = f"coalesce(abs(ended_at), {_now()}) > {_now() - YEAR}"
        return {id for (id,) in self._select(["id"], Is("id", "in", ids), alive=lately)}

    def search(
        self, terms: Sequence[str], where: Where = EVERYTHING, *, limit: int = 100, private: bool = False
    ) -> dict[str, float]:
        """Rows that match and have any of the terms, the most promising first, by the weights of the spec: the engine's
        scores by id, greater is better, which are only a proposal for ranking.

        `terms` are the analyzer's; the first 64 different ones count. `private`: also rows that not every session may
        read, of which `where` must admit only those that this one may. Every number that a score depends on comes
        from rows of audience "".
        """
        return self._with_words(partial(self._words.search, terms=terms, where=where, limit=limit, private=private))

    def frequencies(self, terms: AnyCollection[str]) -> tuple[int, dict[str, int]]:
        """How many rows have audience "", and how many of them have each term in any field."""
        with self._db.read() as db:
            return self._words.frequencies(db, terms)

    # ---- writes

    def put(self, rows: Sequence[Row]) -> None:
        """Insert rows, or set the projected columns of those that exist; a missing field is set to its default.

        A row equal to what was last put changes nothing. A row that cannot be stored raises before anything is
        written. Kept columns in a row are used only where it is inserted and nothing is kept of an ended one.
        """
        if not rows:
            return
        entries = {str(light[0]): (light, heavy, terms) for light, heavy, terms in map(self._encoded, rows)}
        name, ids = self._name, (as_json(list(entries)),)
        with self._db.write() as db:
            db.execute(f"DELETE FROM {name} WHERE id IN {LISTED} AND ended_at < 0", ids)
            found = db.execute(f"SELECT id, n, seal FROM {name} WHERE id IN {LISTED}", ids).fetchall()
            same = {row_id for row_id, _, seal in found if seal == entries[row_id][0][1]}
            numbers = {row_id: n for row_id, n, _ in found}
            (last,) = db.execute(f"SELECT coalesce(max(n), 0) FROM {name}").fetchone()
            new = [row_id for row_id in entries if row_id not in numbers]
            numbers |= {row_id: n for n, row_id in enumerate(new, last + 1)}
            changed = [(numbers[row_id], *entry) for row_id, entry in entries.items() if row_id not in same]
            revs = self._db.next_revs(self.table.counter, len(changed))
            given = [(n, light[2], terms) for n, light, _, terms in changed]
            listed = as_json([n for n, *_ in changed])
            self._with_words(partial(self._words.replace, numbers=listed, rows=given))
            cells = [(n, rev, *light) for rev, (n, light, *_) in zip(revs, changed, strict=True)]
            db.executemany(self.table.insert, cells)
            if self.table.has_heavy:
                db.executemany(self.table.insert_heavy, [(n, heavy) for n, _, heavy, _ in changed])

    def update(
        self,
        where: Where,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - reads as the statement does
        inc: Mapping[str, int] | None = None,
        stamp: bool = False,
    ) -> int:
        """Set or increment light columns of the rows that match, and return how many there are.

        Kept and observed columns only, where a collection has kept ones; never the audience and texts of one with
        words, nor a unique column. `stamp`: each row gets a new rev, so that the change is published.
        """
        changes, values = list[str](), list[Cell]()
        for name, value in {**(set or {}), **(inc or {})}.items():
            column = self._updatable(name)
            changes.append(f'"{name}" = {_INCREASED.format(name) if name in (inc or {}) else "?"}')
            values.append(None if value is None else CODECS[column.type][0](value))
            if not column.kept:
                changes.append("seal = NULL")  # the next row that is put is written, whatever is in it
        change = f"UPDATE {self._name} SET {', '.join([*changes, 'rev = coalesce(?, rev)'])} WHERE n = ?"
        with self._db.write() as db:
            numbers = [n for (n,) in self._select(["n"], where, "ORDER BY n")]
            revs = self._db.next_revs(self.table.counter, len(numbers)) if stamp else [None] * len(numbers)
            db.executemany(change, [(*values, rev, n) for rev, n in zip(revs, numbers, strict=True)])
        return len(numbers)

    def rename(self, pairs: Mapping[str, str]) -> None:
        """Give rows other ids: what is kept of them, their breadcrumbs and vectors go along.

        Works for rows that exist and for ended ones, whose next `put` under the new id then restores them. Ids may be
        exchanged; a new id that another row has is an error.
        """
        if not pairs:
            return
        name, moves = self._name, {clean(old): clean(new) for old, new in pairs.items() if old != new}
        with self._db.write() as db:
            asked = f"SELECT id, n FROM {name} WHERE id IN {LISTED} AND coalesce(ended_at, 0) >= 0"
            there = dict(db.execute(asked, (as_json(list(moves)),)).fetchall())
            targets = as_json([moves[old] for old in there if moves[old] not in there])
            db.execute(f"DELETE FROM {name} WHERE id IN {LISTED} AND ended_at IS NOT NULL", (targets,))
            left = there.keys() - moves.values() if self.spec.feed else ()
            revs = self._db.next_revs(self.table.counter, len(there) + len(left))
            aside = [(f"\1{n}", 0, n) for n in there.values()]  # ids may be exchanged
            final = [(moves[old], rev, n) for (old, n), rev in zip(there.items(), revs, strict=False)]
            db.executemany(f"UPDATE {name} SET id = ?, rev = ? WHERE n = ?", aside + final)
            ends = [(old, rev, -_now()) for old, rev in zip(sorted(left), revs[len(there) :], strict=True)]
            db.executemany(f"INSERT INTO {name} (id, rev, ended_at) VALUES (?, ?, ?)", ends)

    def delete(self, ids: AnyCollection[str]) -> None:
        """End rows. A collection with a feed publishes their end, and keeps their kept columns for a year."""
        if not ids:
            return
        name = self._name
        with self._db.write() as db:
            numbers = [n for (n,) in self._select(["n"], Is("id", "in", ids), "ORDER BY n")]
            self._with_words(partial(self._words.replace, numbers=as_json(numbers), rows=()))
            if self.table.has_heavy:
                db.execute(f"DELETE FROM {name}_heavy WHERE n IN {LISTED}", (as_json(numbers),))
            if self.spec.feed:
                revs = self._db.next_revs(self.table.counter, len(numbers))
                db.executemany(self.table.end, [(_now(), rev, n) for rev, n in zip(revs, numbers, strict=True)])
            else:
                db.execute(f"DELETE FROM {name} WHERE n IN {LISTED}", (as_json(numbers),))

    def forget(self, ids: AnyCollection[str]) -> None:
        """Drop what is kept of ended rows: only their ends stay, which a server may not know yet."""
        blank = "".join(f', "{name}" = NULL' for name in self.table.light[2:])
        ended = f"UPDATE {self._name} SET ended_at = -abs(ended_at), seal = NULL{blank}"
        with self._db.write() as db:
            db.execute(f"{ended} WHERE id IN {LISTED} AND ended_at IS NOT NULL", (as_json(list(ids)),))

    def load(self, row: Row) -> None:
        """Put a row of a dump. Kept columns are set where the row exists; else they wait, as those of an ended row."""
        names = ["id", "ended_at", *self.table.known_by, *self.table.kept]
        cells = self.table.cells(names, {"ended_at": datetime.now(UTC), **row, "id": row["id"]})
        with self._db.write() as db:
            if self.table.kept:
                db.execute(self.table.insert_waiting, cells)
            elif not self.count(Is("id", "=", row["id"])):
                self.put([row])

    # ---- helpers

    def _with_words(self, use: Callable[[sqlite3.Connection], _Answer]) -> _Answer:
        """What `use` answers. A damaged word table is filled again first."""
        try:
            with self._db.read() as db:
                return use(db)
        except IndexDamaged:
            with self._db.write() as db:
                self._words.rebuild(db)
                return use(db)

    def _encoded(self, row: Row) -> tuple[list[Any], bytes, tuple[str, ...]]:
        """The cells of a row: light ones behind `n` and `rev`, the heavy one; and its terms."""
        table, terms, held = self.table, tuple[str, ...](), NOWHERE
        if self.spec.text:
            held = self._words.held_by(row.get("audience"))
            texts = {field: row.get(field) or "" for field, _ in self.spec.text}
            given = row.get("words") or {name: " ".join(self._analyzer.terms(text)) for name, text in texts.items()}
            terms = tuple(clean(given.get(field, "")) for field in texts)
        projected, heavy = table.cells(table.projected, row), table.pack(row, terms) if table.has_heavy else b""
        seal = blake2b(msgspec.msgpack.encode((projected, heavy)), digest_size=8).digest()
        light = [clean(row["id"]), int.from_bytes(seal, signed=True), held, None, *projected]
        return [*light, *table.cells(table.kept, row)], heavy, terms

    def _updatable(self, name: str) -> Column:
        column, texts = self.table.columns[name], [field for field, _ in self.spec.text]
        fixed = ["id", "rev", self.spec.unique, *self.table.heavy, *self.spec.many, *texts, *["audience"] * bool(texts)]
        if name in fixed or (self.table.kept and not (column.kept or column.observed)):
            raise ValueError(f"{self._name}: {name!r} is set by put only")
        return column

    def _select(
        self, names: Sequence[str], where: Where, tail: str = "", alive: str = "ended_at IS NULL"
    ) -> list[tuple[Any, ...]]:
        columns, values = ", ".join(map(self.table.sql, names)), list[Cell]()
        heavy = [(at, name) for at, name in enumerate(names) if name in self.table.heavy]
        joined = f"JOIN {self._name}_heavy USING (n)" if heavy else ""
        condition = self.table.compile(where, values)
        with self._db.read() as db:
            asked = f"SELECT {columns}{', packed' * bool(heavy)} FROM {self._name} {joined}"
            found = db.execute(f"{asked} WHERE {alive} AND {condition} {tail}", values).fetchall()
        decoders = {at: decode for at, name in enumerate(names) if (decode := CODECS[self.table.columns[name].type][1])}
        if not found or not (heavy or decoders):
            return found
        cells: list[Iterable[Any]] = list(zip(*found, strict=True))
        if heavy:
            whole = any(name != self.table.heavy[0] for _, name in heavy)
            held = [unpack(cell, whole=whole) for cell in cells.pop()]
            for at, name in heavy:
                cells[at] = [each.get(name) for each in held]
        for at, decode in decoders.items():
            cells[at] = [None if cell is None else decode(cell) for cell in cells[at]]
        return list(zip(*cells, strict=True))


def _now() -> int:
    return time.time_ns() // 1_000_000
