"""Vectors that are brought up to date when they are asked, not when rows are written: who logs embeds nothing.

All of them are compared, and held in memory from one recall to the next.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any

from notebook_sync.embedded import Embedded
from notebook_sync.refs.base import Entry
from notebook_sync.refs.ranking import NEAREST, Candidates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from notebook_sync.refs.base import Embed, Matrix, Meaning, Model, Vector
    from notebook_sync.refs.likeness import Key

_PIECE = 1000
# Numbers that are held: 64 MB of them. Of more vectors, those of the rows that were written last.
_MOST_NUMBERS = 1 << 24
# As with words: what rows leave behind that are written anew is dropped once it is so much more than they are.
_LEFT_BEHIND, _FEW = 3, 5000

# What a statement finds, within a transaction or by itself.
_Ask = Callable[[str, Sequence[Any]], list[Any]]


@dataclass(frozen=True, slots=True)
class _State:
    """made: of which model vectors are, and another one whenever all are made anew; upto: the number of the last row
    that was embedded."""

    made: str = ""
    upto: int = 0

    def of(self, model: Model) -> _State:
        """This, where it is of that model."""
        return self if self.made.partition(" ")[2] == str(model) else _State()


@dataclass(frozen=True, slots=True)
class _Held:
    """Vectors, in the order of the numbers of their rows."""

    state: _State
    numbers: NDArray[Any]
    matrix: Matrix


class LateVectors:
    """Vectors of the rows of `table`, whose numbers grow and are never given again. May be used from several threads.

    number: the column of these numbers. columns: what `entry` is given of a row, to say which entry it is.
    """

    def __init__(self, table: str, number: str, columns: str, entry: Callable[[Sequence[Any]], Entry]) -> None:
        self._name = f"{table}_vector"
        self._table = table
        self._number = f"{table}.{number}"
        self._columns = columns
        self._entry = entry
        self._lock = threading.Lock()
        self._held: _Held | None = None

    @property
    def schema(self) -> str:
        """The statements that make their table, and drop a vector with its row."""
        return f"""CREATE TABLE IF NOT EXISTS {self._name} (n INTEGER PRIMARY KEY, vector BLOB NOT NULL);
            CREATE TRIGGER IF NOT EXISTS {self._name}_gone AFTER DELETE ON {self._table} BEGIN
            DELETE FROM {self._name} WHERE n = old.rowid; END;"""

    def catch_up(self, db: Embedded, model: Model, embed: Embed, limit: int) -> int:
        """Embed rows that are behind, the oldest first, `limit` at the most, some at a time; how many."""
        from notebook_sync.refs.likeness import packed, text_of

        done = 0
        while done < limit:
            read = self._state(db.rows)
            rows = self._after(db.rows, read.of(model).upto, min(_PIECE, limit - done))
            if not rows:
                break
            vectors = packed(embed([text_of(self._entry(row)) for _, *row in rows]))
            with db.writing() as connection:
                self._put(connection, model, read, dict(zip(rows, vectors, strict=True)))
            done += len(rows)
        return done

    def behind(self, db: Embedded, model: Model) -> int:
        """How many rows have no vector yet."""
        asked = f"SELECT count(*) FROM {self._table} WHERE {self._number} > ?"
        return int(db.rows(asked, (self._state(db.rows).of(model).upto,))[0][0])

    def candidates(
        self,
        db: Embedded,
        rows: Mapping[int, Sequence[Any]],
        meaning: Meaning | None,
        condition: str,
        values: Sequence[Any],
    ) -> Candidates:
        """These rows, by their numbers; with a meaning, also those that are most like it and meet the condition."""
        held = self._current(db, meaning) if meaning else None
        if meaning is None or held is None:
            return Candidates([self._entry(row) for row in rows.values()])
        near = self._nearest(db, held, meaning, condition, values)
        entries = {number: self._entry(row) for number, row in {**rows, **near}.items()}
        return Candidates(list(entries.values()), self._vectors(db, held, entries))

    def _nearest(
        self, db: Embedded, held: _Held, meaning: Meaning, condition: str, values: Sequence[Any]
    ) -> Mapping[int, Sequence[Any]]:
        likeness = held.matrix @ meaning.vector
        order = (-likeness).argsort(kind="stable")
        numbers = held.numbers[order[: (likeness > max(meaning.unrelated, 0.0)).sum()]].tolist()
        if condition != "1":
            asked = f"SELECT {self._number} FROM {self._table} WHERE {condition}"
            admitted = {number for (number,) in db.rows(asked, values)}
            numbers = [number for number in numbers if number in admitted]
        found: list[Any] = []
        asked = f"SELECT {self._number}, {self._columns} FROM {self._table} WHERE {self._number} IN ({{marks}})"
        while numbers and len(found) < NEAREST:  # some of the rows may be gone
            piece, numbers = numbers[:NEAREST], numbers[NEAREST:]
            found += db.rows_in(asked, piece)
        return {number: row for number, *row in found}

    def _vectors(self, db: Embedded, held: _Held, entries: Mapping[int, Entry]) -> Mapping[Key, Vector]:
        from notebook_sync.refs.likeness import key_of, unpacked

        asked = list(entries)
        at = held.numbers.searchsorted(asked).clip(max=len(held.numbers) - 1)
        known = zip(asked, at, (held.numbers[at] == asked).tolist(), strict=True) if len(held.numbers) else ()
        found = {number: held.matrix[row] for number, row, is_there in known if is_there}
        older = f"SELECT n, vector FROM {self._name} WHERE n IN ({{marks}})"
        rows = db.rows_in(older, [number for number in entries if number not in found])
        found |= {number: unpacked([row], held.matrix.shape[1])[0] for number, row in rows}
        return {key_of(entries[number]): vector for number, vector in found.items()}

    def free_number(self, connection: Connection) -> int:
        """A number above those of all rows that ever were embedded."""
        return self._state(_asking(connection)).upto + 1

    def _state(self, ask: _Ask) -> _State:
        told = dict(ask("SELECT name, value FROM meta WHERE name IN (?, ?)", self._marks()))
        made, upto = map(told.get, self._marks())
        return _State(made or "", int(upto or 0))

    def _marks(self) -> tuple[str, str]:
        return f"{self._name}_made", f"{self._name}_upto"

    def _after(self, ask: _Ask, upto: int, limit: int) -> list[tuple[Any, ...]]:
        asked = f"SELECT {self._number}, {self._columns} FROM {self._table} WHERE {self._number} > ?"
        return ask(f"{asked} ORDER BY {self._number} LIMIT ?", (upto, limit))

    def _put(
        self, connection: Connection, model: Model, read: _State, vectors: Mapping[tuple[Any, ...], bytes]
    ) -> None:
        """Keep the vectors of these rows, those that are still there. read: the state before they were made."""
        ask = _asking(connection)
        now = self._state(ask)
        if now.made != read.made:  # others began anew meanwhile
            return
        if not now.of(model).made:
            connection.execute(f"DELETE FROM {self._name}")
            now = _State(f"{secrets.token_hex(8)} {model}")
        there = self._after(ask, read.of(model).upto, len(vectors))
        connection.executemany(
            f"INSERT OR REPLACE INTO {self._name} VALUES (?, ?)",
            [(row[0], vectors[row]) for row in there if row in vectors],
        )
        upto = max(now.upto, *(row[0] for row in vectors))
        connection.executemany(
            "INSERT OR REPLACE INTO meta VALUES (?, ?)", list(zip(self._marks(), (now.made, str(upto)), strict=True))
        )
        self._drop_what_is_left_behind(connection)

    def _drop_what_is_left_behind(self, connection: Connection) -> None:
        counts = f"SELECT (SELECT count(*) FROM {self._name}), (SELECT count(*) FROM {self._table})"
        held, there = connection.execute(counts).fetchone()
        if held > _LEFT_BEHIND * there + _FEW:
            connection.execute(f"DELETE FROM {self._name} WHERE n NOT IN (SELECT {self._number} FROM {self._table})")

    def _current(self, db: Embedded, meaning: Meaning) -> _Held | None:
        """All vectors there are; None where none are of the model."""
        state = self._state(db.rows).of(meaning.model)
        if not state.made:
            return None
        with self._lock:
            held = self._held
            if held is None or held.state.made != state.made:
                held = None
            if held is None or held.state.upto < state.upto:
                held = self._held = self._loaded(db, state, len(meaning.vector), held)
        return held

    def _loaded(self, db: Embedded, state: _State, dimensions: int, held: _Held | None) -> _Held:
        import numpy as np

        from notebook_sync.refs.likeness import unpacked

        most = _MOST_NUMBERS // dimensions
        newest = f"SELECT n, vector FROM {self._name} WHERE n > ? AND n <= ? ORDER BY n DESC LIMIT ?"
        rows = db.rows(newest, (held.state.upto if held else 0, state.upto, most))[::-1]
        numbers = np.array([number for number, _ in rows], np.int64)
        matrix = unpacked([row for _, row in rows], dimensions)
        if held is not None:
            numbers, matrix = np.concatenate([held.numbers, numbers]), np.concatenate([held.matrix, matrix])
        return _Held(state, numbers[-most:], matrix[-most:])


def _asking(connection: Connection) -> _Ask:
    return lambda statement, values: connection.execute(statement, values).fetchall()
