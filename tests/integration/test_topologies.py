"""Servers in groups: a MongoDB replica set, a Redis Cluster."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from redis.cluster import ClusterNode, RedisCluster

from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.refs.redis import RedisRefs
from notebook_sync.sync.announce import adopt, announce
from tests.integration.world import World
from tests.mirror.contract import many, note, put
from tests.servers import Server, start_mongod, unavailable
from tests.waiting import eventually

NODES = 3


@pytest.fixture
def replica_set() -> Iterator[Server]:
    server = start_mongod(replica_set=True)
    yield server
    server.stop()


def test_a_replica_set_is_followed_through_a_change_of_primary(
    embedded: World, replica_set: Server, redis_url: str
) -> None:
    world = embedded.on(replica_set.url, redis_url)
    world.write("pages/plan.md", "# Plan\n\nFirst.\n")
    world.write("pages/other.md", "# Other\n")
    with world.watching() as watching:
        eventually(lambda: len(world.refs()) == 2, "both notes have refs")
        replica_set.restart()  # it has to elect itself again
        world.write("pages/plan.md", "# Plan\n\nSecond.\n")
        world.converges()
        assert watching.process.poll() is None
    world.assert_whole()
    assert world.whole()["pages/plan.md"]["metadata"]["version"] == 2


@pytest.fixture
def cluster() -> Iterator[RedisCluster]:
    """Three nodes of the system's own Redis that share the slots."""
    command_line = shutil.which("redis-cli")
    if command_line is None:
        unavailable("no redis-cli on PATH")
    nodes = [Server(_cluster_node, "redis") for _ in range(NODES)]
    try:
        addresses = [f"127.0.0.1:{node.port}" for node in nodes]
        create = [command_line, "--cluster", "create", *addresses, "--cluster-yes"]
        subprocess.run(create, check=True, capture_output=True, timeout=60)
        eventually(lambda: all(_is_ready(node) for node in nodes), "all nodes know all slots")
        with RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", nodes[0].port)], decode_responses=True) as client:
            yield client
    finally:
        for node in nodes:
            node.stop()


def test_refs_live_on_a_cluster(cluster: RedisCluster, tmp_path: Path) -> None:
    refs = RedisRefs("redis://cluster", timezone=UTC, client=cluster)
    mirror = SqliteMirror(tmp_path / "mirror.db")
    mirror.apply([*many(40), put(note(content="# Plan\n"))])
    adopt(mirror, refs)
    announce(mirror, refs)
    assert {note_id for note_id, _, _ in refs.digests()} == {known.id for known in mirror.known()}
    assert refs.owner() == mirror.store_id()
    assert len(refs.recent(10)) == 10
    assert len(refs.day(datetime.now(UTC).date().isoformat())) == 41
    assert all(cluster.dbsize(target_nodes=node) for node in cluster.get_primaries())
    mirror.close()


def _cluster_node(port: int, data: Path) -> list[str]:
    binary = shutil.which("redis-server")
    if binary is None:
        unavailable("no redis-server on PATH")
    options = ["--bind", "127.0.0.1", "--save", "", "--cluster-enabled", "yes", "--cluster-port", str(_bus(port))]
    return [binary, "--port", str(port), "--dir", str(data), *options]


def _bus(port: int) -> int:
    """A port for the nodes among themselves; the default would lie beyond the last one."""
    return port - 10_000 if port > 50_000 else port + 10_000


def _is_ready(node: Server) -> bool:
    with redis.Redis.from_url(node.url, decode_responses=True) as client:
        return client.cluster("info")["cluster_state"] == "ok"
