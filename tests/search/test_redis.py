"""MongoDB's vectors searched by a Redis with the search module: the contract, and what only Redis can do to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from notebook_sync.mirror.base import Mirror, Remove
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.refs.redis_search import NoSearch
from notebook_sync.search import redis_passages
from notebook_sync.search.base import Near, Vectors
from notebook_sync.search.redis_passages import RedisPassages
from notebook_sync.search.vectors_mongo import MongoVectors
from notebook_sync.search.vectors_proposed import ProposedVectors
from tests.mirror.contract import note, put
from tests.search.contract import (
    EAST,
    MODEL,
    NORTH,
    UP,
    GoneContract,
    ModelContract,
    NearestContract,
    Stores,
    ids,
    page,
    random_rows,
    unit,
    vectored,
)
from tests.servers import Server, drop_keys, free_port
from tests.waiting import eventually

ByRedis = Callable[..., list[Near]]


class World:
    """One database, one prefix, and the Redis behind it."""

    def __init__(self, mongodb_url: str, database: str, redis_url: str, prefix: str, client: redis.Redis) -> None:
        self.open_mirror = partial(MongoMirror, mongodb_url, database, timeout_seconds=30.0)
        self.open_mongo = partial(MongoVectors, mongodb_url, database, timeout_seconds=30.0)
        self.open_vectors = partial(open_vectors, mongodb_url, database, redis_url, prefix)
        self._client, self._prefix = client, prefix

    def indexes(self) -> list[str]:
        return [name for name in self._client.execute_command("FT._LIST") if name.startswith(self._prefix)]

    def every_key(self) -> list[str]:
        return list(self._client.scan_iter(f"{self._prefix}:*"))

    def passages(self, note_id: str) -> list[str]:
        return [key for key in self.every_key() if f":{note_id}:" in key]

    def notes(self) -> set[str]:
        """Of which anything is in Redis."""
        hashes = [key for key in self.every_key() if self._client.type(key) == "hash"]
        told = {note_id for key in hashes if ":notes:" in key for note_id in self._client.hkeys(key)}
        assert {self._client.hget(key, "note") for key in hashes if ":notes:" not in key} <= told
        return told

    def drop_indexes(self) -> None:
        for name in self.indexes():
            self._client.execute_command("FT.DROPINDEX", name)

    def drop_keys(self) -> None:
        for key in self.every_key():
            self._client.delete(key)


class Patient(RedisPassages):
    """For a new index, a Redis looks through all keys that it holds, other tests' too: that is waited for."""

    def prepare(self, kind: str, dimensions: int, *, again: bool = False) -> None:
        def is_made() -> bool:
            try:
                super(Patient, self).prepare(kind, dimensions, again=again)
            except NoSearch as reason:
                if "still being made" not in str(reason):
                    raise
                return False
            return True

        eventually(is_made, "Redis has made its index")


def open_vectors(mongodb_url: str, database: str, redis_url: str, prefix: str) -> Vectors:
    mongo = MongoVectors(mongodb_url, database, timeout_seconds=30.0)
    return ProposedVectors(mongo, Patient(redis_url, prefix, timeout_seconds=30.0))


@pytest.fixture
def world(mongodb_url: str, mongo_database: str, redis_stack_url: str, redis_prefix: str) -> Iterator[World]:
    with redis.Redis.from_url(redis_stack_url, decode_responses=True, encoding_errors="replace") as client:
        world = World(mongodb_url, mongo_database, redis_stack_url, redis_prefix, client)
        yield world
        world.drop_indexes()
        world.drop_keys()


@pytest.fixture
def mirror(world: World) -> Iterator[Mirror]:
    mirror = world.open_mirror()
    mirror.store_id()
    yield mirror
    mirror.close()


@pytest.fixture
def vectors(world: World) -> Iterator[Vectors]:
    vectors = world.open_vectors()
    yield vectors
    vectors.close()


@pytest.fixture
def by_redis(vectors: Vectors, monkeypatch: pytest.MonkeyPatch) -> ByRedis:
    """A search that Redis must answer: looking through everything exactly fails."""
    nearest = MongoVectors.nearest

    def among_some(self: MongoVectors, *arguments: Any, **named: Any) -> list[Near]:
        assert named.get("among") is not None, vectors.name
        return nearest(self, *arguments, **named)

    def search(*arguments: Any, **named: Any) -> list[Near]:
        with monkeypatch.context() as patched:
            patched.setattr(MongoVectors, "nearest", among_some)
            return vectors.nearest(MODEL, *arguments, **named)

    return search


class TestRedis(ModelContract, NearestContract, GoneContract):
    @pytest.fixture
    def stores(self, world: World) -> Stores:
        return world.open_mirror, world.open_vectors


def test_redis_finds_what_was_put(mirror: Mirror, vectors: Vectors, by_redis: ByRedis) -> None:
    puts = [page(f"n{n:02}") for n in range(50)]
    mirror.apply(puts)
    for of, row in zip(puts, random_rows(1, 50), strict=True):
        vectors.put(MODEL, [vectored(of, row, -row)])
    assert by_redis(EAST, 10) == vectors.nearest(MODEL, EAST, 10, among=[of.id for of in puts])
    assert "searched by Redis" in vectors.name
    assert len(by_redis(EAST, 100)) == 50


def test_many_passages_of_one_note_leave_room_for_others(mirror: Mirror, vectors: Vectors, by_redis: ByRedis) -> None:
    long, *others = [page(name) for name in ("long", "a", "b", "c")]
    mirror.apply([long, *others])
    near_east = [unit(1, n / 10_000) for n in range(300)]
    vectors.put(MODEL, [vectored(long, *near_east), *(vectored(of, NORTH) for of in others)])
    assert ids(by_redis(EAST, 3)) == ["pages/long", "pages/a", "pages/b"]


def test_nothing_of_a_channel_goes_to_redis_and_it_is_found(
    mirror: Mirror, vectors: Vectors, by_redis: ByRedis, world: World
) -> None:
    private, public = page("secret", folder="channels/odile/global"), page("public")
    mirror.apply([private, public])
    vectors.put(MODEL, [vectored(private, EAST), vectored(public, unit(1, 1))])
    vectors.tidy()
    assert ids(by_redis(EAST, 10)) == [private.id, public.id]
    assert world.notes() == {public.id}
    assert not any("secret" in key for key in world.every_key())


@pytest.mark.parametrize(("before", "after"), [("pages", "channels/odile/global"), ("channels/odile/global", "pages")])
def test_a_note_that_moves_into_a_channel_leaves_redis_and_one_that_comes_out_enters(
    before: str, after: str, mirror: Mirror, vectors: Vectors, by_redis: ByRedis, world: World
) -> None:
    log = put(note(f"{before}/log.md", "The lamp was lit.", wants="lamp-log"))
    mirror.apply([log])
    vectors.put(MODEL, [vectored(log, EAST)])
    moved = put(note(f"{after}/log.md", log.note.content, wants=log.id), log.note.digest, n=5)
    assert mirror.apply([moved]) == []
    vectors.tidy()
    assert world.notes() == ({log.id} if after == "pages" else set())
    assert ids(by_redis(EAST, 10)) == [log.id]


def test_a_note_that_is_gone_leaves_redis(mirror: Mirror, vectors: Vectors, world: World) -> None:
    pier, ferry = page("pier"), page("ferry")
    mirror.apply([pier, ferry])
    vectors.put(MODEL, [vectored(pier, EAST, NORTH), vectored(ferry, EAST)])
    mirror.apply([Remove(pier.id, pier.note.digest)])
    assert vectors.tidy() == 1
    assert world.notes() == {ferry.id}
    assert world.passages(pier.id) == []


def test_passages_that_a_note_no_longer_has_go(
    mirror: Mirror, vectors: Vectors, by_redis: ByRedis, world: World
) -> None:
    pier = page("pier")
    mirror.apply([pier])
    vectors.put(MODEL, [vectored(pier, *random_rows(2, 450))])
    assert len(world.passages(pier.id)) == 450
    vectors.put(MODEL, [vectored(pier, EAST)])
    assert len(world.passages(pier.id)) == 1
    assert [near.similarity for near in by_redis(EAST, 10)] == pytest.approx([1.0], abs=1e-4)


def test_another_model_has_an_index_of_its_own_and_the_old_one_goes(
    mirror: Mirror, vectors: Vectors, world: World
) -> None:
    pier = page("pier")
    mirror.apply([pier])
    vectors.put(MODEL, [vectored(pier, EAST)])
    vectors.put("another", [vectored(pier, UP)])
    assert ids(vectors.nearest("another", UP, 10)) == [pier.id]
    vectors.tidy()
    assert len(world.indexes()) == 1
    assert len(world.passages(pier.id)) == 1
    assert ids(vectors.nearest("another", UP, 10)) == [pier.id]
    assert vectors.nearest(MODEL, EAST, 10) == []


def test_a_redis_that_was_emptied_is_filled_again_and_nothing_is_missed_meanwhile(
    mirror: Mirror, vectors: Vectors, by_redis: ByRedis, world: World
) -> None:
    puts = [page(f"n{n}") for n in range(5)]
    mirror.apply(puts)
    vectors.put(MODEL, [vectored(of, unit(1, n)) for n, of in enumerate(puts)])
    expected = by_redis(EAST, 10)
    world.drop_keys()
    world.drop_indexes()
    assert vectors.nearest(MODEL, EAST, 10) == expected
    assert "has no passages yet" in vectors.name
    vectors.tidy()
    assert by_redis(EAST, 10) == expected
    assert "searched by Redis" in vectors.name


def test_a_put_of_nothing_does_not_make_a_redis_that_was_emptied_whole(
    mirror: Mirror, vectors: Vectors, world: World
) -> None:
    puts = [page(f"n{n}") for n in range(5)]
    mirror.apply(puts)
    vectors.put(MODEL, [vectored(of, unit(1, n)) for n, of in enumerate(puts)])
    expected = vectors.nearest(MODEL, EAST, 10)
    world.drop_keys()
    world.drop_indexes()
    vectors.put(MODEL, [])
    assert vectors.nearest(MODEL, EAST, 10) == expected != []


def test_an_index_that_another_program_dropped_is_made_anew(
    mirror: Mirror, vectors: Vectors, by_redis: ByRedis, world: World
) -> None:
    pier = page("pier")
    mirror.apply([pier])
    vectors.put(MODEL, [vectored(pier, EAST)])
    world.drop_indexes()
    assert ids(vectors.nearest(MODEL, EAST, 10)) == [pier.id]
    vectors.tidy()
    eventually(lambda: vectors.tidy() == 0 and ids(by_redis(EAST, 10)) == [pier.id], "made anew")


def test_what_a_process_without_redis_put_is_found_before_redis_is_told(
    mirror: Mirror, vectors: Vectors, by_redis: ByRedis, world: World
) -> None:
    puts = [page(f"n{n}") for n in range(5)]
    mirror.apply(puts)
    vectors.put(MODEL, [vectored(of, unit(1, n)) for n, of in enumerate(puts[:3])])
    other = world.open_mongo()
    other.put(MODEL, [vectored(puts[3], unit(1, 0.5)), vectored(puts[0], UP)])
    other.close()
    vectors.put(MODEL, [vectored(puts[4], unit(1, 0.6))])
    expected = [puts[n].id for n in (3, 4, 1, 2, 0)]
    assert ids(by_redis(EAST, 10)) == expected
    vectors.tidy()
    assert ids(by_redis(EAST, 10)) == expected


def test_while_the_index_is_being_made_all_is_looked_through_and_tidying_tells_redis_what_was_put(
    mirror: Mirror, vectors: Vectors, by_redis: ByRedis, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    pier = page("pier")
    mirror.apply([pier])
    with monkeypatch.context() as patched:
        patched.setattr(Patient, "prepare", RedisPassages.prepare)
        patched.setattr(redis_passages, "_made", lambda *_: {"indexing": 1})
        vectors.put(MODEL, [vectored(pier, EAST)])
        assert ids(vectors.nearest(MODEL, EAST, 10)) == [pier.id]
        assert "searched exactly: the index of passages in this Redis is still being made" in vectors.name
        assert world.notes() == set()
    vectors.tidy()
    assert ids(by_redis(EAST, 10)) == [pier.id]


def test_a_vector_of_zeros_is_not_told_to_redis(
    mirror: Mirror, vectors: Vectors, by_redis: ByRedis, world: World
) -> None:
    pier, empty = page("pier"), page("empty")
    mirror.apply([pier, empty])
    zeros = np.zeros(8, np.float32)
    vectors.put(MODEL, [vectored(pier, zeros, EAST), vectored(empty, zeros)])
    assert len(world.passages(pier.id)) == 1
    assert world.passages(empty.id) == []
    assert [(near.note_id, near.place.line) for near in by_redis(EAST, 10)] == [(pier.id, 2)]


@pytest.mark.parametrize("server", ["redis_url", "redis_cluster_url", "nobody"])
def test_without_a_redis_that_can_search_the_exact_index_does(
    server: str,
    mirror: Mirror,
    mongodb_url: str,
    mongo_database: str,
    redis_prefix: str,
    request: pytest.FixtureRequest,
) -> None:
    url = f"redis://127.0.0.1:{free_port()}" if server == "nobody" else request.getfixturevalue(server)
    vectors = open_vectors(mongodb_url, mongo_database, url, redis_prefix)
    pier = page("pier")
    mirror.apply([pier])
    vectors.put(MODEL, [vectored(pier, EAST)])
    assert ids(vectors.nearest(MODEL, EAST, 10)) == [pier.id]
    assert "searched exactly: " in vectors.name
    vectors.tidy()
    assert ids(vectors.nearest(MODEL, EAST, 10)) == [pier.id]
    vectors.close()
    if server != "nobody":
        drop_keys(url, redis_prefix)


def test_a_redis_that_hangs_is_left_alone_and_costs_no_note(
    mirror: Mirror, mongodb_url: str, mongo_database: str, redis_to_break: Server, redis_prefix: str
) -> None:
    mongo = MongoVectors(mongodb_url, mongo_database, timeout_seconds=30.0)
    vectors = ProposedVectors(mongo, RedisPassages(redis_to_break.url, redis_prefix, timeout_seconds=0.2))
    pier = page("pier")
    mirror.apply([pier])
    redis_to_break.pause()
    try:
        vectors.put(MODEL, [vectored(pier, EAST)])
        assert ids(vectors.nearest(MODEL, EAST, 10)) == [pier.id]
        assert "searched exactly: " in vectors.name
    finally:
        redis_to_break.resume()
        vectors.close()


def test_the_rights_that_the_manual_names_are_enough(
    mirror: Mirror, world: World, mongodb_url: str, mongo_database: str, redis_stack_url: str, redis_prefix: str
) -> None:
    manual = (Path(__file__).parents[2] / "docs/operations.md").read_text()
    rights = manual.partition("ACL SETUSER ferry on >PASSWORD ~ferry:* ")[2].partition("```")[0].split()
    pier, ferry = page("pier"), page("ferry")
    mirror.apply([pier, ferry])
    with redis.Redis.from_url(redis_stack_url) as client:
        client.execute_command("ACL", "SETUSER", "odile", "reset", "on", ">s3cret", f"~{redis_prefix}:*", *rights)
        url = redis_stack_url.replace("//", "//odile:s3cret@")
        vectors = open_vectors(mongodb_url, mongo_database, url, redis_prefix)
        vectors.put(MODEL, [vectored(pier, EAST, NORTH), vectored(ferry, UP)])
        vectors.put(MODEL, [vectored(pier, EAST)])
        vectors.put("another", [vectored(pier, EAST)])
        vectors.tidy()
        mirror.apply([Remove(pier.id, pier.note.digest)])
        vectors.tidy()
        assert "searched by Redis" in vectors.name
        assert "s3cret" not in vectors.name
        vectors.close()
        client.execute_command("ACL", "DELUSER", "odile")
    assert world.notes() == set()
