"""The exact index: every rough vector of one model in memory, brought up to date before each search.

The rough ones tell within which bounds a note's cosine lies; whole ones are asked for of the notes that may be among
the nearest, and of no other. What is found is what comparing with every whole vector would find.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from notebook_sync.search.base import Matrix, Near, Vector
from notebook_sync.search.packing import Found, Packed, matrices_of, nearest_in, unit
from notebook_sync.search.rough import Key, RoughRow, RoughRows

# Notes of which whole vectors are asked for at a time.
_PIECE = 500


@dataclass(frozen=True, slots=True)
class State:
    """What tells cheaply whether a store changed. `made`: another one for every store there ever was. `dimensions` of
    the model's vectors, 0 where there are none. `rows`: how many notes have vectors of any model."""

    made: str
    dimensions: int
    newest: tuple[int, ...]
    rows: int


class Rows(Protocol):
    """What the index asks of the store."""

    def state(self, model: str) -> State:
        """As of now."""

    def since(self, model: str, known: State | None, held: Container[Key]) -> Iterable[Sequence[RoughRow]]:
        """What was put since, in portions; all of it where nothing is known. May leave out rows that are held."""

    def keys(self) -> Collection[Key]:
        """The key of each row there is."""

    def whole(self, model: str, ids: Sequence[str]) -> Iterable[Packed]:
        """Of these notes, those that are there and have vectors of this model."""


class ExactIndex:
    """Of one store, for any number of threads. It holds what one model needs at a time."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._lock = threading.Lock()
        self._held: tuple[str, State, RoughRows] | None = None

    def nearest(
        self,
        model: str,
        query: Vector,
        limit: int,
        *,
        among: Collection[str] | None = None,
        section: str = "",
        folders: Collection[str] | None = None,
    ) -> list[Near]:
        """As `Vectors.nearest`."""
        asked = unit(query)
        if asked is None or limit < 1:
            return []
        if among is not None:
            return self._best(model, asked, limit, _in_pieces(sorted(set(among))), section)
        with self._lock:
            snapshot = self._current(model).snapshot(folders)
        if snapshot.dimensions != len(asked):
            return []
        return self._best(model, asked, limit, snapshot.candidates(asked, limit, section), section)

    def of(self, model: str, ids: Collection[str]) -> dict[str, Matrix]:
        """As `Vectors.of`."""
        dimensions = self._rows.state(model).dimensions if ids else 0
        found: dict[str, Matrix] = {}
        for piece, _ in _in_pieces(sorted(set(ids))) if dimensions else ():
            packed = [one for one in self._rows.whole(model, piece) if one.dimensions == dimensions]
            found |= matrices_of(packed, dimensions)
        return found

    def _current(self, model: str) -> RoughRows:
        state = self._rows.state(model)
        known: State | None = None
        held = RoughRows(state.dimensions)
        if self._held is not None:
            of, told, rows = self._held
            if (of, told.made, told.dimensions) == (model, state.made, state.dimensions) and not rows.is_worn:
                known, held = told, rows
        if known != state:
            self._held = None  # until it is whole again: what follows may be broken off
            for portion in self._rows.since(model, known, held):
                held.take(portion)
            if len(held) != state.rows:
                held.keep(self._rows.keys())
        self._held = model, state, held
        return held

    def _best(
        self, model: str, query: Vector, limit: int, candidates: Iterable[tuple[Sequence[str], float]], section: str
    ) -> list[Near]:
        """The nearest by whole vectors. With each piece of the candidates comes what no later one's cosine is above."""
        best: list[Found] = []
        for ids, bound in candidates:
            found = nearest_in(self._rows.whole(model, ids), query, section)
            best = heapq.nsmallest(limit, [*best, *found], key=_order)
            if len(best) == limit and best[-1].similarity > bound:
                break
        return [one.near() for one in best]


def _order(found: Found) -> tuple[float, str]:
    return -found.similarity, found.packed.note_id


def _in_pieces(ids: Sequence[str]) -> Iterator[tuple[Sequence[str], float]]:
    for start in range(0, len(ids), _PIECE):
        yield ids[start : start + _PIECE], 2.0
