"""A MongoDB that is away is found out by one question for all stores and threads, and is looked out for meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any

import pymongo
import pytest

from notebook_sync.errors import BackendDown
from notebook_sync.mirror.facts_mongo import MongoFacts
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.mirror.mongo_connection import Connection
from tests.fault_proxy import FaultProxy, Mode
from tests.mirror.asked import listening
from tests.mirror.contract import many, note, put, version
from tests.servers import Server, start_mongod
from tests.waiting import eventually

_SECONDS = 1.0


@pytest.fixture
def proxy(mongod_to_break: Server) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", mongod_to_break.port) as proxy:
        yield proxy


@pytest.fixture
def url(proxy: FaultProxy) -> str:
    return f"mongodb://127.0.0.1:{proxy.port}"


@pytest.fixture
def asked() -> Iterator[Sequence[str]]:
    with listening() as asked:
        yield asked


@pytest.fixture
def mirror(asked: Sequence[str], url: str) -> Iterator[MongoMirror]:
    """In step, and heard."""
    with closing(MongoMirror(url, "server", timeout_seconds=_SECONDS)) as mirror:
        eventually(lambda: answers(mirror.known), "the schema is made")
        yield mirror


def answers(ask: Callable[[], object]) -> bool:
    with suppress(BackendDown):
        ask()
        return True
    return False


def test_what_is_closed_is_down_while_others_go_on_with_the_client(mirror: MongoMirror, url: str) -> None:
    facts = MongoFacts(url, "server", timeout_seconds=_SECONDS)
    facts.sources()
    facts.close()
    facts.close()
    with pytest.raises(BackendDown, match="closed"):
        facts.sources()
    assert answers(mirror.known)


@pytest.mark.parametrize("mode", ["hang", "refuse", "reset"])
def test_one_question_finds_out_for_all_that_follow_and_for_every_store(
    mirror: MongoMirror, asked: Sequence[str], proxy: FaultProxy, url: str, mode: Mode
) -> None:
    with closing(MongoFacts(url, "server", timeout_seconds=_SECONDS)) as facts:
        facts.sources()
        proxy.mode = mode
        with pytest.raises(BackendDown) as first:
            mirror.known()
        sent = list(asked)
        for _ in range(100):
            with pytest.raises(BackendDown) as later:
                mirror.get("a")
            assert (later.value.backend, later.value.reason) == (first.value.backend, first.value.reason)
            with pytest.raises(BackendDown):
                mirror.apply(many(1))
            with pytest.raises(BackendDown):
                facts.sources()
        assert asked == sent
        proxy.mode = "pass"
        eventually(lambda: answers(mirror.known), "an answer, by whoever asks next")
        assert facts.sources() == {}


def test_threads_wait_once_together(mirror: MongoMirror, asked: Sequence[str], proxy: FaultProxy) -> None:
    proxy.mode = "hang"
    down = []

    def ask() -> None:
        for _ in range(20):
            with pytest.raises(BackendDown):
                mirror.known()
            down.append(1)

    before = len(asked)
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(down) == 8 * 20
    assert len(asked) - before <= 8


def test_a_question_that_is_too_much_for_a_server_is_no_reason_not_to_ask_it_others(
    mirror: MongoMirror, asked: Sequence[str], url: str
) -> None:
    mirror.apply([put(note())])
    stuck: dict[str, Any] = {"$where": "sleep(4000) || true"}
    with closing(Connection(url, "server", _SECONDS, None)) as connection:
        for _ in range(2):
            sent = len(asked)
            with pytest.raises(BackendDown, match="timed out"), connection.telling() as database:
                list(database.pages.find(stuck))
            assert "find" in asked[sent:]
            assert version(mirror) == 1


def test_the_last_store_to_be_closed_waits_for_no_goodbye(asked: Sequence[str], proxy: FaultProxy, url: str) -> None:
    patient = 3600.0
    mirror, facts = (store(url, "server", timeout_seconds=patient) for store in (MongoMirror, MongoFacts))
    mirror.known()
    facts.sources()
    proxy.mode = "hang"
    for store in (mirror, facts, mirror, facts):  # twice is allowed
        store.close()


def test_a_primary_that_steps_down_is_waited_for_by_whoever_asks_next(asked: Sequence[str]) -> None:
    server = start_mongod(replica_set=True)
    try:
        with (
            pymongo.MongoClient[dict[str, Any]](server.url) as client,
            closing(MongoMirror(server.url, "server", timeout_seconds=30.0)) as mirror,
        ):
            mirror.apply([put(note())])
            client.admin.command("replSetStepDown", 3, secondaryCatchUpPeriodSecs=1, force=True)
            with suppress(BackendDown):  # who asked it last may find it out
                mirror.apply([put(note(content="Meanwhile."))])
            mirror.apply([put(note(content="Afterwards."))])
            assert mirror.get("pages/plan")
    finally:
        server.stop()
