"""What the feed cannot prove is repaired by comparing ids and revs of both sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from notebook_sync.store import publish
from tests.store.mirrors import Database, Keys, World, line
from tests.store.rows_for_tests import document, fact

Damage = Callable[[World, Database, Keys], Any]


def _delete(world: World, mongo: Database, keys: Keys) -> None:
    mongo.db.pages.delete_one({"_id": "pages/a"})
    mongo.db.notes.delete_many({})
    keys.client.delete(f"{keys.prefix}:notebook:ref:pages/a")


def _leave_orphans(world: World, mongo: Database, keys: Keys) -> None:
    own = {"notebook": world.place.notebook_id, "rev": 1, "published": 1, "metadata": {"version": 1}}
    mongo.db.pages.insert_one({"_id": "pages/gone", "content": "", **own})
    mongo.db.documents.insert_one({"_id": "pages/a", "content": "the same in another collection", **own})
    keys.client.hset(f"{keys.prefix}:notebook:ref:pages/gone", "rev", "1")
    keys.client.zadd(f"{keys.prefix}:notebook:recent", {"pages/gone": 1})


def _age(world: World, mongo: Database, keys: Keys) -> None:
    mongo.db.pages.update_one({"_id": "pages/a"}, {"$set": {"content": "old", "rev": 0}})
    keys.client.hset(f"{keys.prefix}:notebook:ref:pages/a", mapping={"title": "old", "rev": "0"})


@pytest.mark.parametrize("damage", [_delete, _leave_orphans, _age])
def test_differences_are_found_and_repaired(damage: Damage, world: World, mongo: Database, keys: Keys) -> None:
    world.publish_well(document("a"), document("b"), facts=[fact()])
    mongo.db.pages.insert_one({"_id": "theirs", "content": "theirs"})
    keys.client.hset(f"{keys.prefix}:notebook:ref:theirs", "content", "theirs")
    damage(world, mongo, keys)
    assert {each["detail"] for each in world.publisher.compare()[2]} == {each.name for each in world.publisher._targets}
    world.publisher.reconcile_all()
    assert world.publisher.compare() == (3, 2, [])
    assert mongo.texts() == {"pages/a": "first text", "pages/b": "first text", "theirs": "theirs"}
    assert (keys.ref("theirs"), keys.ref("pages/a")["title"]) == ({"content": "theirs"}, "a")
    before = world.index.version()
    world.publisher.reconcile_all()
    assert world.index.version() - before <= 4  # only that it was done


def test_nothing_is_deleted_before_this_index_has_seen_every_file(world: World, mongo: Database, keys: Keys) -> None:
    world.publish_well(document("a"), document("b"))
    world.lose_index()
    world.publish_well(document("a"))
    assert set(mongo.texts()) == keys.refs() == {"pages/a", "pages/b"}
    world.adopt()
    world.publisher.reconcile_all()
    assert set(mongo.texts()) == keys.refs() == {"pages/a"}


def test_a_line_that_another_program_cut_does_not_come_back(world: World, keys: Keys) -> None:
    world.publish_well(lines=[line("first"), line("second")])
    keys.client.lpop(f"{keys.prefix}:daily:{line('x')['day']}")
    world.put(document("a"))
    world.publisher.reconcile_all()
    world.reopen()
    world.publish_well(lines=[line("third")])
    assert keys.ids() == ["second", "third"]


def test_a_lost_mark_fills_again_without_repeating_lines(world: World, mongo: Database, keys: Keys) -> None:
    world.publish_well(document("a"), lines=[line("first")])
    mongo.db.meta.delete_many({})
    keys.client.delete(f"{keys.prefix}:notebook:owner")
    mongo.db.pages.delete_many({})
    world.publish_well()
    assert (mongo.texts(), keys.ids()) == ({"pages/a": "first text"}, ["first"])


def test_a_cursor_so_old_that_the_index_may_have_forgotten_ends_proves_nothing(world: World, mongo: Database) -> None:
    world.publish_well(document("a"), document("b"))
    mongo.db.pages.delete_one({"_id": "pages/a"})
    mongo.db.meta.update_one({"_id": "owner"}, {"$set": {"at": "2024-01-01T00:00:00+00:00"}})
    world.publish_well()
    assert set(mongo.texts()) == {"pages/a", "pages/b"}


def test_a_change_that_comes_while_rows_are_compared_is_published(
    world: World, mongo: Database, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.publish_well(document("a", "one"))
    target = world.publisher._targets[0]
    known = target.known

    def with_a_change() -> Any:
        found = known()
        world.put(document("b", "meanwhile"), lines=[line("meanwhile")])
        return found

    monkeypatch.setattr(target, "known", with_a_change)
    monkeypatch.setattr(publish, "_BATCH", 1)
    world.publisher.reconcile_all()
    assert set(mongo.texts()) == keys.refs() == {"pages/a", "pages/b"}
    assert keys.ids() == ["meanwhile"]


def test_a_document_that_is_changed_between_look_and_write_is_not_overwritten(
    world: World, mongo: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from notebook_sync.store import mongodb

    world.publish_well(document("a"), document("b"))
    run = mongodb._run

    def after_a_change(database: Any, *arguments: Any) -> None:
        mongo.db.pages.update_one({"_id": "pages/a"}, {"$set": {"content": "theirs"}, "$inc": {"metadata.version": 1}})
        run(database, *arguments)

    monkeypatch.setattr(mongodb, "_run", after_a_change)
    world.publish_well(document("a", "ours"), document("b", "ours"))
    assert (mongo.texts(), world.state("mongodb")["refused"]) == ({"pages/a": "theirs", "pages/b": "ours"}, 1)
