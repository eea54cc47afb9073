"""Indexes, and notebooks that are published to real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from notebook_sync.store.index import Index
from tests.servers import Server
from tests.store.mirrors import Database, Keys, OpenWorld, World
from tests.store.rows_for_tests import open_index


@pytest.fixture
def opening(tmp_path: Path) -> Iterator[Callable[..., Index]]:
    """opening(folder, version=…, read_only=…) → an Index, in `tmp_path` unless a folder is named, closed after the
    test."""
    with ExitStack() as stack:
        yield lambda folder=tmp_path, **options: stack.enter_context(closing(open_index(folder, **options)))


@pytest.fixture
def index(opening: Callable[..., Index]) -> Index:
    """An empty index in `tmp_path`."""
    return opening()


@pytest.fixture
def open_world(tmp_path: Path) -> Iterator[OpenWorld]:
    """open_world("name", mongodb=…, …) → a World in a folder of that name, closed after the test."""
    with ExitStack() as stack:
        yield lambda name="notebook", **servers: stack.enter_context(closing(World(tmp_path / name, **servers)))


@pytest.fixture
def servers(mongodb_url: str, mongo_database: str, redis_url: str, redis_prefix: str) -> dict[str, str]:
    """Both servers, shared: how a World names them."""
    return {"mongodb": mongodb_url, "database": mongo_database, "redis": redis_url, "prefix": redis_prefix}


@pytest.fixture
def world(open_world: OpenWorld, servers: dict[str, str]) -> World:
    """A notebook that is published to MongoDB and Redis Stack."""
    return open_world(**servers)


@pytest.fixture
def mongo(servers: dict[str, str]) -> Iterator[Database]:
    found = Database(servers["mongodb"], servers["database"])
    yield found
    found.client.close()


@pytest.fixture
def keys(servers: dict[str, str]) -> Iterator[Keys]:
    found = Keys(servers["redis"], servers["prefix"])
    yield found
    found.client.close()


@pytest.fixture
def own_world(open_world: OpenWorld, own_mongod: Server, own_redis: Server, redis_prefix: str) -> World:
    """The same on servers that may be hung, killed and emptied."""
    name = f"own_{redis_prefix[-12:]}"
    return open_world(mongodb=own_mongod.url, database=name, redis=own_redis.url, prefix=redis_prefix)


@pytest.fixture
def own_mongo(own_world: World) -> Iterator[Database]:
    found = Database(own_world.mirror.url, own_world.database)
    yield found
    found.client.close()


@pytest.fixture
def own_keys(own_world: World) -> Iterator[Keys]:
    found = Keys(own_world.refs.url, own_world.prefix)
    yield found
    found.client.close()
