"""Vectors as stores keep them: each number as two bytes, of which the first alone tells nearly what it is. Pure.

A row is `scale × (256 × rough + fine)`, whole numbers of one byte each: what is rough is small enough to look through
for every search, and with what is fine a number is as exact as cosines are told here.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from notebook_sync.search.base import Matrix, Near, Place, Vector, Vectored

Codes = NDArray[np.int8]
"""One row of whole numbers for each passage."""
DECIMALS = 6
"""Of a cosine: two passages with one text are as near as each other, in whatever order they were multiplied."""
# The largest sum of both bytes: its rough part and what is left of it are bytes themselves.
_LARGEST = 127 * 256 + 127


@dataclass(frozen=True, slots=True)
class Packed:
    """The vectors of one note. `dimensions` is 0 where it has no passage. What `rough` is, `rough_type` tells; `places`
    are lines: the line, from where to where, and the anchor."""

    note_id: str
    digest: str
    passages: int
    dimensions: int
    rough: bytes
    fine: bytes
    places: bytes


def pack(note: Vectored) -> Packed:
    """A note's vectors as bytes. Of a row that points nowhere (all zero, or not of numbers) all are zero."""
    if note.vectors.ndim != 2 or len(note.places) != len(note.vectors):
        raise ValueError(f"{len(note.places)} places for vectors of the shape {note.vectors.shape}")
    numbers = np.asarray(note.vectors, np.float64)
    lengths = np.linalg.norm(numbers, axis=1, keepdims=True) if numbers.size else np.ones((len(numbers), 1))
    points = np.isfinite(lengths) & (lengths > 0)
    units = np.divide(numbers, lengths, out=np.zeros_like(numbers), where=points)
    scales = np.abs(units).max(axis=1, initial=0.0) / _LARGEST
    whole = np.divide(units, scales[:, None], out=np.zeros_like(units), where=scales[:, None] > 0)
    whole = np.rint(whole).astype(np.int32)
    rough = (whole + 128) >> 8
    fine = whole - (rough << 8)
    lacks = scales * np.linalg.norm(fine.astype(np.float64), axis=1) if fine.size else scales
    told = np.zeros(len(numbers), rough_type(numbers.shape[1]))
    told["scale"], told["lack"], told["codes"] = scales, lacks, rough
    told["section"] = [section_number(place.anchor) for place in note.places]
    places = [f"{place.line} {place.start} {place.end} {place.anchor}" for place in note.places]
    return Packed(
        note.note_id,
        note.digest,
        len(numbers),
        numbers.shape[1] if len(numbers) else 0,
        told.tobytes(),
        fine.astype(np.int8).tobytes(),
        "\n".join(places).encode("utf-8", "surrogatepass"),
    )


@lru_cache(maxsize=8)
def rough_type(dimensions: int) -> np.dtype[np.void]:
    """A passage as it is looked through: the scale of its row, 0 where it has no vector; the length of what the row
    lacks of the whole one; the number of its section; and the row."""
    return np.dtype([("scale", "<f4"), ("lack", "<f4"), ("section", "<u4"), ("codes", "i1", (dimensions,))])


@dataclass(frozen=True, slots=True)
class Found:
    """A note's passage that is nearest to a query."""

    similarity: float
    packed: Packed
    passage: int

    def near(self) -> Near:
        """With the place, which is read for what is told alone."""
        place = self.packed.places.split(b"\n")[self.passage]
        line, start, end, anchor = place.decode("utf-8", "surrogatepass").split(" ", 3)
        return Near(self.packed.note_id, self.similarity, Place(anchor, int(line), int(start), int(end)))


def nearest_in(notes: Iterable[Packed], query: Vector, section: str = "") -> list[Found]:
    """How near each of these notes is, in no order, without those of which no passage (of that section) has a vector.
    `query` has a length of 1."""
    comparable = [note for note in notes if note.dimensions == len(query)]
    if not comparable:
        return []
    cosines = _cosines(comparable, query)
    if section:
        asked = section.encode("utf-8", "surrogatepass")
        places = (place for note in comparable for place in note.places.split(b"\n"))
        cosines[[place.split(b" ", 3)[3] != asked for place in places]] = -np.inf
    starts = np.cumsum([0, *(note.passages for note in comparable)])
    best = np.maximum.reduceat(cosines, starts[:-1])
    owners = np.repeat(np.arange(len(comparable)), np.diff(starts))
    rows = np.flatnonzero(cosines == best[owners])
    first = rows[np.unique(owners[rows], return_index=True)[1]]
    return [
        Found(highest, note, passage)
        for highest, note, passage in zip(best.tolist(), comparable, (first - starts[:-1]).tolist(), strict=True)
        if highest > -math.inf
    ]


def vectors_of(note: Packed) -> Matrix:
    """The vectors again, to four decimals and a half: a row for each passage, all zero for one without."""
    return matrices_of([note], note.dimensions)[note.note_id]


def matrices_of(notes: Sequence[Packed], dimensions: int) -> dict[str, Matrix]:
    """By id, the vectors of these notes, as `vectors_of`; all of them have so many dimensions."""
    whole, scales = _whole(notes, dimensions)
    whole *= scales[:, None]
    ends = np.cumsum([note.passages for note in notes]).tolist()
    return {note.note_id: whole[end - note.passages : end] for note, end in zip(notes, ends, strict=True)}


def sections_of(note: Packed) -> list[int]:
    """The number of each passage's section."""
    found: list[int] = np.frombuffer(note.rough, rough_type(note.dimensions))["section"].tolist()
    return found


def _cosines(notes: Sequence[Packed], query: Vector) -> NDArray[np.float64]:
    """Of each passage of these notes, -inf for one without a vector. Rounded, so that equal texts are equally near."""
    whole, scales = _whole(notes, len(query))
    cosines = np.clip((whole @ query) * scales.astype(np.float64), -1, 1)
    return np.where(scales > 0, np.round(cosines, DECIMALS), -np.inf)


def _whole(notes: Sequence[Packed], dimensions: int) -> tuple[Matrix, NDArray[np.float32]]:
    """The rows of all passages of these notes, each still to be multiplied by its scale, and the scales."""
    rough = np.frombuffer(b"".join([note.rough for note in notes]), rough_type(dimensions))
    whole = rough["codes"].astype(np.float32) * 256
    whole += np.frombuffer(b"".join([note.fine for note in notes]), np.int8).reshape(whole.shape)
    return whole, rough["scale"]


def unit(query: Vector) -> Vector | None:
    """The query with a length of 1; None where it points nowhere."""
    numbers = np.asarray(query, np.float64)
    length = float(np.linalg.norm(numbers))
    return (numbers / length).astype(np.float32) if np.isfinite(length) and length > 0 else None


def section_number(anchor: str) -> int:
    """A number that two sections hardly ever share."""
    return zlib.crc32(anchor.encode("utf-8", "surrogatepass"))
