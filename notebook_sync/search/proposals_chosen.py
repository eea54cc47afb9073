"""Proposals of a Redis that can search, else of another index: which one, the first question tells, for the process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from notebook_sync.search.base import Vector
from notebook_sync.search.packing import Packed
from notebook_sync.search.proposals import Proposals, Upto
from notebook_sync.search.redis_passages import RedisPassages


class ChosenProposals:
    """`Proposals` of `first`, or of `other` where that Redis offers no search; opening it asks nothing of anybody."""

    def __init__(self, first: RedisPassages, other: Proposals) -> None:
        self._first, self._other = first, other
        self._chosen: Proposals | None = None
        self.name = first.name

    def prepare(self, kind: str, dimensions: int, *, again: bool = False) -> None:
        self._one().prepare(kind, dimensions, again=again)

    def put(self, kind: str, notes: Sequence[Packed], puts: Mapping[str, str]) -> None:
        self._one().put(kind, notes, puts)

    def drop(self, kind: str, notes: Iterable[str]) -> None:
        self._one().drop(kind, notes)

    def puts_of(self, kind: str, notes: Sequence[str]) -> dict[str, str]:
        return self._one().puts_of(kind, notes)

    def puts(self, kind: str) -> Iterator[tuple[str, str]]:
        return self._one().puts(kind)

    def upto(self, kind: str) -> Upto | None:
        return self._one().upto(kind)

    def note_upto(self, kind: str, upto: Upto, *, instead: Upto | None = None) -> None:
        self._one().note_upto(kind, upto, instead=instead)

    def nearest(self, kind: str, query: Vector, count: int, section: str = "") -> tuple[list[str], float]:
        return self._one().nearest(kind, query, count, section)

    def drop_other_kinds(self, kind: str) -> None:
        self._one().drop_other_kinds(kind)

    def close(self) -> None:
        self._first.close()
        self._other.close()

    def _one(self) -> Proposals:
        """The chosen one. Raises BackendDown where that Redis is away: what it offers is then not known."""
        if self._chosen is None:
            self._chosen = self._first if self._first.can_search() else self._other
            self.name = self._chosen.name
        return self._chosen
