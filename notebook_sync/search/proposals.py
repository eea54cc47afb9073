"""The port of an index that proposes which notes may be the nearest: what `vectors_proposed` asks of Redis or MongoDB.

Glossary

kind   stands for a store, a model and its dimensions; those of two kinds are never mixed
put    the name of one putting of a note's vectors: another one means others
upto   how many puts there had been, and when the last was, as all passages of a kind were here
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from notebook_sync.search.base import Vector
from notebook_sync.search.packing import Packed

Upto = tuple[int, int]


class Proposals(Protocol):
    """Passages by kind. Every method may raise NoSearch, which stays within the adapter, and BackendDown."""

    name: str
    """For people, without secrets."""

    def prepare(self, kind: str, dimensions: int, *, again: bool = False) -> None:
        """Make the index where it is not there; NoSearch also while the server is making it. `again`: look, although it
        was there before."""

    def put(self, kind: str, notes: Sequence[Packed], puts: Mapping[str, str]) -> None:
        """These notes' passages instead of those they had; those without a vector are left out."""

    def drop(self, kind: str, notes: Iterable[str]) -> None:
        """Nothing of these notes is here any more."""

    def puts_of(self, kind: str, notes: Sequence[str]) -> dict[str, str]:
        """Of which put the passages of these notes are, where any are here."""

    def puts(self, kind: str) -> Iterator[tuple[str, str]]:
        """The same of all that are here; one may come twice while others put."""

    def upto(self, kind: str) -> Upto | None:
        """None where all were never here."""

    def note_upto(self, kind: str, upto: Upto, *, instead: Upto | None = None) -> None:
        """All are here by now; where there is an `instead`, only if that is what was noted."""

    def nearest(self, kind: str, query: Vector, count: int, section: str = "") -> tuple[list[str], float]:
        """The notes of so many passages that are about the nearest, and the cosine of the farthest of them; -1 where
        there are no more."""

    def drop_other_kinds(self, kind: str) -> None:
        """Of another model, of other dimensions, or of a store that is no more."""

    def close(self) -> None:
        """Release connections. Twice is allowed."""


def kind_of(made: str, model: str, dimensions: int) -> str:
    """The kind of vectors of the store that was made as this one."""
    return hashlib.sha256(f"{made} {dimensions} {model}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
