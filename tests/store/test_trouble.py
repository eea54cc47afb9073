"""Servers that hang, reset, vanish, come back empty, or carry out a write late. Nothing else waits, and all is
published again."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from unittest.mock import Mock

import pytest

from notebook_sync.errors import BackendDown
from notebook_sync.files.locks import FollowLock
from notebook_sync.store import publish
from tests.fault_proxy import FaultProxy, Mode
from tests.servers import Server, hung
from tests.store.mirrors import Database, Keys, OpenWorld, World, line
from tests.store.rows_for_tests import document
from tests.waiting import eventually


@pytest.fixture
def servers(own_mongod: Server, own_redis: Server, redis_prefix: str) -> dict[str, str]:
    """Servers that may be hung, killed and emptied."""
    name = f"own_{redis_prefix[-12:]}"
    return {"mongodb": own_mongod.url, "database": name, "redis": own_redis.url, "prefix": redis_prefix}


def hang_before(target: Any, method: str, server: Server) -> None:
    """Let the server hang from the moment on at which the target calls it so."""
    call = getattr(target, method)

    def call_in_vain(*arguments: Any, **options: Any) -> Any:
        server.pause()
        return call(*arguments, **options)

    setattr(target, method, call_in_vain)


def test_reads_status_and_writes_go_on_while_both_servers_hang(
    world: World, own_mongod: Server, own_redis: Server, mongo: Database, keys: Keys
) -> None:
    world.publish_well(document("plan", "one"))
    world.reopen(mongodb=2.0, redis=0.2)
    with hung(own_mongod), hung(own_redis), ThreadPoolExecutor() as pool:
        publishing = pool.submit(world.publish)
        world.put(document("plan", "two"), lines=[line("during")])
        assert world.index.documents.find(fields=("content",)) == [{"content": "two"}]
        assert list(world.index.documents.search(["two"])) == ["pages/plan"]
        assert not publishing.done()
        assert all(each.trouble for each in publishing.result().values())
        states = world.publisher.state()
        assert [(bool(each["trouble"]), each["behind"]) for each in states] == [(True, 1), (True, 2)]
        world.publisher.publish_inline(0.2)
    world.reopen()
    world.publish_well()
    assert (mongo.texts(), keys.ids()) == ({"pages/plan": "two"}, ["during"])
    assert world.is_equal()


def test_status_asks_a_server_that_hangs_only_now_and_then(
    world: World, own_mongod: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "_STATUS_SECONDS", 0.1)
    target = world.publisher._targets[0]
    asked = Mock(side_effect=target.read_mark)
    monkeypatch.setattr(target, "read_mark", asked)
    with hung(own_mongod):
        troubles = [world.state("mongodb")["trouble"] for _ in range(3)]
    assert (troubles, asked.call_count) == (["it does not answer"] * 3, 1)


def test_a_write_that_hangs_is_given_up_and_never_raises(world: World, own_mongod: Server) -> None:
    world.reopen(mongodb=1.0)
    world.put(document("plan"))
    with hung(own_mongod):
        world.publisher.publish_inline(0.05)
        lock = FollowLock(world.place)
        eventually(lock.holder, "it still tries, and nobody else does")
        eventually(lock.acquire, "the lock is free")
        lock.release()
    world.publisher.publish_inline(0.05)  # left alone for a while
    assert world.publisher._states["mongodb"].trouble


def test_a_write_publishes_unless_somebody_follows_the_notebook(world: World, mongo: Database) -> None:
    lock = FollowLock(world.place)
    assert lock.acquire()
    world.put(document("plan"))
    world.publisher.publish_inline(5.0)
    assert mongo.texts() == {}
    assert ["every change" in each["trouble"] for each in world.publisher.wait_for_cursors(0.05)] == [True, True]
    lock.release()
    world.publisher.publish_inline(5.0)
    assert mongo.texts() == {"pages/plan": "first text"}
    assert [each["trouble"] for each in world.publisher.wait_for_cursors(0.05)] == ["", ""]


@pytest.mark.parametrize("mode", ["refuse", "reset", "hang"])
def test_a_server_behind_a_broken_line_gets_everything_later(
    mode: Mode,
    proxy_to: Callable[[str], FaultProxy],
    open_world: OpenWorld,
    servers: dict[str, str],
    mongo: Database,
    keys: Keys,
) -> None:
    proxies = [proxy_to(servers["mongodb"]), proxy_to(servers["redis"])]
    world = open_world(**{**servers, "mongodb": proxies[0].url, "redis": proxies[1].url})
    world.publish_well(document("plan", "one"))
    world.reopen(mongodb=0.3, redis=0.3)
    for proxy in proxies:
        proxy.mode = mode
    world.put(document("plan", "two"), lines=[line("during")])
    assert set(world.troubles()) == {"mongodb", "redis"}
    with pytest.raises(BackendDown):
        world.publisher.compare()
    for proxy in proxies:
        proxy.mode = "pass"
    eventually(lambda: not world.troubles(), "both servers answer")
    assert (mongo.texts(), keys.ids()) == ({"pages/plan": "two"}, ["during"])


def test_pauses_grow_and_end_with_the_first_success(
    world: World, own_redis: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish.random, "uniform", lambda *_: 1000.0)
    own_redis.kill()
    pauses = []
    for _ in range(9):
        world.troubles()
        state = world.publisher._states["redis"]
        pauses.append(state.pause)
        assert state.retry_at > time.monotonic()
        assert world.publisher.publish(1.0)["redis"].trouble  # not asked
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]
    own_redis.restart()
    world.publish_well()
    assert world.publisher._states["redis"].pause == 0.5


def test_emptied_servers_are_filled_again(
    world: World, own_mongod: Server, own_redis: Server, mongo: Database, keys: Keys
) -> None:
    old = line("old", day="2026-01-01", at=datetime(2026, 1, 1, tzinfo=UTC))
    secret = document("secret", "private", audience="channels/a/global")
    world.publish_well(document("plan", "one"), secret, lines=[old, line("first"), line("second")], longterm=[old])
    own_mongod.restart(emptied=True)
    own_redis.restart(emptied=True)
    eventually(lambda: not world.troubles(), "both servers answer")
    assert mongo.texts() == {"pages/plan": "one"}
    assert (keys.refs(), keys.ids()) == ({"pages/plan"}, ["first", "second"])
    assert keys.client.hget(f"{world.prefix}:longterm:old", "content") == "something happened"
    assert not keys.client.exists(f"{world.prefix}:daily:2026-01-01")
    assert "title_text_content_text" in mongo.db.pages.index_information()
    assert keys.client.execute_command("FT.INFO", f"{world.prefix}:memory:idx")
    assert world.is_equal()


def test_restarted_servers_keep_their_data_and_go_on(
    world: World, own_mongod: Server, own_redis: Server, mongo: Database, keys: Keys
) -> None:
    world.publish_well(lines=[line("first")])
    own_mongod.restart()
    own_redis.restart()
    world.put(document("plan"), lines=[line("second")])
    eventually(lambda: not world.troubles(), "both servers answer")
    assert (mongo.texts(), keys.ids()) == ({"pages/plan": "first text"}, ["first", "second"])


def test_a_write_that_the_server_carries_out_late_is_undone(
    world: World, own_mongod: Server, mongo: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.publish_well(document("plan", "one"))
    world.publisher.reconcile_all()
    world.reopen(mongodb=0.3)
    world.put(document("late", "late text"))
    target = world.publisher._targets[0]
    hang_before(target, "write", own_mongod)
    assert "mongodb" in world.troubles()
    own_mongod.resume()
    world.reopen()
    world.index.documents.delete(["pages/late"])
    world.publish_well()
    # What was on its way arrives when everything else is done.
    row = {"_id": "pages/late", "content": "late text", "notebook": world.place.notebook_id, "rev": 2, "published": 1}
    mongo.db.pages.replace_one({"_id": "pages/late"}, {**row, "metadata": {"version": 1}}, upsert=True)
    later = time.time() + 61
    monkeypatch.setattr(publish.time, "time", lambda: later)
    world.publish_well()
    assert (mongo.texts(), world.publisher._noted(target)["doubt"]) == ({"pages/plan": "one"}, None)


def test_a_line_that_was_pushed_by_a_batch_in_doubt_is_not_pushed_twice(
    world: World, own_redis: Server, keys: Keys
) -> None:
    world.publish_well()
    world.reopen(redis=0.3)
    world.put(lines=[line("first"), line("second")])
    hang_before(world.publisher._targets[1], "write_mark", own_redis)
    assert "redis" in world.troubles()
    own_redis.resume()
    world.reopen()
    world.publish_well()
    world.publish_well()
    assert keys.ids() == ["first", "second"]


def test_refs_wait_for_mongodb_and_go_on_as_pending_when_it_takes_long(
    world: World, own_mongod: Server, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.publish_well(document("old"))
    world.reopen(mongodb=0.3)
    own_mongod.kill()
    world.put(document("plan"), lines=[line("first")])
    assert (set(world.troubles()), keys.refs()) == ({"mongodb"}, {"pages/old"})
    monkeypatch.setattr(publish, "_ALONE_SECONDS", -1.0)
    world.troubles()
    assert keys.ref("pages/plan")["pending"] == "1"
    assert keys.mark()["pending_from"] > 0
    assert "pending" not in keys.ref("pages/old")
    monkeypatch.setattr(publish, "_ALONE_SECONDS", 10.0)
    own_mongod.restart()
    eventually(lambda: not world.troubles(), "MongoDB answers")
    assert "pending" not in keys.ref("pages/plan")
    assert (keys.mark()["pending_from"], keys.ids()) == (0, ["first"])


def test_a_restored_server_continues_from_its_own_cursor(world: World, mongo: Database) -> None:
    world.publish_well(*(document(f"n{n}", "one") for n in range(20)))
    backup = {name: list(mongo.db[name].find()) for name in ("pages", "meta")}
    world.put(*(document(f"n{n}", "two") for n in range(0, 20, 2)))
    world.index.documents.delete(["pages/n1"])
    world.publish_well()
    for name, rows in backup.items():
        mongo.db[name].delete_many({})
        mongo.db[name].insert_many(rows)
    assert world.state("mongodb")["behind"] == 10
    world.publish_well()
    assert world.is_equal()
    assert "pages/n1" not in mongo.texts()


def test_a_fill_that_was_interrupted_is_done_again(world: World, own_mongod: Server, mongo: Database) -> None:
    world.reopen(mongodb=0.3)
    world.put(*(document(f"n{n}") for n in range(30)))
    hang_before(world.publisher._targets[0], "write_mark", own_mongod)
    assert "mongodb" in world.troubles()
    own_mongod.resume()
    world.reopen()
    world.publish_well()
    assert len(mongo.texts()) == 30
    assert world.is_equal()
