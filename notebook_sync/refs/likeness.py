"""How like entries are to a query and to one another, by their vectors; and how hot memory keeps these. Pure.

Imported by a recall by meaning alone: arrays cost a tenth of a second, and who logs needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from notebook_sync.refs.base import Entry

if TYPE_CHECKING:
    from notebook_sync.refs.base import Matrix, Meaning, Vector

Key = tuple[bool, str]
# Of a number between -1 and 1, half as many bytes tell three digits: as much as a cosine is worth.
_STORED = np.dtype("<f2")


class EntryLikeness:
    """`ranking.Likeness` of entries, by the vectors of what they say. One that is told as something else than it says
    has none; nor has one whose vector is all zero, which says that nothing is known of it."""

    def __init__(self, meaning: Meaning, vectors: Mapping[Key, Vector]) -> None:
        self.unrelated = meaning.unrelated
        self._query = meaning.vector
        self._vectors = {
            key: vector for key, vector in vectors.items() if vector.shape == meaning.vector.shape and vector.any()
        }

    def to_query(self, entries: Sequence[Entry]) -> list[float | None]:
        return self._cosines(self._query, entries)

    def between(self, entry: Entry, others: Sequence[Entry]) -> list[float | None]:
        vector = self._vectors.get(key_of(entry))
        return [None] * len(others) if vector is None else self._cosines(vector, others)

    def _cosines(self, vector: Vector, entries: Sequence[Entry]) -> list[float | None]:
        found = [self._vectors.get(key_of(entry)) for entry in entries]
        there = [one for one in found if one is not None]
        cosines = iter((np.stack(there) @ vector).tolist() if there else ())
        return [None if one is None else next(cosines) for one in found]


def key_of(entry: Entry) -> Key:
    """What an entry's vector is made of: a ref's text is another than that of an entry with the same content."""
    return "ref" in entry, entry["content"]


def text_of(entry: Entry) -> str:
    """What of an entry is embedded. Of a ref, the title by itself: it says what the summary is about."""
    if "ref" not in entry:
        return str(entry["content"])
    title = entry["ref"]["title"]
    return f"{title}\n{entry['content'].removeprefix(f'[{title}] ')}"


def packed(vectors: Matrix) -> list[bytes]:
    """Each vector as the embedded file has it."""
    return [row.tobytes() for row in vectors.astype(_STORED)]


def unpacked(rows: Iterable[bytes], dimensions: int) -> Matrix:
    """The vectors of these rows, all of which have as many dimensions."""
    return np.frombuffer(b"".join(rows), _STORED).reshape(-1, dimensions).astype(np.float32)
