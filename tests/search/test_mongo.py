"""Vectors on a real MongoDB: the contract, and what only a server can do to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pymongo
import pytest

from notebook_sync.errors import BackendDown
from notebook_sync.mirror.base import Mirror
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.search import mongo_behind
from notebook_sync.search.base import Counts, Vectors
from notebook_sync.search.vectors_mongo import MongoVectors
from tests.search.contract import EAST, MODEL, Stores, WholeVectorsContract, ids, page, vectored
from tests.servers import free_port

CALLS: dict[str, Callable[[Vectors], object]] = {
    "behind": lambda vectors: vectors.behind(MODEL, 1),
    "put": lambda vectors: vectors.put(MODEL, [vectored(page("pier"), EAST)]),
    "nearest": lambda vectors: vectors.nearest(MODEL, EAST, 1),
    "nearest among": lambda vectors: vectors.nearest(MODEL, EAST, 1, among=["pages/pier"]),
    "counts": lambda vectors: vectors.counts(MODEL),
    "tidy": lambda vectors: vectors.tidy(),
}


class TestMongo(WholeVectorsContract):
    @pytest.fixture
    def stores(self, mongodb_url: str, mongo_database: str) -> Stores:
        return (
            partial(MongoMirror, mongodb_url, mongo_database, timeout_seconds=30.0),
            partial(MongoVectors, mongodb_url, mongo_database, timeout_seconds=30.0),
        )


@pytest.fixture
def vectors(mongodb_url: str, mongo_database: str) -> Iterator[Vectors]:
    vectors = MongoVectors(mongodb_url, mongo_database, timeout_seconds=30.0)
    yield vectors
    vectors.close()


@pytest.fixture
def mirror(mongodb_url: str, mongo_database: str) -> Iterator[Mirror]:
    mirror = MongoMirror(mongodb_url, mongo_database, timeout_seconds=30.0)
    yield mirror
    mirror.close()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_server_that_is_away_is_down(call: Callable[[Vectors], object]) -> None:
    vectors = MongoVectors(f"mongodb://odile:s3cret@127.0.0.1:{free_port()}", timeout_seconds=0.1)
    with pytest.raises(BackendDown) as down:
        call(vectors)
    assert "s3cret" not in str(down.value)
    vectors.close()


def test_a_clock_that_is_late_hides_no_note_for_long(
    mirror: Mirror, vectors: Vectors, mongodb_url: str, mongo_database: str
) -> None:
    pier, ferry = page("pier"), page("ferry")
    mirror.apply([pier])
    vectors.put(MODEL, [vectored(pier, EAST)])
    assert vectors.behind(MODEL, 10) == []
    mirror.apply([ferry])
    with pymongo.MongoClient(mongodb_url) as client:
        yesterday = {"$inc": {"written": -86_400_000_000}}
        client[mongo_database].pages.update_one({"_id": ferry.id}, yesterday)
    assert vectors.behind(MODEL, 10) == []
    vectors.tidy()
    assert vectors.behind(MODEL, 10) == [ferry.id]


def test_where_much_was_put_all_is_looked_through_bit_by_bit(
    mirror: Mirror, vectors: Vectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mongo_behind, "_MOST_SINCE", 3)
    monkeypatch.setattr(mongo_behind, "_PAGE", 2)
    puts = [page(f"n{n}", folder=folder) for n in range(5) for folder in ("pages", "facts", "memories")]
    mirror.apply(puts)
    by_id = {of.id: of for of in puts}
    seen: set[str] = set()
    while behind := vectors.behind(MODEL, 4):
        assert not seen & set(behind)
        seen |= set(behind)
        assert vectors.counts(MODEL) == Counts(15 - len(by_id), len(by_id))
        vectors.put(MODEL, [vectored(by_id.pop(note_id), EAST) for note_id in behind])
    assert len(seen) == 15
    assert len(ids(vectors.nearest(MODEL, EAST, 100))) == 15


def test_vectors_that_another_program_dropped_are_behind_again(
    mirror: Mirror, vectors: Vectors, mongodb_url: str, mongo_database: str
) -> None:
    pier = page("pier")
    mirror.apply([pier])
    vectors.put(MODEL, [vectored(pier, EAST)])
    assert vectors.behind(MODEL, 10) == []
    assert ids(vectors.nearest(MODEL, EAST, 10)) == [pier.id]
    with pymongo.MongoClient(mongodb_url) as client:
        client[mongo_database].vectors.drop()
    assert vectors.nearest(MODEL, EAST, 10) == []
    vectors.tidy()
    assert vectors.behind(MODEL, 10) == [pier.id]
