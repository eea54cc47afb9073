"""Servers in groups: a MongoDB replica set, a Redis Cluster."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from redis.cluster import RedisCluster

from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.refs.redis import RedisRefs
from notebook_sync.sync.announce import adopt, announce
from tests.integration.world import World
from tests.mirror.contract import many, note, put
from tests.servers import Server, drop_keys, start_mongod
from tests.waiting import eventually


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


def test_refs_live_on_a_cluster(redis_cluster_url: str, redis_prefix: str, tmp_path: Path) -> None:
    cluster = RedisCluster.from_url(redis_cluster_url, decode_responses=True)
    refs = RedisRefs(redis_cluster_url, timezone=UTC, prefix=redis_prefix, client=cluster)
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
    cluster.close()
    drop_keys(redis_cluster_url, redis_prefix)
