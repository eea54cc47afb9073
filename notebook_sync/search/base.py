"""The ports of search by meaning: what makes vectors of texts, and where the vectors of notes are kept.

Glossary

passage   a stretch of a note that has a vector of its own; a note is as near to a query as its nearest passage
model     names how vectors were made: those of two models are never compared
behind    of a note: it has no vectors, or none of its present digest, this model, and the dimensions that it has now
vectors   float32; of length 1, or all zero for a text in which the model knows nothing. A zero vector is like nothing
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""One vector, of shape (dimensions,)."""
Matrix = NDArray[np.float32]
"""One row for each text, of shape (texts, dimensions)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a note a passage stands: the section's anchor, "" before the first heading; the line in the file,
    from 1; and from where to where in the document's `content`, in characters."""

    anchor: str
    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Passage:
    """`text` is what is embedded: the note's title and the section's heading go with the passage's own words."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Vectored:
    """The vectors of one note, as its file was with `digest`: a row of `vectors` for each place. None of a note that
    says nothing, which is then not behind."""

    note_id: str
    digest: str
    places: Sequence[Place]
    vectors: Matrix


@dataclass(frozen=True, slots=True)
class Near:
    """How like the query a note is: the cosine of its nearest passage, -1 to 1, and where that stands."""

    note_id: str
    similarity: float
    place: Place


@dataclass(frozen=True, slots=True)
class Counts:
    """How many notes have their vectors, and how many are behind."""

    embedded: int
    behind: int


class Embedder(Protocol):
    """Makes vectors. May be used from several threads."""

    model: str
    """As `wordllama-256`; of another way to make them, another name."""
    dimensions: int
    is_local: bool
    """Whether it answers without asking a server."""
    unrelated: float
    """What texts that have nothing to do with each other are less alike than; 0 where that is not known."""

    def embed(self, texts: Sequence[str], *, seconds: float | None = None) -> Matrix:
        """A vector for each text. A server may take so many `seconds` for all of them, else its usual time for each
        request. Raises BackendDown where it does not answer, or answers something else."""

    def close(self) -> None:
        """Let connections go. Twice is allowed."""


class Vectors(Protocol):
    """Where the vectors of notes are kept, beside the mirror's rows. May be used from several threads and processes.

    Every method may raise BackendDown; no adapter lets a driver's own error out.
    """

    name: str
    """For people, without secrets."""

    def behind(self, model: str, limit: int) -> list[str]:
        """Ids of notes that are behind, in no order."""

    def expect(self, model: str, dimensions: int) -> None:
        """The model's vectors have so many dimensions from now on: notes that have others of it are behind. Costs
        little where that is known."""

    def put(self, model: str, notes: Sequence[Vectored]) -> None:
        """Keep these vectors instead of those that the notes had, of whatever model."""

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
        """The notes most like the query, best first; of even ones, by id. `among`: of these notes alone, and all of
        them that have vectors where the limit allows. `section`: an anchor, of passages there alone. `folders`: of
        notes that every session may read, and of private notes in these folders; no other is compared."""

    def of(self, model: str, ids: Collection[str]) -> dict[str, Matrix]:
        """The vectors of these notes, by id: a row for each passage, of length 1 to four decimals, or all zero. Notes
        that have none of this model are left out."""

    def counts(self, model: str) -> Counts:
        """How far the vectors are."""

    def tidy(self) -> int:
        """Drop the vectors of notes that are gone, and what is kept elsewhere of notes that may not be; how many."""

    def close(self) -> None:
        """Release connections. Twice is allowed."""
