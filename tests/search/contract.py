"""What every store of vectors must do: each sentence of `search/base.py` as a test.

A store is tested by a subclass whose `stores` fixture returns two picklable functions without arguments that open the
mirror and the vectors of this test: once more for each call, also in another process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from notebook_sync.mirror.base import LARGEST_LIMIT, Mirror, Put, Remove
from notebook_sync.search.base import Counts, Matrix, Near, Place, Vector, Vectored, Vectors
from tests.mirror.contract import note, put
from tests.processes import PROCESSES

Stores = tuple[Callable[[], Mirror], Callable[[], Vectors]]

MODEL = "static-8"
EVERYTHING = 10_000


def unit(*numbers: float) -> Vector:
    """A vector of eight numbers and of length 1; what is not named is 0."""
    row = np.zeros(8)
    row[: len(numbers)] = numbers
    return np.asarray(row / np.linalg.norm(row), np.float32)


EAST, NORTH, NORTH_EAST, UP = unit(1), unit(0, 1), unit(1, 1), unit(0, 0, 1)


def page(name: str, text: str = "At noon.", folder: str = "pages", base: str | None = None) -> Put:
    return put(note(f"{folder}/{name}.md", text), base)


def vectored(of: Put, *rows: Vector, anchors: Sequence[str] = ()) -> Vectored:
    """The vectors of a note as `of` has it: a passage on each line, in these sections."""
    sections = [*anchors, *[""] * (len(rows) - len(anchors))]
    places = [Place(anchor, n + 1, 10 * n, 10 * n + 9) for n, anchor in enumerate(sections)]
    matrix: Matrix = np.array(rows, np.float32) if rows else np.zeros((0, 8), np.float32)
    return Vectored(of.id, of.note.digest, places, matrix)


def ids(found: Sequence[Near]) -> list[str]:
    return [near.note_id for near in found]


def random_rows(seed: int, count: int, dimensions: int = 8) -> Matrix:
    rows = np.random.default_rng(seed).standard_normal((count, dimensions))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


class VectorsContract:
    @pytest.fixture
    def stores(self) -> Stores:
        raise NotImplementedError

    @pytest.fixture
    def mirror(self, stores: Stores) -> Iterator[Mirror]:
        mirror = stores[0]()
        yield mirror
        mirror.close()

    @pytest.fixture
    def vectors(self, stores: Stores) -> Iterator[Vectors]:
        vectors = stores[1]()
        yield vectors
        vectors.close()


class BehindContract(VectorsContract):
    """Which notes lack vectors."""

    def test_a_note_is_behind_until_it_has_vectors(self, mirror: Mirror, vectors: Vectors) -> None:
        pier, ferry = page("pier"), page("ferry")
        mirror.apply([pier, ferry])
        assert sorted(vectors.behind(MODEL, 10)) == ["pages/ferry", "pages/pier"]
        assert vectors.counts(MODEL) == Counts(embedded=0, behind=2)
        vectors.put(MODEL, [vectored(pier, EAST)])
        assert vectors.behind(MODEL, 10) == ["pages/ferry"]
        assert vectors.counts(MODEL) == Counts(embedded=1, behind=1)

    def test_notes_that_were_there_before_the_vectors_are_behind(self, stores: Stores, mirror: Mirror) -> None:
        mirror.apply([page(f"n{n}") for n in range(3)])
        vectors = stores[1]()
        assert len(vectors.behind(MODEL, LARGEST_LIMIT)) == 3
        assert len(vectors.behind(MODEL, 2)) == 2
        assert vectors.behind(MODEL, 0) == []
        vectors.close()

    def test_a_note_that_says_nothing_is_not_behind(self, mirror: Mirror, vectors: Vectors) -> None:
        empty = page("empty", "")
        mirror.apply([empty])
        vectors.put(MODEL, [vectored(empty)])
        assert vectors.counts(MODEL) == Counts(embedded=1, behind=0)
        assert vectors.behind(MODEL, 10) == []
        assert vectors.nearest(MODEL, EAST, 10) == []

    def test_a_changed_note_is_behind_and_found_by_what_it_said(self, mirror: Mirror, vectors: Vectors) -> None:
        was = page("pier")
        mirror.apply([was])
        vectors.put(MODEL, [vectored(was, EAST)])
        now = page("pier", "At dusk.", base=was.note.digest)
        mirror.apply([now])
        assert vectors.behind(MODEL, 10) == ["pages/pier"]
        assert ids(vectors.nearest(MODEL, EAST, 10)) == ["pages/pier"]
        vectors.put(MODEL, [vectored(now, NORTH)])
        assert vectors.behind(MODEL, 10) == []
        assert vectors.nearest(MODEL, NORTH, 10)[0].similarity == pytest.approx(1, abs=1e-4)

    def test_vectors_of_an_older_text_leave_the_note_behind(self, mirror: Mirror, vectors: Vectors) -> None:
        was = page("pier")
        now = page("pier", "At dusk.", base=was.note.digest)
        mirror.apply([was])
        mirror.apply([now])
        vectors.put(MODEL, [vectored(was, EAST)])
        assert vectors.behind(MODEL, 10) == ["pages/pier"]
        assert ids(vectors.nearest(MODEL, EAST, 10)) == ["pages/pier"]

    def test_vectors_of_an_older_text_take_no_place_of_newer_ones(self, mirror: Mirror, vectors: Vectors) -> None:
        was = page("pier")
        now = page("pier", "At dusk.", base=was.note.digest)
        mirror.apply([was])
        mirror.apply([now])
        vectors.put(MODEL, [vectored(now, NORTH)])
        vectors.put(MODEL, [vectored(was, EAST)])
        assert vectors.behind(MODEL, 10) == []
        assert vectors.nearest(MODEL, NORTH, 10)[0].similarity == pytest.approx(1, abs=1e-4)

    def test_a_note_touched_or_moved_with_the_same_text_is_not_behind(self, mirror: Mirror, vectors: Vectors) -> None:
        pier = page("pier")
        mirror.apply([pier])
        vectors.put(MODEL, [vectored(pier, EAST)])
        mirror.apply([put(note("pages/quay.md", pier.note.content, wants="pages/pier"), pier.note.digest, n=5)])
        assert vectors.behind(MODEL, 10) == []
        assert ids(vectors.nearest(MODEL, EAST, 10)) == ["pages/pier"]

    def test_what_is_put_of_a_note_that_is_gone_is_not_kept(self, mirror: Mirror, vectors: Vectors) -> None:
        pier, ghost = page("pier"), page("ghost")
        mirror.apply([pier, ghost])
        mirror.apply([Remove(ghost.id, ghost.note.digest)])
        vectors.put(MODEL, [vectored(pier, EAST), vectored(ghost, EAST), vectored(page("never"), EAST)])
        for odd in ("", "\ud800", "\0", "$ne", "a.b:c d"):
            vectors.put(MODEL, [replace(vectored(ghost, EAST), note_id=odd)])
        assert ids(vectors.nearest(MODEL, EAST, 10)) == ["pages/pier"]
        assert vectors.counts(MODEL) == Counts(embedded=1, behind=0)


class ModelContract(VectorsContract):
    """Vectors of two models, or of two sizes, are never mixed."""

    def test_another_model_leaves_all_behind_and_finds_nothing(self, mirror: Mirror, vectors: Vectors) -> None:
        pier = page("pier")
        mirror.apply([pier])
        vectors.put(MODEL, [vectored(pier, EAST)])
        assert vectors.behind("another", 10) == ["pages/pier"]
        assert vectors.counts("another") == Counts(embedded=0, behind=1)
        assert vectors.nearest("another", EAST, 10) == []
        assert vectors.nearest("another", EAST, 10, among=["pages/pier"]) == []

    @pytest.mark.parametrize("other", ["another", "zz", "STATIC-8", "static-8 ", ""])
    def test_a_model_that_is_switched_and_switched_back(self, mirror: Mirror, vectors: Vectors, other: str) -> None:
        pier, ferry = page("pier"), page("ferry")
        mirror.apply([pier, ferry])
        vectors.put(MODEL, [vectored(pier, EAST), vectored(ferry, NORTH)])
        vectors.put(other, [vectored(pier, UP)])
        assert ids(vectors.nearest(MODEL, UP, 10)) == ["pages/ferry"]
        assert ids(vectors.nearest(other, UP, 10)) == ["pages/pier"]
        assert vectors.behind(MODEL, 10) == ["pages/pier"]
        assert vectors.behind(other, 10) == ["pages/ferry"]
        vectors.put(MODEL, [vectored(pier, EAST)])
        assert sorted(ids(vectors.nearest(MODEL, EAST, 10))) == ["pages/ferry", "pages/pier"]
        assert vectors.behind(MODEL, 10) == []
        assert vectors.nearest(other, UP, 10) == []

    @pytest.mark.parametrize("size", [4, 16])
    def test_vectors_of_another_size_leave_the_others_behind(self, mirror: Mirror, vectors: Vectors, size: int) -> None:
        pier, ferry, empty = page("pier"), page("ferry"), page("empty", "")
        mirror.apply([pier, ferry, empty])
        vectors.put(MODEL, [vectored(pier, EAST), vectored(ferry, NORTH), vectored(empty)])
        row = np.eye(size, dtype=np.float32)[:1]
        vectors.put(MODEL, [Vectored(pier.id, pier.note.digest, [Place("", 1, 0, 1)], row)])
        assert vectors.behind(MODEL, 10) == ["pages/ferry"]
        assert ids(vectors.nearest(MODEL, row[0], 10)) == ["pages/pier"]
        assert ids(vectors.nearest(MODEL, row[0], 10, among=["pages/pier", "pages/ferry"])) == ["pages/pier"]
        assert vectors.nearest(MODEL, EAST, 10) == []
        vectors.put(MODEL, [Vectored(ferry.id, ferry.note.digest, [Place("", 1, 0, 1)], row)])
        assert vectors.behind(MODEL, 10) == []
        assert ids(vectors.nearest(MODEL, row[0], 10)) == ["pages/ferry", "pages/pier"]

    @pytest.mark.parametrize("size", [4, 16])
    def test_what_has_other_dimensions_than_are_expected_is_behind(
        self, mirror: Mirror, vectors: Vectors, size: int
    ) -> None:
        pier, ferry, empty = page("pier"), page("ferry"), page("empty", "")
        mirror.apply([pier, ferry, empty])
        vectors.expect(MODEL, size)
        vectors.put(MODEL, [vectored(pier, EAST), vectored(ferry, NORTH), vectored(empty)])
        vectors.expect(MODEL, len(EAST))
        assert vectors.counts(MODEL) == Counts(embedded=3, behind=0)
        assert vectors.behind(MODEL, 10) == []
        vectors.expect("another", size)
        assert len(vectors.nearest(MODEL, EAST, 10)) == 2
        vectors.expect(MODEL, size)
        assert sorted(vectors.behind(MODEL, 10)) == ["pages/ferry", "pages/pier"]
        assert vectors.counts(MODEL) == Counts(embedded=1, behind=2)
        assert vectors.nearest(MODEL, np.eye(size, dtype=np.float32)[0], 10) == []
        vectors.expect(MODEL, len(EAST))
        assert vectors.behind(MODEL, 10) == []

    def test_a_vector_of_zeros_or_of_no_numbers_is_like_nothing(self, mirror: Mirror, vectors: Vectors) -> None:
        zero, nan, infinite, huge = page("zero"), page("nan"), page("infinite"), page("huge")
        mirror.apply([zero, nan, infinite, huge])
        rows = [np.array([first, *[0] * 7], np.float32) for first in (0, np.nan, np.inf, 3e38)]
        vectors.put(MODEL, [vectored(of, row) for of, row in zip((zero, nan, infinite, huge), rows, strict=True)])
        assert vectors.counts(MODEL) == Counts(embedded=4, behind=0)
        (only,) = vectors.nearest(MODEL, EAST, 10)
        assert (only.note_id, only.similarity) == ("pages/huge", pytest.approx(1, abs=1e-4))
        everything = [zero.id, nan.id, infinite.id]
        assert vectors.nearest(MODEL, EAST, 10, among=everything) == []

    @pytest.mark.parametrize("query", [np.zeros(8), np.full(8, np.nan), np.full(8, np.inf), np.ones(7), np.ones(0)])
    def test_a_query_that_points_nowhere_finds_nothing(self, mirror: Mirror, vectors: Vectors, query: Vector) -> None:
        pier = page("pier")
        mirror.apply([pier])
        vectors.put(MODEL, [vectored(pier, EAST)])
        assert vectors.nearest(MODEL, query.astype(np.float32), 10) == []
        assert vectors.nearest(MODEL, query.astype(np.float32), 10, among=[pier.id]) == []


class NearestContract(VectorsContract):
    """What is found."""

    def test_a_note_is_as_near_as_its_nearest_passage(self, mirror: Mirror, vectors: Vectors) -> None:
        pier, ferry, buoy = page("pier"), page("ferry"), page("buoy")
        mirror.apply([pier, ferry, buoy])
        vectors.put(MODEL, [vectored(pier, NORTH, EAST), vectored(ferry, NORTH_EAST, UP), vectored(buoy, -EAST)])
        found = vectors.nearest(MODEL, EAST, 10)
        assert ids(found) == ["pages/pier", "pages/ferry", "pages/buoy"]
        assert [near.similarity for near in found] == pytest.approx([1, 0.5**0.5, -1], abs=1e-4)
        assert [near.place.line for near in found] == [2, 1, 1]
        assert found[0].place == Place("", 2, 10, 19)
        assert all(type(near.similarity) is float for near in found)

    def test_even_ones_are_told_by_id_whatever_else_they_say(self, mirror: Mirror, vectors: Vectors) -> None:
        puts = [page(f"n{n}") for n in (3, 1, 2, 0)]
        mirror.apply(puts)
        rows = random_rows(1, 12)
        vectors.put(MODEL, [vectored(of, *rows[n * 3 : n * 2 + n], NORTH_EAST) for n, of in enumerate(puts)])
        assert ids(vectors.nearest(MODEL, NORTH_EAST, 3)) == ["pages/n0", "pages/n1", "pages/n2"]

    @pytest.mark.parametrize("limit", [0, -1, -LARGEST_LIMIT])
    def test_none_is_told_where_none_is_asked_for(self, mirror: Mirror, vectors: Vectors, limit: int) -> None:
        pier = page("pier")
        mirror.apply([pier])
        vectors.put(MODEL, [vectored(pier, EAST)])
        assert vectors.nearest(MODEL, EAST, limit) == []
        assert vectors.nearest(MODEL, EAST, limit, among=[pier.id]) == []

    def test_among_some_notes_all_of_them_are_found_and_no_other(self, mirror: Mirror, vectors: Vectors) -> None:
        puts = [page(f"n{n:03}") for n in range(40)]
        mirror.apply(puts)
        vectors.put(MODEL, [vectored(of, row) for of, row in zip(puts, random_rows(2, 40), strict=True)])
        among = [of.id for of in puts[:30]]
        found = vectors.nearest(MODEL, EAST, EVERYTHING, among=[*among, among[0], "no such note", "$ne", "\ud800", ""])
        assert sorted(ids(found)) == among
        assert vectors.nearest(MODEL, EAST, 3, among=among) == found[:3]
        assert vectors.nearest(MODEL, EAST, 3, among=[]) == []

    def test_of_a_section_only_passages_there_count(self, mirror: Mirror, vectors: Vectors) -> None:
        pier, ferry, buoy = page("pier"), page("ferry"), page("buoy")
        mirror.apply([pier, ferry, buoy])
        vectors.put(
            MODEL,
            [
                vectored(pier, EAST, NORTH, anchors=["times", "fares"]),
                vectored(ferry, EAST, NORTH_EAST, anchors=["", "fares"]),
                vectored(buoy, EAST, anchors=["times"]),
            ],
        )
        for among in (None, ["pages/pier", "pages/ferry", "pages/buoy"]):
            found = vectors.nearest(MODEL, EAST, 10, section="fares", among=among)
            assert [(near.note_id, near.place.anchor) for near in found] == [
                ("pages/ferry", "fares"),
                ("pages/pier", "fares"),
            ]
            assert vectors.nearest(MODEL, EAST, 10, section="no such section", among=among) == []

    def test_what_is_found_is_what_comparing_with_every_vector_finds(self, mirror: Mirror, vectors: Vectors) -> None:
        puts = [page(f"n{n:03}") for n in range(80)]
        mirror.apply(puts)
        rows = random_rows(3, 1_600, 32)
        rows[::7] = rows[0]  # many that are nearly as near as each other
        rows[::7] += random_rows(4, len(rows[::7]), 32) * np.float32(1e-3)
        of_note = np.split(rows, np.sort(np.random.default_rng(5).choice(1_600, 79, replace=False)))
        vectors.put(MODEL, [vectored(of, *some) for of, some in zip(puts, of_note, strict=True)])
        for query in [rows[0], *random_rows(6, 5, 32)]:
            query = query / np.linalg.norm(query)
            cosines = [float((some @ query / np.linalg.norm(some, axis=1)).max(initial=-2)) for some in of_note]
            for limit in (1, 10, EVERYTHING):
                found = vectors.nearest(MODEL, query, limit)
                expected = sorted((cosine for cosine in cosines if cosine >= -1), reverse=True)[:limit]
                assert [near.similarity for near in found] == pytest.approx(expected, abs=2e-4)
                by_id = {of.id: cosine for of, cosine in zip(puts, cosines, strict=True)}
                assert all(near.similarity == pytest.approx(by_id[near.note_id], abs=2e-4) for near in found)

    def test_a_note_in_a_private_channel_is_found_like_any_other(self, mirror: Mirror, vectors: Vectors) -> None:
        private, public = page("a", folder="channels/odile/global"), page("b")
        mirror.apply([private, public])
        vectors.put(MODEL, [vectored(private, NORTH_EAST), vectored(public, EAST)])
        assert ids(vectors.nearest(MODEL, EAST, 10)) == [public.id, private.id]
        assert ids(vectors.nearest(MODEL, EAST, 10, among=[private.id])) == [private.id]


class OfContract(VectorsContract):
    """The vectors themselves."""

    def test_of_each_note_every_passage_has_its_vector(self, mirror: Mirror, vectors: Vectors) -> None:
        pier, ferry, buoy, silent = page("pier"), page("ferry"), page("buoy"), page("silent")
        mirror.apply([pier, ferry, buoy, silent])
        assert vectors.of(MODEL, [pier.id]) == {}
        vectors.put(
            MODEL,
            [vectored(pier, NORTH, 3 * NORTH_EAST), vectored(ferry, UP, np.zeros(8, np.float32)), vectored(silent)],
        )
        asked = [pier.id, ferry.id, ferry.id, buoy.id, silent.id, "no such note", "$ne", "\ud800", ""]
        found = vectors.of(MODEL, asked)
        assert found.keys() == {pier.id, ferry.id}
        assert found[pier.id] == pytest.approx(np.array([NORTH, NORTH_EAST]), abs=1e-4)
        assert found[ferry.id] == pytest.approx(np.array([UP, np.zeros(8)]), abs=1e-4)
        assert {each.dtype for each in found.values()} == {np.dtype(np.float32)}
        assert vectors.of(MODEL, []) == {}

    def test_those_of_another_model_or_of_a_note_that_is_gone_are_not_told(
        self, mirror: Mirror, vectors: Vectors
    ) -> None:
        pier, ferry = page("pier"), page("ferry")
        mirror.apply([pier, ferry])
        vectors.put(MODEL, [vectored(pier, EAST), vectored(ferry, EAST)])
        vectors.put("another", [vectored(ferry, NORTH)])
        assert vectors.of(MODEL, [pier.id, ferry.id]).keys() == {pier.id}
        assert vectors.of("another", [pier.id, ferry.id]).keys() == {ferry.id}
        mirror.apply([Remove(pier.id, pier.note.digest)])
        assert vectors.of(MODEL, [pier.id, ferry.id]) == {}


class GoneContract(VectorsContract):
    """Notes that are removed."""

    def test_a_note_that_is_gone_is_never_found_and_takes_no_place(self, mirror: Mirror, vectors: Vectors) -> None:
        puts = [page(f"n{n:02}") for n in range(60)]
        mirror.apply(puts)
        vectors.put(MODEL, [vectored(of, unit(1, n / 100)) for n, of in enumerate(puts)])
        assert len(vectors.nearest(MODEL, EAST, EVERYTHING)) == 60
        mirror.apply([Remove(of.id, of.note.digest) for of in puts[:50]])
        left = [of.id for of in puts[50:]]
        for among in (None, [of.id for of in puts]):
            assert ids(vectors.nearest(MODEL, EAST, 3, among=among)) == left[:3]
            assert ids(vectors.nearest(MODEL, EAST, EVERYTHING, among=among)) == left
        assert vectors.counts(MODEL) == Counts(embedded=10, behind=0)
        assert vectors.behind("another", EVERYTHING) == vectors.behind("another", 10)
        assert vectors.tidy() == 50
        assert vectors.tidy() == 0
        assert ids(vectors.nearest(MODEL, EAST, EVERYTHING)) == left

    def test_a_note_that_came_back_is_found_again(self, mirror: Mirror, vectors: Vectors) -> None:
        pier = page("pier")
        mirror.apply([pier])
        vectors.put(MODEL, [vectored(pier, EAST)])
        for tidied in (False, True):
            mirror.apply([Remove(pier.id, pier.note.digest)])
            assert vectors.nearest(MODEL, EAST, 10) == []
            if tidied:
                vectors.tidy()
            mirror.apply([pier])
            if vectors.behind(MODEL, 10):
                vectors.put(MODEL, [vectored(pier, EAST)])
            assert ids(vectors.nearest(MODEL, EAST, 10)) == ["pages/pier"]

    def test_a_note_that_ended_as_a_whole_row_is_gone(self, mirror: Mirror, vectors: Vectors) -> None:
        pier = page("pier")
        mirror.apply([pier])
        vectors.put(MODEL, [vectored(pier, EAST)])
        mirror.apply([Remove(pier.id, pier.note.digest)])
        mirror.refs_written(mirror.pending())
        assert vectors.nearest(MODEL, EAST, 10) == []
        assert vectors.tidy() == 1
        assert vectors.counts(MODEL) == Counts(embedded=0, behind=0)


class SharedContract(VectorsContract):
    """Any number of threads and processes."""

    def test_what_another_opened_store_puts_is_found_at_once(self, stores: Stores, mirror: Mirror) -> None:
        one, two = stores[1](), stores[1]()
        puts = [page(f"n{n}") for n in range(4)]
        mirror.apply(puts)
        for n, of in enumerate(puts):
            (one, two)[n % 2].put(MODEL, [vectored(of, unit(1, n))])
            for vectors in (one, two):
                assert ids(vectors.nearest(MODEL, EAST, 10)) == [before.id for before in puts[: n + 1]]
        two.put(MODEL, [vectored(puts[0], UP)])
        assert ids(one.nearest(MODEL, UP, 1)) == [puts[0].id]
        mirror.apply([Remove(puts[0].id, puts[0].note.digest)])
        two.tidy()
        assert ids(one.nearest(MODEL, EAST, 10)) == [of.id for of in puts[1:]]
        one.close()
        two.close()

    def test_two_processes_that_put_the_same_notes_at_once(self, stores: Stores, mirror: Mirror) -> None:
        puts = [page(f"n{n:02}") for n in range(40)]
        mirror.apply(puts)
        with ProcessPoolExecutor(1, mp_context=PROCESSES) as other:
            other.submit(_put_all, stores[1], [], 0).result()  # it has begun
            done = other.submit(_put_all, stores[1], puts, 7)
            _put_all(stores[1], puts, 8)
            done.result()
        vectors = stores[1]()
        assert vectors.counts(MODEL) == Counts(embedded=40, behind=0)
        found = vectors.nearest(MODEL, EAST, EVERYTHING)
        assert sorted(ids(found)) == [of.id for of in puts]
        vectors.close()

    def test_threads_that_search_while_others_put(self, mirror: Mirror, vectors: Vectors) -> None:
        puts = [page(f"n{n:02}") for n in range(40)]
        mirror.apply(puts)
        vectors.put(MODEL, [vectored(puts[0], EAST)])
        with ThreadPoolExecutor(4) as threads:
            putting = [threads.submit(vectors.put, MODEL, [vectored(of, *random_rows(9, 3))]) for of in puts[1:]]
            searching = [threads.submit(vectors.nearest, MODEL, EAST, EVERYTHING) for _ in range(40)]
            for done in putting:
                done.result()
            assert all(ids(search.result())[:1] == [puts[0].id] for search in searching)
        assert len(vectors.nearest(MODEL, EAST, EVERYTHING)) == 40

    def test_closing_twice_is_allowed(self, vectors: Vectors) -> None:
        vectors.behind(MODEL, 1)
        vectors.close()
        vectors.close()


class WholeVectorsContract(BehindContract, ModelContract, NearestContract, OfContract, GoneContract, SharedContract):
    """All of it."""


def _put_all(open_vectors: Callable[[], Vectors], puts: Sequence[Put], seed: int) -> None:
    vectors = open_vectors()
    for n, of in enumerate(puts):
        vectors.put(MODEL, [vectored(of, *random_rows(seed + n, 3))])
    vectors.close()
