"""The laws that need real servers to be broken: files alone make the mirror, a crash anywhere is repaired by the next
sync, and any number of processes may sync at once."""

from __future__ import annotations

import itertools
import random
import signal
from pathlib import Path

import pymongo
import pytest

from tests.integration.world import World
from tests.servers import drop_keys
from tests.waiting import eventually

# A sync makes some 150 requests, most of them one reading of seven collections: every point of that would be the same.
_STRIDE = 11


@pytest.fixture
def world(world: World) -> World:
    """Some notes with a past, in step."""
    for name in ("kept", "edited", "renamed", "deleted"):
        world.write(f"pages/{name}.md", f"# {name}\n\nBefore.\n")
    world.write("pages/own.md", "---\nid: own\n---\n# Own\n")
    world.commit_all("Begin")
    assert world.run("sync").code == 0
    return world


def drop_both(world: World, database: str, prefix: str) -> None:
    with pymongo.MongoClient(world.mongodb_url) as client:
        client.drop_database(database)
    drop_keys(world.redis_url, prefix)


@pytest.mark.parametrize("command", ["rebuild", "sync"])
def test_both_databases_dropped_come_back_the_same(
    world: World, mongo_database: str, redis_prefix: str, command: str
) -> None:
    documents, refs = world.documents(), world.refs()
    drop_both(world, mongo_database, redis_prefix)
    assert world.run(command).code == 0
    assert world.documents() == documents
    assert world.refs() == refs
    assert world.is_consistent()


def test_a_crash_before_any_request_is_repaired_by_the_next_sync(world: World) -> None:
    renamed, collections = "pages/renamed.md", itertools.cycle(("research_notes", "pages"))
    for number in itertools.count(1):
        before = {path: document["metadata"]["version"] for path, document in world.whole().items()}
        world.write("pages/edited.md", f"# edited\n\nLife {number}.\n")
        world.write(f"pages/new-{number}.md", f"# new {number}\n")
        (world.root / f"pages/new-{number - 1}.md").unlink(missing_ok=True)
        renamed, old = f"{next(collections)}/renamed.md", renamed
        (world.root / renamed).parent.mkdir(exist_ok=True)
        (world.root / old).rename(world.root / renamed)
        (world.root / "pages/own.md").write_text(f"---\nid: own\n---\n# Own\n\nLife {number}.\n")
        life = world.live("die", str(number * _STRIDE))
        _, errors = life.communicate(timeout=60)
        assert life.returncode in {0, -signal.SIGKILL}, errors
        with world.notebook() as notebook:
            report = notebook.sync()
            assert not report.failed
            assert notebook.admin.verify().differences == []
        world.assert_whole()
        after = {path: document["metadata"]["version"] for path, document in world.whole().items()}
        for path in ("pages/edited.md", "pages/own.md"):
            assert after[path] == before[path] + 1
        assert {note for note, action, _ in world.stream() if action == "created"} >= {f"pages/new-{number}"}
        if life.returncode == 0:
            assert number > 5
            return


def test_a_first_sync_that_was_broken_off_gives_the_rest_its_past_too(
    world: World, mongo_database: str, redis_prefix: str
) -> None:
    world.write("notebook.toml", (world.root / "notebook.toml").read_text().replace("[sync]", "[sync]\nbatch = 1"))
    drop_both(world, mongo_database, redis_prefix)
    for number in itertools.count(10, 10):
        life = world.live("die", str(number))
        life.communicate(timeout=60)
        assert life.returncode == -signal.SIGKILL
        if world.whole():
            break
    assert len(world.whole()) < 5
    assert world.run("sync").code == 0
    for document in world.whole().values():
        assert [crumb["summary"] for crumb in document["history"]] == ["Begin"]


def test_processes_that_sync_at_once_end_with_what_is_on_disk(world: World, tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    choose = random.Random(7)
    lives = [world.live("sync", str(stop)) for _ in range(2)]
    try:
        for n in range(400):
            name = choose.choice("abcdefgh")
            folder = choose.choice(("pages", "research_notes"))
            path = f"{folder}/{name}.md"
            turn = choose.random()
            if turn < 0.15:
                (world.root / path).unlink(missing_ok=True)
            elif turn < 0.3 and (world.root / path).exists():
                (world.root / path).rename(world.root / "pages" / f"{choose.choice('abcdefgh')}.md")
            else:
                own = f"---\nid: own-{name}\n---\n" if name in "abc" else ""
                world.write(path, f"{own}# {name}\n\nText {n}.\n")
            if n % 40 == 39:
                world.write("pages/kept.md", f"# kept\n\nText {n}.\n")
                eventually(lambda text=f"Text {n}.": world.refs()["pages/kept"]["summary"] == text, "the refs follow")
    finally:
        stop.touch()
        errors = [life.communicate(timeout=60)[1] for life in lives]
    assert [life.returncode for life in lives] == [0, 0], errors
    with world.notebook() as notebook:
        notebook.sync()
        assert notebook.admin.verify().differences == []
    world.assert_whole()
