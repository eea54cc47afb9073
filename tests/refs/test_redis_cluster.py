"""A Redis Cluster of which a node hangs, is gone, or has given its keys away; that it is one hot memory like the others
is tried in `test_redis.py`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC
from typing import Any

import pytest
import redis

from notebook_sync.errors import BackendDown
from notebook_sync.refs.base import Refs
from notebook_sync.refs.redis import RedisRefs
from tests.refs.contract import CALLS, T0, ref
from tests.servers import Cluster
from tests.waiting import eventually


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.stop()


@pytest.fixture
def refs(cluster: Cluster, redis_prefix: str) -> Iterator[RedisRefs]:
    refs = RedisRefs(cluster.url, redis_prefix, timezone=UTC, timeout_seconds=0.3)
    yield refs
    refs.close()


def test_any_node_will_do_as_the_address(cluster: Cluster, refs: RedisRefs, redis_prefix: str) -> None:
    refs.write([ref(f"pages/{n}", n=n) for n in range(50)])
    for node in cluster.nodes:
        other = RedisRefs(node.url, redis_prefix, timezone=UTC)
        assert len(list(other.digests())) == 50
        assert other.recall("plan", now=T0).partial.startswith("a Redis Cluster is not searched: only the last 7")
        other.close()


def test_a_user_of_the_keys_alone_needs_no_more_than_to_look_for_the_slots(cluster: Cluster, redis_prefix: str) -> None:
    rights = ["on", ">p%s", f"~{redis_prefix}:*", "-@all", "+cluster|slots", "+hset", "+zadd", "+rpush", "+hmget"]
    for node in cluster.nodes:
        cluster.ask(node, "ACL", "SETUSER", "ines", *rights)
    url = cluster.url.replace("//", "//ines:p%25s@")
    refs = RedisRefs(url, redis_prefix, timezone=UTC)
    refs.write([ref(f"pages/{n}") for n in range(20)])
    assert all(refs.get(f"pages/{n}") for n in range(20))
    with pytest.raises(BackendDown, match="no permissions"):
        refs.owner()
    refs.close()


@pytest.mark.parametrize("hanging", [0, 1, 2])
def test_no_driver_error_gets_out_while_a_node_hangs(cluster: Cluster, refs: RedisRefs, hanging: int) -> None:
    many = [ref(f"pages/{n}", n=n) for n in range(200)]
    refs.write(many)
    cluster.nodes[hanging].pause()
    try:
        with pytest.raises(BackendDown):
            refs.write(many)
        for call in CALLS.values():
            with contextlib.suppress(BackendDown):
                call(refs)
    finally:
        cluster.nodes[hanging].resume()
    eventually(lambda: wrote(refs), "an answer after it went on")
    assert len(list(refs.digests())) >= 200


def test_a_pipeline_waits_once_for_a_node_that_hangs(
    cluster: Cluster, refs: RedisRefs, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [ref(f"pages/{n}", n=n) for n in range(200)]
    refs.write(many)
    waits = []
    read = redis.connection.Connection.read_response

    def counted(connection: redis.connection.Connection, *arguments: Any, **options: Any) -> Any:
        try:
            return read(connection, *arguments, **options)
        except redis.TimeoutError:
            waits.append(connection)
            raise

    monkeypatch.setattr(redis.connection.Connection, "read_response", counted)
    for node in cluster.nodes:
        node.pause()
    try:
        for _ in range(4):
            waits.clear()
            with pytest.raises(BackendDown):
                refs.write(many)
            assert len(waits) == 1
    finally:
        for node in cluster.nodes:
            node.resume()
    eventually(lambda: wrote(refs), "an answer after it went on")


def test_connections_that_broke_while_idle_are_made_anew_unnoticed(cluster: Cluster, refs: RedisRefs) -> None:
    many = [ref(f"pages/{n}", n=n) for n in range(50)]
    refs.write(many)
    for node in cluster.nodes:
        cluster.ask(node, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    refs.write(many)
    assert len(list(refs.digests())) == 50


def test_keys_are_found_on_their_way_to_another_node_and_there(
    cluster: Cluster, refs: RedisRefs, redis_prefix: str
) -> None:
    refs.adopt("store 1", [])
    slot = int(cluster.ask(cluster.nodes[0], "CLUSTER", "KEYSLOT", f"{redis_prefix}:notebook:owner"))
    ids = {node.port: cluster.ask(node, "CLUSTER", "MYID") for node in cluster.nodes}
    source = cluster.nodes[(slot >= 5461) + (slot >= 10923)]
    target = next(node for node in cluster.nodes if node is not source)
    cluster.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source.port])
    cluster.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target.port])
    assert refs.owner() == "store 1"
    key = f"{redis_prefix}:notebook:owner"
    cluster.ask(source, "MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
    assert refs.owner() == "store 1"
    refs.adopt("store 2", [])
    for node in cluster.nodes:
        cluster.ask(node, "CLUSTER", "SETSLOT", slot, "NODE", ids[target.port])
    assert refs.owner() == "store 2"
    refs.adopt("store 3", [])
    assert refs.owner() == "store 3"


def test_a_node_that_is_gone_is_down_and_then_works(cluster: Cluster, refs: RedisRefs) -> None:
    many = [ref(f"pages/{n}", n=n) for n in range(200)]
    refs.write(many)
    cluster.nodes[0].kill()
    with pytest.raises(BackendDown):
        refs.write(many)
    cluster.nodes[0].restart()
    eventually(lambda: wrote(refs), "an answer after it came back")
    assert len(list(refs.digests())) == 200


def wrote(refs: Refs) -> bool:
    try:
        refs.write([ref(f"pages/{n}", n=n) for n in range(200)])
    except BackendDown:
        return False
    return True
