"""A Redis that keeps nothing comes back empty: the refs are written again, and the stream that is gone is told gone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import redis

from notebook_sync.errors import NoSuchCheckpoint
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import OWNER
from tests.integration.world import World
from tests.servers import Server, start_redis, start_redis_stack
from tests.waiting import eventually


@pytest.fixture(params=[start_redis, start_redis_stack], scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    server: Server = request.param()
    yield server
    server.stop()


@pytest.fixture
def world(embedded: World, server: Server) -> Iterator[World]:
    """Notes, a channel among them, and something logged, on a Redis that is about to lose everything."""
    world = embedded.on(redis_url=server.url)
    for name in ("timetable", "boats"):
        world.write(f"pages/{name}.md", f"# {name}\n\nAbout the ferry.\n")
    world.write("channels/scribe/global/key.md", "# Key\n\nIt is under the mat.\n")
    with world.notebook() as notebook:
        notebook.sync()
        notebook.stream.log("Ines has the key.", OWNER)
    yield world
    server.restart(emptied=True)


def found(notebook: Notebook, query: str) -> set[str]:
    return {one.id for one in notebook.stream.recall(query, OWNER).results}


def test_refs_are_there_again_and_the_stream_is_not_invented(world: World, server: Server) -> None:
    refs = world.refs()
    assert set(refs) == {"pages/timetable", "pages/boats"}
    before = datetime.now(UTC)
    server.restart(emptied=True)
    with world.notebook() as notebook:
        notebook.sync()
        assert world.refs() == refs
        assert notebook.admin.verify().consistent
        today = notebook.stream.show(OWNER)
        assert today.results == []
        assert "is gone" in str(today.degraded)
        lost = notebook.refs.lost()
        assert lost is not None
        assert lost >= before.replace(microsecond=0)
        assert found(notebook, "ferry") == set(refs)
        assert found(notebook, "key") == set()


def test_who_reads_before_anything_was_synced_again_is_told_of_the_loss(world: World, server: Server) -> None:
    with world.notebook() as notebook:
        kept = notebook.stream.checkpoint("Before the storm", OWNER).id
        assert "emptied" not in str(notebook.stream.recall("ferry", OWNER).degraded)
        assert notebook.stream.checkpoints(OWNER).degraded is None
    server.restart(emptied=True)
    with world.notebook() as notebook:
        assert "hot memory was emptied" in str(notebook.stream.recall("ferry", OWNER).degraded)
        assert "is gone: hot memory was emptied" in str(notebook.stream.show(OWNER).degraded)
        assert "are gone: hot memory was emptied" in str(notebook.stream.checkpoints(OWNER).degraded)
        with pytest.raises(NoSuchCheckpoint, match="are gone: hot memory was emptied"):
            notebook.stream.rollback(kept, OWNER)
        notebook.sync()
        assert "emptied" not in str(notebook.stream.recall("ferry", OWNER).degraded)
        assert "are gone: hot memory was emptied" in str(notebook.stream.checkpoints(OWNER).degraded)


def test_what_happens_later_is_told_and_the_loss_stays_known(world: World, server: Server) -> None:
    server.restart(emptied=True)
    world.write("pages/new.md", "# New\n")
    with world.notebook() as notebook:
        notebook.sync()
        lost = notebook.refs.lost()
        notebook.stream.log("Odile has the key.", OWNER)
        notebook.sync()
        assert notebook.refs.lost() == lost
        today = notebook.stream.show(OWNER)
    assert [entry.action or "logged" for entry in today.results] == ["created", "logged"]
    assert "is gone" in str(today.degraded)


def test_a_watch_notices_by_the_next_save(world: World, server: Server) -> None:
    refs = world.refs()
    with world.watching():
        server.restart(emptied=True)
        world.write("pages/new.md", "# New\n")
        eventually(lambda: set(world.refs()) == {*refs, "pages/new"}, "all refs are there again")
    with world.notebook() as notebook:
        assert notebook.refs.lost() is not None


def test_a_loss_is_noted_when_the_rebuilding_was_broken_off(world: World, server: Server) -> None:
    server.restart(emptied=True)
    with world.notebook() as notebook:
        adopt, notebook.refs.adopt = notebook.refs.adopt, _broken_off  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            notebook.sync()
        notebook.refs.adopt = adopt  # type: ignore[method-assign]
        lost = notebook.refs.lost()
        assert lost is not None
        notebook.sync()
        assert notebook.refs.lost() == lost
        assert notebook.admin.verify().consistent


def _broken_off(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_new_notebook_has_lost_nothing(world: World, server: Server) -> None:
    with world.notebook() as notebook:
        assert notebook.refs.lost() is None
        assert notebook.stream.show(OWNER).degraded is None


def test_a_first_sync_that_was_broken_off_has_lost_nothing(embedded: World, server: Server) -> None:
    world = embedded.on(redis_url=server.url)
    world.write("pages/timetable.md", "# Timetable\n")
    server.kill()
    with world.notebook() as notebook:
        assert notebook.sync().refs_trouble
    server.restart()
    with world.notebook() as notebook:
        adopt, notebook.refs.adopt = notebook.refs.adopt, _broken_off  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            notebook.sync()
        notebook.refs.adopt = adopt  # type: ignore[method-assign]
        notebook.sync()
        assert notebook.refs.lost() is None
        assert [entry.action for entry in notebook.stream.show(OWNER).results] == ["created"]


def test_a_stream_on_a_server_that_the_notebook_moved_to_begins_there(embedded: World, server: Server) -> None:
    embedded.write("pages/timetable.md", "# Timetable\n")
    with embedded.notebook() as notebook:
        notebook.sync()
        notebook.stream.log("Ines has the key.", OWNER)
    world = embedded.on(redis_url=server.url)
    with world.notebook() as notebook:
        notebook.sync()
        assert notebook.stream.show(OWNER).results == []
        assert notebook.stream.show(OWNER).degraded
    with embedded.notebook() as notebook:
        assert len(notebook.stream.show(OWNER).results) == 2
        assert notebook.stream.show(OWNER).degraded is None


def test_an_emptied_search_index_is_made_again(embedded: World) -> None:
    stack = start_redis_stack()
    world = embedded.on(redis_url=stack.url)
    world.write("pages/timetable.md", "# Timetable\n\nAbout the ferry.\n")
    try:
        with world.notebook() as notebook:
            notebook.sync()
            eventually(lambda: notebook.stream.recall("ferry", OWNER).degraded is None, "an index of all")
            stack.restart(emptied=True)
            notebook.sync()
            eventually(lambda: notebook.stream.recall("ferry", OWNER).degraded is None, "an index of all")
            assert found(notebook, "ferry") == {"pages/timetable"}
        with redis.Redis.from_url(stack.url, decode_responses=True) as client:
            assert [name.endswith(":memory:idx") for name in client.execute_command("FT._LIST")] == [True]
    finally:
        stack.stop()


def test_a_whole_notebook_lives_on_a_cluster(embedded: World, redis_cluster_url: str) -> None:
    world = embedded.on(redis_url=redis_cluster_url)
    for number in range(30):
        world.write(f"pages/{number}.md", f"# Boat {number}\n\nAbout the ferry.\n")
    assert world.run("sync").code == 0
    with world.notebook() as notebook:
        assert notebook.admin.verify().consistent
        notebook.stream.log("Ines has the key.", OWNER)
        kept = notebook.stream.checkpoint("before", OWNER)
        notebook.stream.log("Odile has the key.", OWNER)
        notebook.stream.rollback(kept.id, OWNER)
        assert [entry.content for entry in notebook.stream.show(OWNER).results][-1] == "Ines has the key."
        recalled = notebook.stream.recall("key", OWNER)
        assert [one.content for one in recalled.results] == ["Ines has the key."]
        assert str(recalled.degraded).startswith("a Redis Cluster is not searched")
    assert world.run("doctor").code == 0
    world.assert_whole()
