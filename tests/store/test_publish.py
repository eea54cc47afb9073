"""What the feed brings to the servers, row by row."""

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, date, datetime
from functools import reduce
from typing import Any

import pytest

from notebook_sync.settings import PromptTable, RefsTable, Settings
from notebook_sync.store import publish
from notebook_sync.store.publish import Publisher, targets_of
from notebook_sync.store.redis import RedisTarget
from tests.servers import Server, free_port
from tests.store.mirrors import TODAY, Database, Keys, OpenWorld, World, line
from tests.store.rows_for_tests import document, fact, private
from tests.waiting import eventually


def test_the_settings_name_the_servers_and_nothing_is_published_without_them(world: World) -> None:
    settings = Settings(mirror=world.mirror, refs=world.refs)
    assert [each.kind for each in targets_of(settings, world.place, world.index)] == ["mongodb", "redis"]
    assert list(targets_of(Settings(), world.place, world.index)) == []
    alone = Publisher(world.index, [], world.place)
    alone.publish_inline(1.0)
    assert (alone.publish(1.0), alone.state(), alone.wait_for_cursors(1.0)) == ({}, [], [])
    assert alone.compare() == (None, None, [])


def test_changes_arrive_in_both_and_a_second_run_writes_nothing(world: World, mongo: Database, keys: Keys) -> None:
    world.publish_well(document("a"), document("b"), facts=[fact()], lines=[line("first")])
    world.put(document("a", "second text"))
    world.index.documents.delete(["pages/b"])
    world.index.facts.delete(["f1"])
    assert [each["behind"] for each in world.publisher.state()] == [1, 1]
    assert {kind: done.published for kind, done in world.publish().items()} == {"mongodb": 3, "redis": 2}
    assert (mongo.texts(), mongo.db.pages.find_one()["metadata"]["version"]) == ({"pages/a": "second text"}, 2)
    assert mongo.db.notes.count_documents({}) == 0
    assert (keys.refs(), keys.ref("pages/a")["version"], keys.ids()) == ({"pages/a"}, "2", ["first"])
    assert {kind: done.published for kind, done in world.publish().items()} == {"mongodb": 0, "redis": 0}
    assert [each["behind"] for each in world.publisher.state()] == [0, 0]
    assert world.is_equal()


def test_when_the_time_is_over_the_batch_in_hand_is_the_last(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "_BATCH", 2)
    world.put(*(document(name) for name in "abc"))
    assert [world.publisher.publish(0.0)["mongodb"].published for _ in range(3)] == [2, 1, 0]


def test_private_notes_stay_here_unless_the_mirror_may_have_them(
    world: World, open_world: OpenWorld, servers: dict[str, str], mongo: Database, keys: Keys
) -> None:
    copy = document("copy", "a copy of a private note", audience="channels/scribe/global")
    world.publish_well(private("secret", "private words"), copy, document("open"))
    assert (mongo.texts(), keys.refs()) == ({"pages/open": "first text"}, {"pages/open"})
    world.publisher._targets[0]._settings = world.mirror.__class__(  # type: ignore[attr-defined]
        url=world.mirror.url, database=world.database, private=True
    )
    world.publisher.reconcile_all()
    assert (len(mongo.texts()), keys.refs()) == (3, {"pages/open"})


def test_a_row_that_leaves_a_collection_is_deleted_there(world: World, mongo: Database, keys: Keys) -> None:
    world.publish_well(
        document("plan"), document("code", id="x", path="code_snippets/x.md", collection="code_snippets")
    )
    world.publish_well(document("plan", collection="research_notes"), document("code", id="x", audience="channels/a/b"))
    assert (mongo.texts("pages", "code_snippets", "documents"), mongo.texts()) == ({}, {"pages/plan": "first text"})
    assert keys.refs() == {"pages/plan"}


def test_a_file_that_is_shown_in_part_has_a_ref_of_its_visible_text(world: World, keys: Keys) -> None:
    text = "# Rules <!-- of Ann -->\n\n<!-- the safe is behind the picture -->\nBe kind.\n"
    path = "runtime/standing-orders"
    runtime = {"id": path, "path": f"{path}.md", "collection": "runtime", "audience": "apart"}
    hidden = {"title": "Rules of Ann", "summary": "the safe is behind the picture", "tags": ["safe"]}
    world.publish_well(
        document("rules", text, **runtime, **hidden),
        document("core", id="core", path="facts/core.md", audience="apart"),
        document("copy", id="copy", path="facts/core (conflicted copy).md", audience="apart"),
    )
    assert keys.refs() == {path}  # an external session is denied core facts as a whole, and copies of them
    found = keys.ref(path)
    assert (found["title"], found["summary"], found["tags"]) == ("Rules", "Be kind.", "")
    assert not any("safe" in value or "Ann" in value for value in found.values())


POISON: dict[str, dict[str, Any]] = {
    "too large": {"content": "x" * 17_000_000},
    "too wide": {"fields": {"confidence": 2**64}},
}


@pytest.mark.parametrize("fields", POISON.values(), ids=POISON)
def test_a_note_that_cannot_be_stored_is_refused_alone(fields: dict[str, Any], world: World, mongo: Database) -> None:
    deep: dict[str, Any] = reduce(lambda inner, _: {"a": inner}, range(900), {})
    world.publish_well(
        document("bad", **fields),
        document("good"),
        document("fine", extra={"day": date(2026, 1, 2), "$x": 1, "deep": deep}),
    )
    assert mongo.texts() == {"pages/good": "first text", "pages/fine": "first text"}
    found = mongo.db.pages.find_one({"_id": "pages/fine"})["metadata"]["extra"]
    assert (found["day"], found["_x"]) == ("2026-01-02", 1)
    assert world.index.refused.tuples(("row",)) == [("documents:pages/bad",)]
    world.publish_well(document("bad", "fits now"))
    assert (world.index.refused.count(), mongo.texts()["pages/bad"]) == (0, "fits now")


def test_a_batch_that_is_refused_whole_is_the_servers_trouble(
    open_world: OpenWorld, servers: dict[str, str], new_mongo_database: str, mongodb_url: str
) -> None:
    world = open_world(mongodb=mongodb_url, database=new_mongo_database)
    with closing(Database(mongodb_url, new_mongo_database)) as database:
        database.db.create_collection("pages", validator={"title": {"$type": "int"}})
        world.put(document("a"), document("b"))
        assert "validation" in world.troubles()["mongodb"]
        assert world.state("mongodb")["behind"] == 2
        database.db.command("collMod", "pages", validator={})
        world.publish_well()
        assert set(database.texts()) == {"pages/a", "pages/b"}


def test_a_text_index_of_others_stays(open_world: OpenWorld, new_mongo_database: str, mongodb_url: str) -> None:
    database = Database(mongodb_url, new_mongo_database)
    database.db.code_snippets.create_index([("title", "text")])
    before = database.db.code_snippets.index_information()["title_text"]
    world = open_world(mongodb=mongodb_url, database=new_mongo_database)
    world.publish_well(
        document("x", collection="code_snippets", code="x"), document("y", fields={"language": "python"})
    )
    assert set(database.texts()) == {"pages/x", "pages/y"}
    assert database.db.pages.find_one()["metadata"]["language"] == "python"
    assert database.db.code_snippets.index_information()["title_text"] == before
    database.client.close()


def test_what_programs_counted_of_facts_is_not_lowered(world: World, mongo: Database) -> None:
    mongo.db.notes.insert_one({"_id": "theirs", "note_id": "theirs", "content": "their fact"})
    world.publish_well(facts=[fact(access_count=2), fact("theirs")])
    mongo.db.notes.update_one({"_id": "f1"}, {"$inc": {"access_count": 3}})
    world.publish_well(facts=[fact(section="moved")])
    found = mongo.db.notes.find_one({"_id": "f1"})
    assert (found["access_count"], found["section"], found["metadata"]["base"]) == (5, "moved", 0.5)
    assert mongo.db.notes.find_one({"_id": "theirs"})["content"] == "their fact"
    assert world.state("mongodb")["refused"] == 1


def test_a_key_that_is_used_for_something_else_refuses_its_row_alone(world: World, keys: Keys) -> None:
    keys.client.set(f"{keys.prefix}:daily:{TODAY}:odd", "theirs")
    world.publish_well()
    world.publish_well(lines=[line("odd"), line("fine")])
    assert (keys.client.get(f"{keys.prefix}:daily:{TODAY}:odd"), keys.ids()) == ("theirs", ["odd", "fine"])
    assert world.state("redis")["refused"] == 1


def test_a_line_that_ends_leaves_its_list_and_lines_of_others_stay(world: World, keys: Keys) -> None:
    keys.client.rpush(f"{keys.prefix}:daily:{TODAY}", "no JSON", '{"content": "theirs"}')
    world.publish_well(lines=[line("first"), line("second")])
    world.index.stream.delete(["first"])
    world.publish_well()
    *theirs, _ = keys.client.lrange(f"{keys.prefix}:daily:{TODAY}", 0, -1)
    assert theirs == ["no JSON", '{"content": "theirs"}']
    assert not keys.client.exists(f"{keys.prefix}:daily:{TODAY}:first")


def test_checkpoints_and_longterm_memory_are_published(world: World, keys: Keys) -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    body = {"daily": {TODAY: []}, "longterm": [], "notebook": []}
    world.index.checkpoints.put([{"id": "u1", "name": "before", "at": moment, "commit": "abc", "body": body}])
    world.publish_well(longterm=[line("kept", tags=["x", "y"])])
    blob = keys.client.get(f"{keys.prefix}:checkpoint:u1")
    own = '{"uuid": "u1", "name": "before", "timestamp": "2026-01-02T00:00:00+00:00", "commit": "abc", "daily"'
    assert blob.startswith(own)
    assert keys.client.hget(f"{keys.prefix}:longterm:kept", "tags") == "x,y"
    world.index.checkpoints.delete(["u1"])
    world.index.longterm.delete(["kept"])
    world.publish_well()
    assert not keys.client.exists(f"{keys.prefix}:checkpoint:u1", f"{keys.prefix}:longterm:kept")


def test_a_redis_without_modules_serves_as_well(open_world: OpenWorld, plain_redis_url: str, redis_prefix: str) -> None:
    world = open_world(redis=plain_redis_url, prefix=redis_prefix)
    world.publish_well(document("plan"), lines=[line("first")])
    with closing(Keys(plain_redis_url, redis_prefix)) as keys:
        assert (keys.refs(), keys.ids()) == ({"pages/plan"}, ["first"])


def test_every_command_has_one_key(own_redis: Server, open_world: OpenWorld) -> None:
    """A node of a cluster refuses a command whose keys are in several slots."""
    own_redis.restart("--cluster-enabled", "yes", "--cluster-port", str(free_port()), emptied=True)
    keys = Keys(own_redis.url, "c")
    keys.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    eventually(lambda: keys.client.cluster("INFO")["cluster_state"] == "ok", "the cluster is up")
    world = open_world(redis=own_redis.url, prefix="c")
    for _ in range(2):
        world.publish_well(document("a"), document("b"), lines=[line("first"), line("second", day="2026-01-01")])
        world.publisher.reconcile_all()
        world.index.documents.delete(["pages/b"])
        world.index.stream.delete(["first"])
        world.publish_well()
    assert keys.refs() == {"pages/a"}
    keys.client.close()
    own_redis.restart(emptied=True)


@pytest.mark.parametrize("url", ["redis://[", "redis://u:s3cret@127.0.0.1:1/0", "unix:/none"])
def test_an_address_that_leads_nowhere_is_trouble_without_secrets(url: str, world: World) -> None:
    target = RedisTarget(RefsTable(url=url, prefix="x"), PromptTable(), world.index)
    publisher = Publisher(world.index, [target], world.place)
    trouble = publisher.publish(1.0)["redis"].trouble
    assert trouble
    assert "s3cret" not in f"{trouble} {publisher.state()}"
    publisher.close()


# What the feed cannot prove is repaired by comparing ids and revs of both sides.


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
