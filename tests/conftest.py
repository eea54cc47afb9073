"""Servers that the whole run shares, and servers that one module may break."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pymongo
import pytest

from tests import forked
from tests.mongo_databases import EmptiedDatabases, new_name
from tests.scripted_llm import ScriptedServer
from tests.servers import Cluster, Server, external, roomy_memory, start_mongod, start_redis, start_redis_stack

# The same examples in each run, so that a change is judged by what it changes. NOTEBOOK_TEST_EXPLORE=1 looks for
# others, and keeps what it finds for the runs that follow. No example has a deadline: a busy machine is not a failure.
hypothesis.settings.register_profile("fixed", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", deadline=None)
hypothesis.settings.load_profile("explore" if os.environ.get("NOTEBOOK_TEST_EXPLORE") else "fixed")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let the notebooks of tests stand in memory where there is much of it, unless --basetemp names a place; start what
    their commands are forked from. Who goes on behind a shell's `&` ignores SIGINT, and so would all that they start.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.basetemp is None and not hasattr(config, "workerinput") and (memory := roomy_memory()):
        folder = tempfile.mkdtemp(prefix="notebook-tests-", dir=memory)
        config.option.basetemp = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        forked.share()  # one start for all workers


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


@pytest.fixture(scope="session")
def _emptied_databases(mongodb_url: str) -> Iterator[EmptiedDatabases]:
    databases = EmptiedDatabases(mongodb_url)
    yield databases
    databases.close()


@pytest.fixture
def mongo_database(_emptied_databases: EmptiedDatabases) -> Iterator[str]:
    """The name of a database in which nothing is but what opening a mirror makes: collections and indexes, empty."""
    name = _emptied_databases.take()
    yield name
    _emptied_databases.give_back(name)


@pytest.fixture
def new_mongo_database(mongodb_url: str) -> Iterator[str]:
    """The name of a database that is not there yet, and is dropped after the test."""
    name = new_name()
    yield name
    with pymongo.MongoClient(mongodb_url) as client:
        client.drop_database(name)


@pytest.fixture
def redis_prefix() -> str:
    """A key prefix that no other test has."""
    return f"notebook-test-{uuid.uuid4().hex}"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    """A language model, or an embedder, that says what a test lets it say."""
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def no_git_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keeps git from the settings of this machine, and from repositories around the test's folder."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
