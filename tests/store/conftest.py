"""Indexes, and notebooks that are published to real servers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from notebook_sync.store.index import Index
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
    with closing(Database(servers["mongodb"], servers["database"])) as found:
        yield found


@pytest.fixture
def keys(servers: dict[str, str]) -> Iterator[Keys]:
    with closing(Keys(servers["redis"], servers["prefix"])) as found:
        yield found
