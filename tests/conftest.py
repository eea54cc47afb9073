"""Servers that the whole run shares, and servers that one module may break."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pymongo
import pytest
import redis

from tests.servers import Server, external, start_mongod, start_redis, start_redis_stack


@pytest.fixture(scope="session")
def mongodb_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A MongoDB server, shared: tests keep to a database of their own."""
    if url := external("NOTEBOOK_TEST_MONGODB_URL"):
        yield url
        return
    server = start_mongod(tmp_path_factory.mktemp("mongod") / "data")
    yield server.url
    server.kill()


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A plain Redis, shared: tests keep to a key prefix of their own."""
    if url := external("NOTEBOOK_TEST_REDIS_URL"):
        yield url
        return
    server = start_redis(tmp_path_factory.mktemp("redis") / "data")
    yield server.url
    server.kill()


@pytest.fixture(scope="session")
def redis_stack_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis with the search module, shared in the same way."""
    if url := external("NOTEBOOK_TEST_REDIS_STACK_URL"):
        yield url
        return
    server = start_redis_stack(tmp_path_factory.mktemp("redis_stack") / "data")
    yield server.url
    server.kill()


@pytest.fixture(scope="module")
def mongod_to_break(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A MongoDB server that only this module uses."""
    server = start_mongod(tmp_path_factory.mktemp("mongod") / "data")
    yield server
    server.kill()


@pytest.fixture(scope="module")
def redis_to_break(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A plain Redis that only this module uses."""
    server = start_redis(tmp_path_factory.mktemp("redis") / "data")
    yield server
    server.kill()


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


def drop_keys(url: str, prefix: str) -> None:
    """Remove every key below a prefix, also from a server that is not ours."""
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter(f"{prefix}:*", count=1000):
            client.delete(key)
