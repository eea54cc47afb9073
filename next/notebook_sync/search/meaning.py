"""What a query means, and how near the passages of rows are to it. Trouble costs meaning, never the answer."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from notebook_sync.errors import BackendDown, Busy, MissingExtra, ReadOnly
from notebook_sync.search.embed import Embedder, Rarity, Vector
from notebook_sync.search.queue import SOURCES, VectorQueue
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is
from notebook_sync.store.vectors import VectorIndex

# A search embeds no more rows first than these; of a server, which may take long, nothing is asked for it.
_FEW_BEHIND = 200
# A server that failed is not asked again for so many seconds.
_PAUSE_SECONDS = 15.0
# Parts of a content, in characters.
Spans = Sequence[tuple[int, int]]


class NoMeaning(Exception):
    """Why nothing can be found by meaning."""


class Nearness(NamedTuple):
    """How near a row is to the query: the cosine of its nearest passage, and where in its content that begins."""

    cosine: float
    start: int | None


FAR = Nearness(0.0, None)


class Meaning:
    """Queries and rows compared by their vectors. May be used by several threads."""

    def __init__(self, index: Index, embedder: Embedder) -> None:
        self.embedder = embedder
        self.queue = VectorQueue(index, embedder)
        self._index = index
        self._indexes = {name: VectorIndex(index, name, embedder.model) for name in SOURCES}
        self._trouble = ""
        self._again_at = 0.0

    def of(self, query: str, rarity: Rarity) -> Vector:
        """The vector of a query. Raises NoMeaning, also where the model knows no word of it."""
        if time.monotonic() < self._again_at:
            raise NoMeaning(self._trouble)
        try:
            vector = self.embedder.embed_query(query, rarity)
        except (BackendDown, MissingExtra) as error:
            if not self.embedder.is_local:
                self._trouble, self._again_at = str(error), time.monotonic() + _PAUSE_SECONDS
            raise NoMeaning(str(error)) from None
        if not vector.any():
            raise NoMeaning("the model of embeddings knows no word of this query")
        return vector

    def catch_up(self) -> bool:
        """Embed rows that lack vectors, if they are few and no server is asked. Returns whether some are left."""
        behind = self.queue.behind()
        if self.embedder.is_local and 0 < behind <= _FEW_BEHIND:
            with suppress(BackendDown, MissingExtra, Busy, ReadOnly):  # the vectors that there are already answer
                behind = self.queue.embed(behind).behind
        return behind > 0

    def nearest(self, vector: Vector, collection: str, among: Collection[str] | None, count: int) -> list[str]:
        """The ids of at most `count` rows of a collection, nearest first, of those in `among`; None for all."""
        return [row_id for row_id, _ in self._indexes[collection].nearest(vector, count, among)]

    def nearness(
        self, vector: Vector, collection: str, ids: Collection[str], spans: Mapping[str, Spans] | None = None
    ) -> dict[str, Nearness]:
        """How near rows are; those without vectors are left out. `spans`: only passages that begin there count."""
        import numpy as np  # of the extra `search`, as all that makes vectors

        keys = Is("id", "in", [f"{collection}:{row_id}" for row_id in ids])
        found: dict[str, Nearness] = {}
        for row in self._index.vectors.find(keys, fields=("id", "model", "places", "codes", "scales")):
            row_id, scales = row["id"].partition(":")[2], np.frombuffer(row["scales"], np.float32)
            fits = row["model"] == self.embedder.model and len(row["codes"]) == scales.size * len(vector)
            if not fits or not scales.size:
                continue
            cosines = np.frombuffer(row["codes"], np.int8).reshape(scales.size, -1) @ vector * scales
            if spans is not None:
                cosines[[not is_within(start, spans[row_id]) for start, _ in row["places"]]] = -1.0
            best = int(cosines.argmax())
            found[row_id] = Nearness(float(cosines[best]), row["places"][best][0])
        return found


def is_within(position: int, spans: Spans) -> bool:
    """Whether a position is in one of the parts."""
    return any(start <= position < end for start, end in spans)
