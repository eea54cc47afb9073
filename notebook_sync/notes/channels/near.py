"""How like private notes are to a query by what they mean, of the notes that are named and no others.

An embedder or a store of vectors that does not answer costs meaning, never the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from notebook_sync.errors import BackendDown
from notebook_sync.patience import Silence
from notebook_sync.search.query_meaning import Means, QueryMeanings

if TYPE_CHECKING:
    from notebook_sync.search.base import Vectors
    from notebook_sync.search.embedding import Backlog

# Of the notes that are named, no more than these are embedded before they are compared, where that takes no server; and
# no more than those are looked through for them.
_FEW_BEHIND, _LOOKED_THROUGH = 200, 2_000


@dataclass(frozen=True, slots=True)
class Near:
    """Cosines, by note; of a note without vectors none. `unrelated` is as `Embedder.unrelated`. `trouble`: why there
    are none, "" where nothing is wrong."""

    cosines: Mapping[str, float] = field(default_factory=dict)
    unrelated: float = 0.0
    trouble: str = ""


class NoteNear:
    """Of one notebook, for any number of threads. The vectors are opened when they are first asked for."""

    def __init__(self, meanings: QueryMeanings, vectors: Callable[[], Vectors], backlog: Callable[[], Backlog]) -> None:
        self._meanings = meanings
        self._vectors = vectors
        self._backlog = backlog
        self._silence = Silence()

    @property
    def is_on(self) -> bool:
        """Whether there are embeddings at all."""
        return self._meanings.is_on

    def to(self, query: str, ids: Collection[str]) -> Near:
        """How near these notes are to the query."""
        if not ids or self._silence.trouble:
            return Near(trouble=self._silence.trouble)
        means = self._meanings.of(query)
        if isinstance(means, str):
            return Near(trouble=means)
        try:
            return self._compared(means, ids)
        except BackendDown as down:
            self._silence.begin(str(down))
            return Near(trouble=str(down))

    def _compared(self, means: Means, ids: Collection[str]) -> Near:
        vectors, model = self._vectors(), means.embedder.model
        vectors.expect(model, len(means.vector))
        if means.embedder.is_local:
            wanted = set(ids)
            behind = [note_id for note_id in vectors.behind(model, _LOOKED_THROUGH) if note_id in wanted]
            if behind:
                with suppress(BackendDown):  # where nothing can be written, what there is already answers
                    self._backlog().embed(behind[:_FEW_BEHIND])
        near = vectors.nearest(model, means.vector, len(ids), among=ids)
        return Near({one.note_id: float(one.similarity) for one in near}, means.embedder.unrelated)
