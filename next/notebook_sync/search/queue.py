"""Which rows have no vectors of their present words, and giving some of them theirs.

Text is searchable at once, vectors follow. What changed is found by `rev`, so that asking often costs little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from notebook_sync.errors import BackendDown
from notebook_sync.search.embed import Embedder, Matrix, TextRefused
from notebook_sync.search.passages import texts_to_embed
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Either, Is, Row, both

# By collection: the column that says which words a vector was made of, and what else is read to make it.
SOURCES: Final = {"documents": ("words_digest", "title", "content", "sections"), "facts": ("id", "content")}


@dataclass(frozen=True, slots=True)
class Embedded:
    """What a run did: rows that got vectors, rows whose text the embedder refuses, and rows that have none yet."""

    embedded: int
    failed: int
    behind: int


class VectorQueue:
    """The rows of an index that lack vectors of one embedder. May be used by several threads and processes."""

    def __init__(self, index: Index, embedder: Embedder) -> None:
        self._index = index
        self._embedder = embedder
        self._lock = Lock()
        self._seen = self._version = -1
        self._behind: dict[str, set[str]] = {name: set() for name in SOURCES}

    def behind(self) -> int:
        """How many rows lack vectors of their present words."""
        with self._lock:
            version = self._index.version()
            if version != self._version:
                rev = self._index.rev()
                # Vectors have no rev: another process may have made some.
                if rev != self._seen or any(self._behind.values()):
                    self._behind = {name: self._compared(name) for name in SOURCES}
                self._seen, self._version = rev, version
            return sum(map(len, self._behind.values()))

    def embed(self, limit: int) -> Embedded:
        """Embed at most `limit` of the rows that are behind, in one transaction. Raises BackendDown and MissingExtra.

        A row whose text the embedder refuses gets no passages, and is tried again when its text changes.
        """
        self.behind()
        with self._lock:
            waiting = sorted((name, row_id) for name, ids in self._behind.items() for row_id in ids)[:limit]
        rows = [row for name in SOURCES for row in self._read(name, [row_id for at, row_id in waiting if at == name])]
        refused = self._add_vectors(rows)
        self._index.vectors.put(rows)
        with self._lock:  # a row that changed meanwhile is found by the next look
            for name, row_id in waiting:
                self._behind[name].discard(row_id)
        return Embedded(len(rows) - refused, refused, self.behind())

    def _compared(self, name: str) -> set[str]:
        """Which rows have no such vectors, of those that changed since the last look or had none then."""
        of_model = Is("model", "=", self._embedder.model)
        since = Either((Is("rev", ">", self._seen), Is("id", "in", self._behind[name])))
        rows = self._index.collections[name].tuples(("id", SOURCES[name][0], "audience"), since)
        among = Is("id", "in", [f"{name}:{row_id}" for row_id, _, _ in rows])
        wanted = of_model if self._seen < 0 else both(of_model, among)
        known = {key: made_of for key, *made_of in self._index.vectors.tuples(("id", "digest", "audience"), wanted)}
        return {row_id for row_id, *made_of in rows if known.get(f"{name}:{row_id}") != made_of}

    def _read(self, name: str, ids: Sequence[str]) -> list[Row]:
        """Rows for `vectors`, with the passages' texts instead of vectors."""
        digest, *fields = SOURCES[name]
        found: list[Row] = []
        for row in self._index.collections[name].find(Is("id", "in", ids), fields=("id", digest, "audience", *fields)):
            texts = texts_to_embed(row.get("title") or "", row["content"] or "", row.get("sections") or ())
            found.append(
                {
                    "id": f"{name}:{row['id']}",
                    "model": self._embedder.model,
                    "digest": row[digest],
                    "audience": row["audience"],
                    "places": [[passage.start, passage.end] for passage, _ in texts],
                    "texts": [text for _, text in texts],
                }
            )
        return found

    def _add_vectors(self, rows: Sequence[Row]) -> int:
        """Add codes and scales to rows, and return how many texts are refused. Raises BackendDown where all are."""
        texts = [text for row in rows for text in row["texts"]]
        try:
            codes, scales = pack_vectors(self._embedder.embed(texts))
        except TextRefused as error:
            if len(rows) > 1:
                return sum(self._add_vectors([row]) for row in rows)
            try:
                self._embedder.embed(["note"])  # no embedder refuses this
            except TextRefused:
                raise BackendDown(error.backend, error.reason) from None
            rows[0].update(texts=[], places=[], codes=b"", scales=b"")
            return 1
        start = 0
        for row in rows:
            end = start + len(row["places"])
            row |= {"codes": codes[start:end].tobytes(), "scales": scales[start:end].tobytes()}
            start = end
        return 0


def pack_vectors(matrix: Matrix) -> tuple[Any, Any]:
    """Vectors as numbers of eight bits, and a scale for each: cosines differ by less than 0.004."""
    import numpy as np  # of the extra `search`, as all that makes vectors

    scales = np.abs(matrix).max(axis=1, initial=0.0) / 127
    codes = np.rint(matrix / np.where(scales > 0, scales, 1)[:, None])
    return codes.astype(np.int8), scales.astype(np.float32)
