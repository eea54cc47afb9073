"""Servers that the whole run shares, and servers that one module may break."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import hypothesis
import pymongo
import pytest

from tests.servers import Cluster, Server, external, start_mongod, start_redis, start_redis_stack

# The same examples in each run, so that a change is judged by what it changes. NOTEBOOK_TEST_EXPLORE=1 looks for
# others, and keeps what it finds for the runs that follow.
hypothesis.settings.register_profile("fixed", derandomize=True)
if not os.environ.get("NOTEBOOK_TEST_EXPLORE"):
    hypothesis.settings.load_profile("fixed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the long runs, unless -m names them."""
    if "soak" in config.option.markexpr:
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.fixture(scope="session")
def mongodb_url() -> Iterator[str]:
    """A MongoDB server, shared: tests keep to a database of their own."""
    if url := external("NOTEBOOK_TEST_MONGODB_URL"):
        yield url
        return
    server = start_mongod()
    yield server.url
    server.stop()


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A plain Redis, shared: tests keep to a key prefix of their own."""
    if url := external("NOTEBOOK_TEST_REDIS_URL"):
        yield url
        return
    server = start_redis()
    yield server.url
    server.stop()


@pytest.fixture(scope="session")
def redis_stack_url() -> Iterator[str]:
    """A Redis with the search module, shared in the same way."""
    if url := external("NOTEBOOK_TEST_REDIS_STACK_URL"):
        yield url
        return
    server = start_redis_stack()
    yield server.url
    server.stop()


@pytest.fixture(scope="session")
def redis_cluster_url() -> Iterator[str]:
    """A Redis Cluster of three nodes, shared in the same way."""
    if url := external("NOTEBOOK_TEST_REDIS_CLUSTER_URL"):
        yield url
        return
    cluster = Cluster()
    yield cluster.url
    cluster.stop()


@pytest.fixture(scope="module")
def mongod_to_break() -> Iterator[Server]:
    """A MongoDB server that only this module uses."""
    server = start_mongod()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def redis_to_break() -> Iterator[Server]:
    """A plain Redis that only this module uses."""
    server = start_redis()
    yield server
    server.stop()


@pytest.fixture
def mongo_database(mongodb_url: str) -> Iterator[str]:
    """The name of a database that is dropped after the test."""
    name = f"notebook_test_{uuid.uuid4().hex}"
    yield name
    with pymongo.MongoClient(mongodb_url) as client:
        client.drop_database(name)


@pytest.fixture
def redis_prefix() -> str:
    """A key prefix that no other test has."""
    return f"notebook-test-{uuid.uuid4().hex}"
