"""How near memories are to what a task says, by the vectors of their passages.

Meaning only ever adds: where it cannot be had, `NoMeaning` says why, and words alone decide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notebook_sync.mirror.base import LARGEST_LIMIT, Document
from notebook_sync.patience import Silence
from notebook_sync.search.query_meaning import NoMeaning, answered, catch_up, vector_of
from notebook_sync.search.searching import OFF

if TYPE_CHECKING:
    from notebook_sync.search.base import Embedder, Matrix, Vector, Vectors
    from notebook_sync.search.embedding import Backlog

# So many more of the nearest notes are asked for than memories are wanted: mostly that is enough.
_SPARE = 10


@dataclass(frozen=True, slots=True)
class Placed:
    """By id, the cosine of the passage nearest to the task. `behind`: how many notes could not be placed, which have
    no vectors yet. `directions` are rows, those of all passages together, in the order of the similarities."""

    similarities: Mapping[str, float]
    directions: Matrix
    behind: int

    def alike(self, note_id: str) -> dict[str, float]:
        """By id, how alike the notes are to this one, 0 to 1; nothing where it is not placed itself."""
        if note_id not in self.similarities:
            return {}
        row = list(self.similarities).index(note_id)
        # Rounded, so that equal texts are equally alike.
        cosines = (self.directions @ self.directions[row]).clip(0, 1).round(6)
        return dict(zip(self.similarities, cosines.tolist(), strict=True))


class Meaning:
    """Of one notebook, for any number of threads. Embedder, vectors and backlog are opened when first asked."""

    def __init__(
        self,
        embedder: Callable[[], Embedder | None],
        vectors: Callable[[], Vectors],
        backlog: Callable[[], Backlog],
    ) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self._backlog = backlog
        self._of_embedder, self._of_vectors = Silence(), Silence()

    def aim(self, text: str) -> Aim:
        """What looks for what means the same. Raises NoMeaning."""
        embedder = self._embedder()
        if embedder is None:
            raise NoMeaning(OFF)
        query = vector_of(text, "task", embedder, self._of_embedder)
        answered(self._of_vectors, lambda: self._vectors().expect(embedder.model, len(query)))
        if embedder.is_local:
            answered(self._of_vectors, lambda: catch_up(self._vectors(), embedder.model, self._backlog))
        return Aim(embedder, self._vectors, self._of_vectors, query)


class Aim:
    """One text that something is to be near to. `unrelated`: what is no nearer has nothing to do with it."""

    def __init__(self, embedder: Embedder, vectors: Callable[[], Vectors], silence: Silence, query: Vector) -> None:
        self._embedder = embedder
        self._vectors = vectors
        self._silence = silence
        self._query = query
        self.unrelated = embedder.unrelated

    def nearest(self, count: int, admitted: Callable[[Collection[str]], Collection[str]]) -> list[str]:
        """The ids of the nearest notes, best first, of those that `admitted` leaves of the ids it is given: whatever
        else is near pushes none of them out. Raises NoMeaning."""
        return answered(self._silence, lambda: self._nearest(count, admitted))

    def behind(self, admitted: Callable[[Collection[str]], Collection[str]]) -> int:
        """How many of the notes that `admitted` leaves could not be told of as near: they have no vectors yet, or
        older ones. Raises NoMeaning."""
        return answered(self._silence, lambda: self._behind(admitted))

    def placed(self, ids: Set[str], documents: Callable[[Sequence[str]], Sequence[Document]]) -> Placed:
        """Where these notes stand. What has no vectors is embedded here and now, where that asks nobody. Raises
        NoMeaning."""
        found = answered(self._silence, lambda: self._vectors().of(self._embedder.model, sorted(ids)))
        missing = sorted(ids - found.keys())
        if missing and self._embedder.is_local:
            found = {**found, **self._embedded(documents(missing))}
        told = {note_id: matrix for note_id, matrix in found.items() if matrix.any()}
        similarities, directions = _standing(list(told.values()), self._query)
        return Placed(dict(zip(told, similarities, strict=True)), directions, len(ids - found.keys()))

    def _nearest(self, count: int, admitted: Callable[[Collection[str]], Collection[str]]) -> list[str]:
        vectors, model, asked = self._vectors(), self._embedder.model, count + _SPARE
        while True:
            near = [
                one.note_id for one in vectors.nearest(model, self._query, asked, folders=("apart",))
            ]  # no private ones
            kept = admitted(near)
            told = [note_id for note_id in near if note_id in kept][:count]
            if len(told) == count or len(near) < asked or asked == LARGEST_LIMIT:
                return told
            asked = min(asked * 4, LARGEST_LIMIT)

    def _behind(self, admitted: Callable[[Collection[str]], Collection[str]]) -> int:
        vectors, model = self._vectors(), self._embedder.model
        if not vectors.behind(model, 1):
            return 0
        return len(admitted(vectors.behind(model, LARGEST_LIMIT)))

    def _embedded(self, documents: Sequence[Document]) -> dict[str, Matrix]:
        from notebook_sync.search.passages import passages_of  # which brings arrays along

        passages = {document["id"]: [one.text for one in passages_of(document)] for document in documents}
        rows = self._embedder.embed([text for texts in passages.values() for text in texts])
        found: dict[str, Matrix] = {}
        at = 0
        for note_id, texts in passages.items():
            found[note_id] = rows[at : at + len(texts)]
            at += len(texts)
        return found


def _standing(matrices: Sequence[Matrix], query: Vector) -> tuple[list[float], Matrix]:
    """Of each, how near its nearest row is to the query, and the sum of its rows, of length 1, or all zero. None of
    them is empty."""
    import numpy as np  # only who has vectors needs it

    if not matrices:
        return [], np.zeros((0, len(query)), np.float32)
    rows = np.concatenate(matrices)
    counts = np.array([len(matrix) for matrix in matrices])
    starts = np.cumsum(counts) - counts
    # Row by row: what a product of matrices makes of one depends on how many others there are.
    nearest = np.maximum.reduceat(np.einsum("ij,j->i", rows, query), starts)
    sums = rows[starts]
    for place in range(1, int(counts.max())):
        longer = counts > place
        sums[longer] += rows[starts[longer] + place]
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    directions: Matrix = np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)
    return [round(each, 6) for each in nearest.tolist()], directions
