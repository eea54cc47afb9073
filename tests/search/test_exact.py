"""The exact index over a store of its own: what it asks for, what it holds, and that it finds what is nearest."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notebook_sync.errors import BackendDown
from notebook_sync.search import rough
from notebook_sync.search.base import Matrix, Place, Vectored
from notebook_sync.search.exact import ExactIndex, State
from notebook_sync.search.packing import Packed, pack, vectors_of
from notebook_sync.search.rough import Key, RoughRow

MODEL = "model"


@dataclass
class Shelf:
    """Vectors by note, in memory; what was asked is counted."""

    made: str = "first"
    dimensions: int = 16
    notes: dict[str, tuple[int, Packed]] = field(default_factory=dict)
    last: int = 0
    read: list[str] = field(default_factory=list)
    whole_of: list[str] = field(default_factory=list)
    listed: int = 0
    breaks: int = 0

    def put(self, note_id: str, rows: Matrix, anchors: Sequence[str] = ()) -> None:
        self.last += 1
        sections = [*anchors, *[""] * (len(rows) - len(anchors))]
        places = [Place(anchor, n + 1, 0, 1) for n, anchor in enumerate(sections)]
        self.notes[note_id] = self.last, pack(Vectored(note_id, "digest", places, rows))

    def state(self, model: str) -> State:
        return State(self.made, self.dimensions, (self.last,), len(self.notes))

    def since(self, model: str, known: State | None, held: Container[Key]) -> Iterator[list[RoughRow]]:
        first = known.newest[0] if known else 0
        new = sorted((n, note_id) for note_id, (n, _) in self.notes.items() if n > first)
        for start in range(0, len(new), 3):
            if self.breaks:
                self.breaks -= 1
                raise BackendDown("the shelf", "broken off")
            page = new[start : start + 3]
            self.read += [note_id for _, note_id in page]
            packed = [self.notes[note_id][1] for _, note_id in page]
            yield [
                RoughRow(
                    n,
                    one.note_id,
                    one.passages,
                    one.rough if one.dimensions == self.dimensions else b"",
                    one.note_id.rpartition(":")[0],
                )
                for (n, _), one in zip(page, packed, strict=True)
            ]

    def keys(self) -> Collection[Key]:
        self.listed += 1
        return [n for n, _ in self.notes.values()]

    def whole(self, model: str, ids: Sequence[str]) -> list[Packed]:
        self.whole_of += ids
        return [self.notes[note_id][1] for note_id in ids if note_id in self.notes]


def rows_of(seed: int, count: int, dimensions: int = 16) -> Matrix:
    return np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)


def nearest_of_all(shelf: Shelf, query: Matrix, limit: int) -> list[tuple[float, str]]:
    """By every whole vector."""
    unit = query / np.linalg.norm(query)
    best = [
        (-round(float(np.clip((vectors_of(one) @ unit).max(), -1, 1)), 5), one.note_id)
        for _, one in shelf.notes.values()
        if one.passages and vectors_of(one).any()
    ]
    return sorted(best)[:limit]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that few rows take several."""
    monkeypatch.setattr(rough, "_BLOCK", 64)
    monkeypatch.setattr(rough, "_FEWEST_ROWS", 16)


class TestExactness:
    @settings(max_examples=40)
    @given(
        seed=st.integers(0, 2**32),
        spread=st.sampled_from([1.0, 0.1, 0.001, 0.0]),
        outlier=st.sampled_from([0.0, 1.0, 100.0]),
        limit=st.sampled_from([1, 3, 40, 1000]),
    )
    def test_it_finds_what_every_whole_vector_finds(self, seed: int, spread: float, outlier: float, limit: int) -> None:
        """Also where all are nearly even, and where one number of each dwarfs the others."""
        shelf, random = Shelf(), np.random.default_rng(seed)
        centre = random.standard_normal(16)
        for n in range(60):
            rows = centre + spread * random.standard_normal((int(random.integers(0, 9)), 16))
            rows[:, 3] += outlier
            shelf.put(f"n{n:02}", rows.astype(np.float32))
        query = (centre + random.standard_normal(16)).astype(np.float32)
        found = ExactIndex(shelf).nearest(MODEL, query, limit)
        expected = nearest_of_all(shelf, query, limit)
        assert [near.similarity for near in found] == pytest.approx([-best for best, _ in expected], abs=2e-5)
        if spread == 1.0 and outlier == 0.0:
            assert [near.note_id for near in found] == [note_id for _, note_id in expected]

    @given(st.integers(0, 2**32), st.integers(1, 40))
    def test_a_vector_is_kept_to_four_decimals(self, seed: int, dimensions: int) -> None:
        rows = rows_of(seed, 5, dimensions)
        packed = pack(Vectored("n", "digest", [Place("", 1, 0, 1)] * 5, rows))
        units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        assert np.abs(vectors_of(packed) - units).max() < 3e-5

    def test_few_whole_vectors_are_asked_for(self) -> None:
        shelf = Shelf()
        for n in range(3_000):
            shelf.put(f"n{n:04}", rows_of(n, 2))
        ExactIndex(shelf).nearest(MODEL, rows_of(9_999, 1)[0], 10)
        assert len(shelf.whole_of) < 200

    def test_notes_of_other_rooms_are_not_compared(self) -> None:
        shelf = Shelf()
        for n, room in enumerate(["", "channels/a/x:", "channels/a/y:", "channels/ab/x:"]):
            shelf.put(f"{room}note", rows_of(n, 2))
        found = ExactIndex(shelf).nearest(MODEL, rows_of(9, 1)[0], 10, folders=["channels/a"])
        wanted = {"note", "channels/a/x:note", "channels/a/y:note"}
        assert {one.note_id for one in found} == set(shelf.whole_of) == wanted

    def test_two_sections_with_one_number_are_two(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for module in ("packing", "rough"):
            monkeypatch.setattr(f"notebook_sync.search.{module}.section_number", lambda _: 7)
        shelf, rows = Shelf(), rows_of(1, 2)
        shelf.put("a", rows, ["times", "fares"])
        shelf.put("b", rows, ["fares", "fares"])
        found = ExactIndex(shelf).nearest(MODEL, rows[0], 10, section="times")
        assert [(near.note_id, near.place.anchor) for near in found] == [("a", "times")]


class TestKeepingUp:
    def test_only_what_is_new_is_read(self) -> None:
        shelf = Shelf()
        index, query = ExactIndex(shelf), rows_of(0, 1)[0]
        for n in range(20):
            shelf.put(f"n{n}", rows_of(n, 3))
        index.nearest(MODEL, query, 1)
        assert len(shelf.read) == 20
        shelf.put("n3", rows_of(33, 3))
        assert index.nearest(MODEL, rows_of(33, 3)[1], 1)[0].note_id == "n3"
        assert shelf.read[20:] == ["n3"]
        index.nearest(MODEL, query, 1)
        assert (len(shelf.read), shelf.listed) == (21, 0)

    def test_what_went_from_the_store_is_let_go(self) -> None:
        shelf = Shelf()
        index = ExactIndex(shelf)
        for n in range(20):
            shelf.put(f"n{n:02}", rows_of(n, 3))
        index.nearest(MODEL, rows_of(0, 1)[0], 1)
        for n in range(10):
            del shelf.notes[f"n{n:02}"]
        shelf.whole_of.clear()
        found = index.nearest(MODEL, rows_of(0, 1)[0], 100)
        assert len(found) == 10
        assert set(shelf.whole_of) == set(shelf.notes)

    def test_a_store_that_was_made_anew_is_read_anew(self) -> None:
        shelf = Shelf()
        index = ExactIndex(shelf)
        shelf.put("old", rows_of(1, 1))
        index.nearest(MODEL, rows_of(1, 1)[0], 1)
        shelf.made, shelf.last, shelf.notes = "second", 0, {}
        shelf.put("new", rows_of(2, 1))
        assert [near.note_id for near in index.nearest(MODEL, rows_of(1, 1)[0], 10)] == ["new"]

    def test_reading_that_was_broken_off_is_begun_again(self) -> None:
        shelf = Shelf()
        index = ExactIndex(shelf)
        for n in range(10):
            shelf.put(f"n{n}", rows_of(n, 2))
        index.nearest(MODEL, rows_of(0, 1)[0], 1)
        for n in range(10):
            shelf.put(f"n{n}", rows_of(n + 50, 2))
        shelf.breaks = 1
        with pytest.raises(BackendDown):
            index.nearest(MODEL, rows_of(0, 1)[0], 1)
        found = index.nearest(MODEL, rows_of(55, 2)[0], 100)
        assert (found[0].note_id, len(found)) == ("n5", 10)

    def test_many_changes_let_nothing_pile_up(self) -> None:
        shelf = Shelf()
        index = ExactIndex(shelf)
        for n in range(10):
            shelf.put(f"n{n}", rows_of(n, 4))
        for turn in range(30):
            shelf.put("n5", rows_of(100 + turn, 4))
            found = index.nearest(MODEL, rows_of(100 + turn, 4)[2], 100)
            assert (found[0].note_id, len(found)) == ("n5", 10)
        assert len(shelf.read) > 10 + 30  # worn out, everything was read again

    def test_a_note_of_more_passages_than_a_block_has_stands_whole(self) -> None:
        shelf = Shelf()
        shelf.put("short", rows_of(1, 3))
        shelf.put("long", rows_of(2, 500))
        shelf.put("other", rows_of(3, 3))
        index = ExactIndex(shelf)
        found = index.nearest(MODEL, rows_of(2, 500)[499], 3)
        assert (found[0].note_id, found[0].place.line, len(found)) == ("long", 500, 3)

    def test_another_size_of_the_model_is_another_index(self) -> None:
        shelf = Shelf()
        index = ExactIndex(shelf)
        shelf.put("old", rows_of(1, 2))
        index.nearest(MODEL, rows_of(1, 1)[0], 1)
        shelf.dimensions = 8
        shelf.put("new", rows_of(2, 2, 8))
        assert [near.note_id for near in index.nearest(MODEL, rows_of(2, 2, 8)[0], 10)] == ["new"]
        assert index.nearest(MODEL, rows_of(1, 1)[0], 1) == []
