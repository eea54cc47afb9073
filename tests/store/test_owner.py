"""Whose a server is: other notebooks, clones, copied state folders, restored and rebuilt indexes."""

import shutil
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pytest

from notebook_sync.errors import BackendDown, ForeignTarget
from notebook_sync.store.owner import Mark, is_continued, name_of, without_secrets
from tests.store.mirrors import TODAY, Database, Keys, OpenWorld, World, line
from tests.store.rows_for_tests import document, fact

OWN, BEGUN = Mark(notebook="n", replica="r", generation="g2"), ("g1", "g2")
MARK = Mark("n", replica="r", generation="g2", cursor=5, at=datetime.now(UTC))


@pytest.mark.parametrize(
    ("mark", "last_cursor", "continues"),
    [
        (MARK, 5, True),
        (MARK, 9, True),  # the server was restored from a backup
        (MARK, 4, False),  # this index was
        (replace(MARK, generation="g1"), 0, False),
        (replace(MARK, generation="g1"), 5, False),
    ],
)
def test_an_index_goes_on_from_its_own_mark_alone(mark: Mark, last_cursor: int, continues: bool) -> None:
    assert is_continued(mark, OWN, BEGUN, target="t", last_cursor=last_cursor) == continues


@pytest.mark.parametrize(
    ("mark", "owner", "can_claim"),
    [
        (replace(MARK, notebook="m", name="diary"), "the notebook 'diary'", False),
        (Mark.read(b"no JSON"), "another program", False),
        (Mark.read({"notebook": "n", "cursor": "many"}), "another program", False),
        (replace(MARK, replica="s", generation="h1"), "another copy of this notebook", True),
        (replace(MARK, generation="g3"), "a copy of this state folder", True),
    ],
)
def test_the_mark_of_another_refuses(mark: Mark, owner: str, can_claim: bool) -> None:
    for claim in (False, True):
        with nullcontext() if claim and can_claim else pytest.raises(ForeignTarget, match=owner):
            assert not is_continued(mark, OWN, BEGUN, target="t", last_cursor=5, claim=claim)


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://ann:s3cr%40t@host:27017/?authMechanismProperties=AWS_SESSION_TOKEN:s3cr@t",
        "redis://:s3cr@t@host:6379/0",
        "redis://host:6379/0?password=s3cr@t",
        "mongodb://s3cr@t:[",
    ],
)
def test_no_message_has_a_secret(url: str) -> None:
    assert "s3cr" not in name_of(url, "Server") + without_secrets(f"cannot use {url}", url)


def test_another_notebook_refuses_and_nothing_is_written(
    world: World, open_world: OpenWorld, servers: dict[str, str], mongo: Database, keys: Keys
) -> None:
    world.publish_well(document("plan", "ours"))
    other = open_world("other", **servers)
    other.put(document("plan", "another's"))
    for options in ({}, {"claim": True}):
        troubles = [each.trouble for each in other.publish(**options).values()]
        assert ["belongs to the notebook 'notebook'" in trouble for trouble in troubles] == [True, True]
    assert mongo.texts() == {"pages/plan": "ours"}
    assert [each["trouble"] != "" for each in other.publisher.state()] == [True, True]


def test_a_clone_is_refused_until_it_claims_and_then_has_what_only_the_servers_had(
    world: World, open_world: OpenWorld, servers: dict[str, str], mongo: Database, keys: Keys, tmp_path: Path
) -> None:
    world.put(document("plan", "one"), document("secret", "deleted later"))
    world.index.history.put([{"id": "pages/plan@2", "note": "pages/plan", "version": 2, "at": datetime.now(UTC)}])
    moment = {"name": "before", "at": datetime.now(UTC).replace(microsecond=0), "body": {"daily": {}}}
    world.index.checkpoints.put([{"id": "c1", **moment}])
    rows = {"facts": [fact(access_count=7)], "lines": [line("first")], "longterm": [line("kept", "long ago")]}
    world.publish_well(document("plan", "two"), **rows)
    world.index.documents.delete(["pages/secret"])
    world.publish_well()

    shutil.copytree(world.place.root, tmp_path / "clone")  # without its state folder
    clone = open_world("clone", **servers)
    clone.put(document("plan", "of the clone"), facts=[fact()])
    assert "another copy of this notebook" in clone.troubles()["mongodb"]
    assert mongo.texts() == {"pages/plan": "two"}

    clone.publish_well(claim=True)
    index = clone.index
    assert (mongo.texts(), keys.ids()) == ({"pages/plan": "of the clone"}, ["first"])
    assert index.documents.tuples(("id", "version")) == [("pages/plan", 2)]
    assert (index.history.count(), index.facts.tuples(("id", "access_count"))) == (1, [("f1", 7)])
    assert index.stream.tuples(("id", "content")) == [("first", "something happened")]
    assert index.longterm.tuples(("id", "content")) == [("kept", "long ago")]
    assert index.checkpoints.tuples(("id", "body")) == [("c1", {"daily": {}})]
    assert clone.is_equal()
    assert set(world.troubles()) == {"mongodb", "redis"}


def test_a_copied_state_folder_is_refused_until_it_claims(
    world: World, mongo: Database, keys: Keys, tmp_path: Path
) -> None:
    world.publish_well(document("plan", "one"))
    saved = tmp_path / "saved"
    shutil.copytree(world.place.state, saved)
    world.publisher._begin_generation()  # as after a rebuild
    world.index.targets.delete(["mongodb", "redis"])
    world.publish_well()
    world.close()
    shutil.rmtree(world.place.state)
    saved.rename(world.place.state)
    world.open()
    world.put(document("plan", "of the copy"))
    assert "a copy of this state folder" in world.troubles()["redis"]
    before = mongo.mark()["generation"]
    world.publish_well(claim=True)
    assert mongo.texts() == {"pages/plan": "of the copy"}
    assert mongo.mark()["generation"] == keys.mark()["generation"] != before


def test_an_index_that_was_built_again_takes_back_what_it_lost(world: World, mongo: Database, keys: Keys) -> None:
    rows = [document(name, f"text of {name}") for name in ("a", "b", "c")]
    world.put(*rows)
    for text in ("two", "three"):
        world.put(document("a", text))
    world.index.documents.delete(["pages/c"])
    world.publish_well(lines=[line("first")])
    generation = mongo.mark()["generation"]
    world.lose_index()
    # The revs of the new index say nothing about those on the server.
    world.put(document("b", "changed meanwhile"), document("a", "three"))
    world.adopt()
    world.publish_well()
    assert mongo.texts() == {"pages/a": "three", "pages/b": "changed meanwhile"}
    assert mongo.db.pages.find_one({"_id": "pages/a"})["metadata"]["version"] == 3
    assert (world.index.stream.count(), keys.ids()) == (1, ["first"])
    assert mongo.mark()["generation"] == keys.mark()["generation"] != generation
    assert world.is_equal()


def test_a_line_that_a_new_index_logged_is_pushed_though_taking_over_was_interrupted(
    world: World, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.publish_well(lines=[line("first"), line("second")])
    keys.client.lpop(f"{keys.prefix}:daily:{TODAY}")
    world.lose_index()
    world.put(lines=[line("first"), line("new", at=datetime.now(UTC) + timedelta(seconds=1))])
    target = world.publisher._targets[1]
    with monkeypatch.context() as broken:
        broken.setattr(target, "write", Mock(side_effect=BackendDown("Redis", "reset")))
        assert set(world.troubles()) == {"redis"}
    world.publish_well()
    assert keys.ids() == ["second", "new"]


def test_a_restored_index_deletes_nothing_at_first_and_catches_up(
    world: World, mongo: Database, keys: Keys, tmp_path: Path
) -> None:
    world.publish_well(document("a", "one"))
    world.close()
    backup = (world.place.index_path).read_bytes()
    world.open()
    world.publish_well(document("a", "two"), document("new", "written after the backup"), lines=[line("later")])
    world.close()
    for file in world.place.state.glob("index.db*"):
        file.unlink()
    world.place.index_path.write_bytes(backup)
    world.open()
    world.publish_well(document("a", "three"))
    assert mongo.texts() == {"pages/a": "three", "pages/new": "written after the backup"}
    assert (world.index.stream.count(), keys.ids()) == (1, ["later"])
    world.publish_well(document("new", "written after the backup"))
    generation = mongo.mark()["generation"]
    world.publisher.reconcile_all()
    assert world.is_equal()
    assert mongo.mark()["generation"] == keys.mark()["generation"] == generation
