"""Rough vectors in memory, a byte a number, and which notes may be the nearest by them. No store is asked here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import simsimd
from numpy.typing import NDArray

from notebook_sync.search.base import Vector
from notebook_sync.search.packing import Codes, rough_type, section_number

Key = int | str
# Rows that are looked through at a time, and room that is made at a time.
_BLOCK = 1 << 15
# The same for a room that few may read, of which there may be many.
_BLOCK_APART = 1 << 10
# What sums of 32-bit numbers may be off by, and a cosine by being rounded.
_BLUR = 1e-5
_FEWEST, _FEWEST_ROWS = 32, 1024


@dataclass(frozen=True, slots=True)
class RoughRow:
    """One note's vectors as they were put under one key. `rough` is empty where the model asked for has none of it.
    `room`: as `permissions.room_of` says."""

    key: Key
    note_id: str
    passages: int
    rough: bytes
    room: str = ""


class RoughRows:
    """Those of one model. To change them is for one thread at a time; a snapshot is for any."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._blocks: dict[str, list[_Block]] = {}  # by room: a search looks through those that it is for
        self._places: dict[str, tuple[Key, _Block | None, slice]] = {}
        self._keys: set[Key] = set()
        self._notes: list[str] = []
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    @property
    def is_worn(self) -> bool:
        """Whether so much of it was replaced that reading everything again is better than holding it."""
        return self._dropped > max(_BLOCK, sum(block.used for block in chain(*self._blocks.values())) // 3)

    def take(self, rows: Iterable[RoughRow]) -> None:
        """Hold these rows instead of what their notes had."""
        new = {row.note_id: row for row in rows if row.key not in self._keys}
        for note_id, row in new.items():
            self._drop(note_id)
            self._places[note_id] = row.key, None, slice(0)
            self._keys.add(row.key)
        rooms = defaultdict[str, list[RoughRow]](list)
        for row in new.values():
            if row.rough and self._dimensions:
                rooms[row.room].append(row)
        for block, run in chain.from_iterable(self._in_blocks(*of_room) for of_room in rooms.items()):
            start = block.used
            block.add(b"".join([row.rough for row in run]), np.repeat(*self._owners(run)))
            for row in run:
                self._places[row.note_id] = row.key, block, slice(start, start + row.passages)
                start += row.passages

    def keep(self, keys: Collection[Key]) -> None:
        """Drop all rows but these."""
        kept = frozenset(keys)
        for note_id in [note_id for note_id, (key, *_) in self._places.items() if key not in kept]:
            self._drop(note_id)

    def snapshot(self, folders: Collection[str] | None = None) -> Snapshot:
        """What is held now, for searches that go on while it changes; all of it, or what `Vectors.nearest` says."""
        below = tuple(f"{folder}/" for folder in folders or ())
        rooms = [room for room in self._blocks if folders is None or not room or f"{room}/".startswith(below)]
        blocks = [(block, block.used) for room in rooms for block in self._blocks[room]]
        return Snapshot(self._dimensions, blocks, self._notes)

    def _drop(self, note_id: str) -> None:
        if note_id not in self._places:
            return
        key, block, place = self._places.pop(note_id)
        self._keys.discard(key)
        if block is not None:
            block.scales[place] = 0
            self._dropped += place.stop - place.start

    def _in_blocks(self, room: str, rows: Sequence[RoughRow]) -> Iterator[tuple[_Block, list[RoughRow]]]:
        """Where there is space for these rows; those of one note stand together."""
        blocks = self._blocks.setdefault(room, [])
        run, passages = list[RoughRow](), 0
        for row in rows:
            if not blocks or passages + row.passages > blocks[-1].space:
                if run:
                    yield blocks[-1], run
                blocks.append(_Block(self._dimensions, max(_BLOCK_APART if room else _BLOCK, row.passages)))
                run, passages = [], 0
            run.append(row)
            passages += row.passages
        if run:
            yield blocks[-1], run

    def _owners(self, run: Sequence[RoughRow]) -> tuple[NDArray[np.int32], list[int]]:
        """The number of each note, and how often it stands."""
        first = len(self._notes)
        self._notes += [row.note_id for row in run]
        return np.arange(first, len(self._notes), dtype=np.int32), [row.passages for row in run]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Rows that stay as they are, but that some may become empty: their notes have others by then, or are gone."""

    dimensions: int
    blocks: Sequence[tuple[_Block, int]]
    notes: Sequence[str]

    def candidates(self, query: Vector, limit: int, section: str = "") -> Iterator[tuple[Sequence[str], float]]:
        """Notes in pieces, most promising first, each piece with what the cosine of no note in a later one is above.
        `query` has a length of 1."""
        near, blur = self._scores(query, section)
        seen: set[int] = set()
        count = min(len(near), max(_FEWEST_ROWS, 4 * limit))
        # What comes after the first piece are mostly notes that turn out to be a little farther than the last found.
        piece, next_piece = limit, max(_FEWEST, limit // 4)
        while count:
            rows = np.argpartition(near, len(near) - count)[len(near) - count :]
            others = float(near[rows].min()) + blur if count < len(near) else -np.inf
            bounds = self._bounds(query, rows[np.isfinite(near[rows])], seen)
            start = 0
            while start < len(bounds):
                end = start + piece
                later = bounds[end][1] if end < len(bounds) else -np.inf
                yield [self.notes[owner] for owner, _ in bounds[start:end]], max(others, later)
                start, piece = end, next_piece
            if not np.isfinite(others):
                return
            seen |= {owner for owner, _ in bounds}
            count = min(len(near), count * 4)

    def _scores(self, query: Vector, section: str) -> tuple[NDArray[np.float32], float]:
        """About what each row's cosine is, -inf for a row that is none; and by how much that may be wrong."""
        scale = float(np.abs(query).max()) / 127
        codes = np.rint(query / scale).astype(np.int8)
        wrong = float(np.linalg.norm(query.astype(np.float64) - scale * codes))
        number, lack = section_number(section), 0.0
        scores = np.full(sum(used for _, used in self.blocks), -np.inf, np.float32)
        start = 0
        for block, used in self.blocks:
            products = np.asarray(simsimd.cdist(codes[None], block.codes[:used], "dot"))[0]
            is_asked = block.scales[:used] > 0
            if section:
                is_asked &= block.sections[:used] == number
            of_block, factors = scores[start : start + used], block.scales[:used] * np.float32(256 * scale)
            np.multiply(products, factors, out=of_block, where=is_asked, casting="same_kind")
            lack = max(lack, block.largest_lack)
            start += used
        return scores, lack + (1 + lack) * wrong + _BLUR

    def _bounds(self, query: Vector, rows: NDArray[np.intp], seen: set[int]) -> list[tuple[int, float]]:
        """Notes by the number of these rows, each with what its cosine is not above, the highest first."""
        found: list[tuple[NDArray[np.int32], NDArray[np.float32]]] = []
        start = 0
        for block, used in self.blocks:
            here = rows[(rows >= start) & (rows < start + used)] - start
            start += used
            scores = (block.codes[here].astype(np.float32) @ query) * block.scales[here] * 256
            found.append((block.owners[here], scores + block.lacks[here] + np.float32(_BLUR)))
        owners, bounds = (np.concatenate(of) for of in zip(*found, strict=True))
        order = np.argsort(-bounds, kind="stable")
        highest = order[np.sort(np.unique(owners[order], return_index=True)[1])]
        told = zip(owners[highest].tolist(), bounds[highest].tolist(), strict=True)
        return [(owner, bound) for owner, bound in told if owner not in seen]


class _Block:
    """Room for so many rows; what is not used yet takes no memory."""

    def __init__(self, dimensions: int, size: int) -> None:
        self.codes: Codes = np.empty((size, dimensions), np.int8)
        self.scales = np.empty(size, np.float32)
        self.lacks = np.empty(size, np.float32)
        self.sections = np.empty(size, np.uint32)
        self.owners = np.empty(size, np.int32)
        self.largest_lack = 0.0
        self.used = 0

    @property
    def space(self) -> int:
        return len(self.codes) - self.used

    def add(self, rough: bytes, owners: NDArray[np.int32]) -> None:
        rows = np.frombuffer(rough, rough_type(self.codes.shape[1]))
        place = slice(self.used, self.used + len(rows))
        self.codes[place], self.scales[place], self.lacks[place] = rows["codes"], rows["scale"], rows["lack"]
        self.sections[place], self.owners[place] = rows["section"], owners
        self.largest_lack = max(self.largest_lack, float(rows["lack"].max(initial=0.0)))
        self.used = place.stop
