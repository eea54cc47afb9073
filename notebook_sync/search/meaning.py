"""The vectors of rows: which rows lack those of their present words, and how near rows are to what a query means.

Text is searchable at once, vectors follow. Trouble costs meaning, never the answer.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from operator import itemgetter
from threading import Lock
from typing import Final, NamedTuple

from notebook_sync.errors import BackendDown, Busy, MissingExtra, ReadOnly
from notebook_sync.search.embed import Embedder, Rarity, TextRefused
from notebook_sync.search.terms import texts_to_embed
from notebook_sync.search.vectors import Vector, VectorIndex, comparison, cosines_of, pack_vector, sum_of
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is, Row, both

# By collection: the column that says which words a vector was made of, and what else is read to make it.
SOURCES: Final = {"documents": ("words_digest", "title", "content", "sections"), "facts": ("id", "content")}
# Before the ids of vectors that the second stage made.
SECOND_STAGE: Final = "2:"
_UNKNOWN = "the model of embeddings knows no word of this query"
# A search embeds no more rows first than these; of a server, which may take long, nothing is asked for it.
_FEW_BEHIND = 200
# A server that failed is not asked again for so many seconds.
_PAUSE_SECONDS = 15.0
# Parts of a content, in characters.
Spans = Sequence[tuple[int, int]]


class Nearness(NamedTuple):
    """How near a row is to the query: the cosine of its nearest passage, and where in its content that begins."""

    cosine: float = 0.0
    start: int | None = None


class Embedded(NamedTuple):
    """What a run did: rows that got vectors, rows whose text the embedder refuses, and rows that have none yet."""

    embedded: int
    failed: int
    behind: int


class Meaning:
    """Queries and rows compared by the vectors of one embedder, and the rows that lack them. May be used by several
    threads and processes. `stage`: see `SECOND_STAGE`; `vectors`: by collection, those that there are."""

    def __init__(self, index: Index, embedder: Embedder, *, stage: str = "") -> None:
        self.embedder = embedder
        self.vectors = {name: VectorIndex(index, f"{stage}{name}", embedder.model) for name in SOURCES}
        self._index = index
        self._stage = stage
        self._trouble = ""
        self._again_at = 0.0
        self._lock = Lock()
        self._seen = -1  # which rows lack vectors, as of this rev
        self._behind: dict[str, set[str]] = {name: set() for name in SOURCES}

    def of(self, query: str, rarity: Rarity) -> tuple[Vector | None, str | None]:
        """The vector of a query, or None and why it has none."""
        if time.monotonic() < self._again_at:
            return None, self._trouble
        try:
            comparison()
            vector = self.embedder.embed_query(query, rarity)
        except (BackendDown, MissingExtra) as error:
            if not self.embedder.is_local:
                self._trouble, self._again_at = str(error), time.monotonic() + _PAUSE_SECONDS
            return None, str(error)
        return (vector, None) if any(vector) else (None, _UNKNOWN)

    def catch_up(self) -> bool:
        """Embed rows that lack vectors, if they are few and no server is asked. Returns whether some are left."""
        behind = self.behind()
        if self.embedder.is_local and 0 < behind <= _FEW_BEHIND:
            with suppress(BackendDown, MissingExtra, Busy, ReadOnly):  # the vectors that there are already answer
                behind = self.embed(behind).behind
        return behind > 0

    def nearness(
        self, vector: Vector, collection: str, ids: Collection[str], spans: Mapping[str, Spans] | None = None
    ) -> dict[str, Nearness]:
        """How near rows are; those without vectors are left out. `spans`: only passages that begin there count."""
        keys = {f"{self._stage}{collection}:{row_id}": row_id for row_id in ids}
        rows = self._index.vectors.tuples(("id", "places"), Is("id", "in", list(keys)))
        starts = {keys[key]: [start for start, _ in places or ()] for key, places in rows}
        found: dict[str, Nearness] = {}
        for row_id, passages in self.vectors[collection].passages_of(vector, starts).items():
            # Of vectors that were made again meanwhile, some may have no start.
            near = zip(cosines_of(vector, passages), starts[row_id], strict=False)
            counted = [each for each in near if spans is None or is_within(each[1], spans[row_id])]
            if counted:
                found[row_id] = Nearness(*max(counted, key=itemgetter(0)))
        return found

    def alike(self, ids: Collection[str], above: float) -> list[tuple[str, str]]:
        """The pairs of documents whose sums of passages have at least this cosine, nearest first, equal ones by id."""
        keys = Is("id", "in", [f"documents:{row_id}" for row_id in ids])
        rows = self._index.vectors.tuples(("id", "size", "codes"), both(keys, Is("model", "=", self.embedder.model)))
        sums = {key.partition(":")[2]: pack_vector(sum_of(codes, size)) for key, size, codes in sorted(rows) if size}
        sums = {row_id: vector for row_id, vector in sums.items() if any(vector)}
        named, near = list(sums), list[tuple[float, str, str]]()
        for at, (one, vector) in enumerate(sums.items(), 1):
            others = zip(cosines_of(vector, b"".join(sums[other] for other in named[at:])), named[at:], strict=True)
            near += [(-round(cosine, 4), one, other) for cosine, other in others if cosine >= above]
        return [(one, other) for _, one, other in sorted(near)]

    # ---- rows that lack vectors

    def behind(self) -> int:
        """How many rows lack vectors of their present words."""
        with self._lock:
            rev = self._index.rev()
            # Vectors have no rev: another process may have made some.
            if rev != self._seen or any(self._behind.values()):
                # Of those that changed since the last look or had none then.
                self._behind = {
                    name: self._index.without_vectors(
                        name,
                        columns[0],
                        self.embedder.model,
                        stage=self._stage,
                        since=self._seen,
                        ids=self._behind[name],
                    )
                    for name, columns in SOURCES.items()
                }
                self._seen = rev
            return sum(map(len, self._behind.values()))

    def embed(self, limit: int) -> Embedded:
        """Embed at most `limit` of the rows that lack vectors, in one transaction. Raises BackendDown and MissingExtra.

        A row whose text the embedder refuses gets no passages, and is tried again when its text changes.
        """
        comparison()
        self.behind()
        with self._lock:
            waiting = sorted((name, row_id) for name, ids in self._behind.items() for row_id in ids)[:limit]
        rows = [row for name in SOURCES for row in self._read(name, [row_id for at, row_id in waiting if at == name])]
        refused = self._add_vectors(rows)
        with self._index.write():
            self._index.vectors.put(rows)
            facts = [row_id for name, row_id in waiting if name == "facts"]
            self._index.facts.update(Is("id", "in", facts), stamp=True)  # their vectors are published
        with self._lock:  # a row that changed meanwhile is found by the next look
            for name, row_id in waiting:
                self._behind[name].discard(row_id)
        return Embedded(len(rows) - refused, refused, self.behind())

    def _read(self, name: str, ids: Sequence[str]) -> Iterator[Row]:
        """Rows for `vectors`, with the passages' texts instead of vectors."""
        digest, *fields = SOURCES[name]
        for row in self._index.collections[name].find(Is("id", "in", ids), fields=("id", digest, "audience", *fields)):
            texts = texts_to_embed(row.get("title") or "", row["content"] or "", row.get("sections") or ())
            yield {
                "id": f"{self._stage}{name}:{row['id']}",
                "model": self.embedder.model,
                "digest": row[digest],
                "audience": row["audience"],
                "places": [[passage.start, passage.start + len(passage.text)] for passage, _ in texts],
                "texts": [text for _, text in texts],
            }

    def _add_vectors(self, rows: Sequence[Row]) -> int:
        """Add vectors to rows, and return how many texts are refused. Raises BackendDown where all are."""
        texts = [text for row in rows for text in row["texts"]]
        try:
            vectors = self.embedder.embed(texts)
        except TextRefused as error:
            if len(rows) > 1:
                return sum(self._add_vectors([row]) for row in rows)
            try:
                self.embedder.embed(["note"])  # no embedder refuses this
            except TextRefused:
                raise BackendDown(error.backend, error.reason) from None
            rows[0].update(places=[], size=0, codes=b"")
            return 1
        every = iter(vectors)
        for row in rows:
            own = list(islice(every, len(row["texts"])))
            row |= {"size": len(own[0]), "codes": b"".join(own)}
        return 0


def is_within(position: int, spans: Spans) -> bool:
    """Whether a position is in one of the parts."""
    return any(start <= position < end for start, end in spans)
