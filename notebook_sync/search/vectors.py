"""Vectors of texts, and which rows are nearest to a query by them.

A vector is the direction of a list of numbers, as a signed 8-bit number for each, the largest of which is 127. Cosines
of vectors differ by less than 0.01 from those of the numbers. All zeros is the vector of what is like nothing.
"""

from __future__ import annotations

import re
import threading
from array import array
from bisect import bisect_left
from collections.abc import Collection as AnyCollection
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, islice
from typing import Any, TypeAlias

from notebook_sync.errors import missing_extra
from notebook_sync.store.index import Index
from notebook_sync.store.rows import All, Is

Vector: TypeAlias = bytes
_AT_ONCE = 512
# So many passages for each row that is wanted are looked at first, and so many times more where those are of few rows.
_PASSAGES = 4


def pack_vector(numbers: Sequence[float]) -> Vector:
    """The vector of finite numbers."""
    largest = max(map(abs, numbers), default=0.0) or 1.0
    return array("b", [round(number / largest * 127) for number in numbers]).tobytes()


@lru_cache(maxsize=2048)  # the same notes are candidates again and again
def sum_of(vectors: bytes, size: int) -> array[float]:
    """The sum of vectors of this size, which follow one another; it is not to be changed."""
    codes = array("b", vectors)
    return array("f", map(sum, zip(*(codes[at : at + size] for at in range(0, len(codes), size)), strict=True)))


def comparison() -> Any:
    """The package that compares vectors. Raises MissingExtra."""
    with missing_extra("search by meaning", "search"):
        import simsimd
    return simsimd


def cosines_of(query: Vector, vectors: bytes) -> list[float]:
    """The cosine of a vector with each of the others, which follow one another. Raises MissingExtra."""
    return [1.0 - distance for distance in _distances(query, vectors)]


def cosine(one: array[Any], other: array[Any]) -> float:
    """The cosine of two lists of numbers of one type. Raises MissingExtra."""
    return 1.0 - float(comparison().cosine(one, other))


def _distances(query: Vector, vectors: bytes) -> memoryview[float]:
    """The cosines, each taken from 1, so that the nearest has the least: 0 to 2, as floats of 64 bits."""
    if not vectors:
        return memoryview(array("d"))
    there = memoryview(vectors).cast("b", [len(vectors) // len(query), len(query)])
    found = comparison().cdist(memoryview(query).cast("b", [1, len(query)]), there, "cosine")
    return memoryview(found).cast("B").cast("d")


def _least(distances: memoryview[float], most: int) -> list[int]:
    """Where the least distances are, in order: at least `most`, if there are so many. Most others are ruled out by two
    of their bytes, of all at once: to look at each number would take ten times as long as to compute it.

    The highest byte is 63 from 2^-15 to below 2, and less below that; the next one then grows with the number.
    """
    raw = distances.tobytes()
    keys = raw[6::8]

    def up_to(byte: int) -> bytes:
        return keys.translate(b"\1" * (byte + 1) + bytes(255 - byte))

    last = bisect_left(range(255), most, key=lambda byte: up_to(byte).count(1))
    tiny = raw[7::8].translate(b"\1" * 63 + bytes(193))
    places = {found.start() for marks in (up_to(last), tiny) for found in re.finditer(b"\1", marks)}
    return sorted(places, key=distances.__getitem__)


class VectorIndex:
    """All vectors of one collection and model. May be used by several threads; it follows the index by itself.

    Methods raise MissingExtra where simsimd is not installed.
    """

    def __init__(self, index: Index, collection: str, model: str) -> None:
        self._index = index
        self._rows = index.vectors
        self._prefix = f"{collection}:"
        self._wanted = All((Is("model", "=", model), Is("id", ">=", self._prefix), Is("id", "<", f"{collection};")))
        self._lock = threading.Lock()
        self._version = -1
        # By key of each row with passages: its rev, and where its vectors begin and end among all.
        self._held: dict[str, tuple[int, int, int]] = {}
        self._vectors = b""
        self._owners: list[str] = []  # the id of the row that each vector is of

    def nearest(self, query: Vector, count: int, among: AnyCollection[str] | None = None) -> list[tuple[str, float]]:
        """At most `count` ids, of those in `among`, each with the cosine of its nearest passage, nearest first. A row
        whose cosine is not positive is left out."""
        with self._lock:
            self._refresh(len(query))
            vectors, owners = self._vectors, self._owners
        distances, best, most = _distances(query, vectors), dict[str, float](), 0
        while len(best) < count and most < len(owners):
            most = _PASSAGES * (most or count)
            for at in _least(distances, most):
                if distances[at] < 1 and (among is None or owners[at] in among):
                    best.setdefault(owners[at], 1.0 - distances[at])
        return list(islice(best.items(), count))

    def cosines(self, query: Vector, ids: AnyCollection[str]) -> dict[str, float]:
        """The cosine of the nearest passage of each row, less those without passages."""
        found = self.passages_of(query, ids)
        every = iter(cosines_of(query, b"".join(found.values())))
        return {row_id: max(islice(every, len(vectors) // len(query))) for row_id, vectors in found.items()}

    def directions(self, query: Vector, ids: AnyCollection[str]) -> dict[str, array[float]]:
        """The sum of each row's passages, less rows whose passages have no direction."""
        found = self.passages_of(query, ids)
        return {row_id: sum_of(vectors, len(query)) for row_id, vectors in found.items() if any(vectors)}

    def passages_of(self, query: Vector, ids: AnyCollection[str]) -> dict[str, bytes]:
        """The vectors of each of these rows that has passages."""
        with self._lock:
            self._refresh(len(query))
            held, vectors = self._held, self._vectors
        places = {row_id: held[key] for row_id in ids if (key := self._prefix + row_id) in held}
        return {row_id: vectors[start:end] for row_id, (_, start, end) in places.items()}

    def _refresh(self, size: int) -> None:
        """Load the rows that changed since the last look, and drop what they had."""
        version = self._index.vectors_version()
        if version == self._version:
            return
        of_size = Is("size", "=", size)
        there = dict(self._rows.tuples(["id", "rev"], All((self._wanted, of_size))))
        parts = {
            key: memoryview(self._vectors)[start:end]
            for key, (rev, start, end) in self._held.items()
            if there.get(key) == rev
        }
        changed = [key for key in there if key not in parts]
        for at in range(0, len(changed), _AT_ONCE):
            asked = All((Is("id", "in", changed[at : at + _AT_ONCE]), of_size))
            parts |= {key: memoryview(codes) for key, codes in self._rows.tuples(["id", "codes"], asked) if codes}
        self._vectors = b"".join(parts.values())
        places = zip(parts.items(), accumulate(map(len, parts.values())), strict=True)
        self._held = {key: (there[key], end - len(part), end) for (key, part), end in places}
        ids = [(key.removeprefix(self._prefix), len(part) // size) for key, part in parts.items()]
        self._owners = [row_id for row_id, count in ids for _ in range(count)]
        self._version = version
