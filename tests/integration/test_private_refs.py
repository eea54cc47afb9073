"""What is in a channel is in no ref, no entry of the stream and no answer of recall, whichever way it came there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import redis

from notebook_sync.files.note import Ref
from tests.integration.world import World

CHANNEL = "channels/scribe/global"
CANARY = "quokka"
SECRET = f"# The {CANARY} plan\n\nInes keeps the {CANARY} key.\n"
OPEN = "# Timetable\n\nThe ferry leaves at nine.\n"
WITH_ID = "---\nid: timetable\n---\n"


@pytest.fixture(params=["embedded", "servers"])
def world(request: pytest.FixtureRequest, embedded: World) -> World:
    if request.param == "servers":
        urls = request.getfixturevalue("mongodb_url"), request.getfixturevalue("redis_stack_url")
        return embedded.on(*urls)
    return embedded


def sync(world: World) -> None:
    with world.notebook() as notebook:
        notebook.sync()
        assert notebook.admin.verify().consistent


def told(world: World) -> list[tuple[str, str, str]]:
    """Action, id and path of each entry of the stream."""
    with world.notebook() as notebook:
        entries = [entry for day in notebook.refs.days() for entry in notebook.refs.day(day)]
    return [(entry["action"], entry["ref"]["notebook_id"], entry["ref"]["path"]) for entry in entries]


def everything(world: World) -> str:
    """All that hot memory tells."""
    now = datetime.now(UTC)
    with world.notebook() as notebook:
        refs = notebook.refs
        parts: list[Any] = [refs.day(day) for day in refs.days()]
        parts += [list(refs.digests()), refs.recent(100), refs.recall("", limit=100, now=now).results]
        parts += [refs.recall(f"{CANARY} scribe channels", limit=100, now=now).results]
    return json.dumps(parts)


def move(world: World, source: str, target: str) -> None:
    (world.root / target).parent.mkdir(parents=True, exist_ok=True)
    (world.root / source).rename(world.root / target)


def test_a_note_in_a_channel_leaves_nothing_whatever_is_done_to_it(world: World) -> None:
    world.write("pages/else.md", OPEN)
    sync(world)
    world.write(f"{CHANNEL}/plan.md", SECRET)
    sync(world)
    world.write(f"{CHANNEL}/plan.md", SECRET + "\nAgain.\n")
    world.write("channels/stray.md", SECRET)
    sync(world)
    move(world, f"{CHANNEL}/plan.md", "channels/scribe/ferry/plan.md")
    sync(world)
    (world.root / "channels/scribe/ferry/plan.md").unlink()
    sync(world)
    assert told(world) == [("created", "pages/else", "pages/else.md")]
    assert CANARY not in everything(world)
    assert "scribe" not in everything(world)


@pytest.mark.parametrize("frontmatter", ["", WITH_ID])
def test_a_note_moved_into_a_channel_is_deleted_for_everybody_else(world: World, frontmatter: str) -> None:
    note_id = "timetable" if frontmatter else "pages/timetable"
    world.write("pages/else.md", OPEN)
    world.write("pages/timetable.md", frontmatter + OPEN)
    sync(world)
    before = told(world)
    move(world, "pages/timetable.md", f"{CHANNEL}/{CANARY}.md")
    sync(world)
    assert told(world) == [*before, ("deleted", note_id, "pages/timetable.md")]
    assert set(world.refs()) == {"pages/else"}
    assert CANARY not in everything(world)
    world.write(f"{CHANNEL}/{CANARY}.md", frontmatter + SECRET)
    sync(world)
    assert CANARY not in everything(world)


def test_what_was_changed_on_the_way_into_a_channel_is_not_told(world: World) -> None:
    world.write("pages/timetable.md", WITH_ID + OPEN)
    world.write("pages/else.md", OPEN)
    sync(world)
    (world.root / "pages/timetable.md").unlink()
    world.write(f"{CHANNEL}/plan.md", WITH_ID + SECRET)
    sync(world)
    assert told(world)[-1] == ("deleted", "timetable", "pages/timetable.md")
    assert CANARY not in everything(world)


@pytest.mark.parametrize("frontmatter", ["", WITH_ID])
def test_a_note_moved_out_of_a_channel_is_created(world: World, frontmatter: str) -> None:
    note_id = "timetable" if frontmatter else "pages/timetable"
    world.write("pages/else.md", OPEN)
    world.write(f"{CHANNEL}/{CANARY}.md", frontmatter + OPEN)
    sync(world)
    move(world, f"{CHANNEL}/{CANARY}.md", "pages/timetable.md")
    sync(world)
    assert told(world)[1:] == [("created", note_id, "pages/timetable.md")]
    assert set(world.refs()) == {"pages/else", note_id}
    assert CANARY not in everything(world)
    (document,) = [one for one in world.whole().values() if one["id"] == note_id]
    assert CANARY not in json.dumps(document["history"], default=str)


def test_refs_that_an_earlier_version_left_are_found_and_go(world: World) -> None:
    world.write("pages/else.md", OPEN)
    world.write(f"{CHANNEL}/plan.md", SECRET)
    sync(world)
    left = [
        Ref(f"{CHANNEL}/{name}", CANARY, "", "channels", datetime.now(UTC), "draft", 1, "d", "owner", f"{CHANNEL}/x.md")
        for name in ("plan", "gone")
    ]
    with world.notebook() as notebook:
        notebook.refs.write(left)
        verdict = notebook.admin.verify()
        assert [difference.what for difference in verdict.differences] == ["orphan ref"] * 2
    assert world.run("verify", "--repair").code in {0, 1}
    with world.notebook() as notebook:
        assert notebook.admin.verify().consistent
    assert CANARY not in everything(world)
    with world.notebook() as notebook:
        notebook.refs.write(left)
    world.write(f"{CHANNEL}/plan.md", SECRET + "\nAgain.\n")
    with world.notebook() as notebook:
        notebook.sync()
        assert notebook.refs.get(f"{CHANNEL}/plan") is None
    assert [action for action, _, _ in told(world)] == ["created"]


def test_no_key_of_redis_tells_of_a_channel(
    embedded: World, mongodb_url: str, redis_stack_url: str, redis_prefix: str
) -> None:
    world = embedded.on(mongodb_url, redis_stack_url)
    world.write("pages/else.md", OPEN)
    world.write(f"{CHANNEL}/plan.md", SECRET)
    sync(world)
    with redis.Redis.from_url(redis_stack_url, decode_responses=True) as client:
        assert not [key for key in client.scan_iter(f"{redis_prefix}:*") if "scribe" in key]
        assert client.zrange(f"{redis_prefix}:notebook:recent", 0, -1) == ["pages/else"]
