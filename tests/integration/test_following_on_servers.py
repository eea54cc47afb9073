"""`watch` on MongoDB and Redis: each change of a file is one change of the mirror, of the refs and of the stream."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.integration.world import SETTINGS, World
from tests.waiting import eventually


@pytest.fixture(params=["plain Redis", "Redis Stack"])
def world(request: pytest.FixtureRequest, embedded: World, mongodb_url: str) -> World:
    fixture = "redis_url" if request.param == "plain Redis" else "redis_stack_url"
    return embedded.on(mongodb_url, request.getfixturevalue(fixture))


def test_saving_renaming_and_deleting_a_note_while_it_is_watched(world: World) -> None:
    world.write("pages/other.md", "# Other\n")
    assert world.run("rebuild").code == 0
    with world.watching():
        world.write("pages/plan.md", "# Plan\n\nFirst.\n")
        eventually(lambda: "pages/plan" in world.refs(), "the new note has a ref")
        world.write("pages/plan.md", "# Plan\n\nSecond.\n")
        eventually(lambda: world.refs()["pages/plan"]["version"] == "2", "the ref tells of the second version")
        world.assert_whole()
        (world.root / "pages/plan.md").rename(world.root / "pages/scheme.md")
        eventually(lambda: "pages/plan" not in world.refs(), "the old ref is gone")
        eventually(lambda: "pages/scheme" in world.refs(), "the note has a ref at its new place")
        world.assert_whole()
        moved = world.whole()["pages/scheme.md"]
        assert moved["metadata"]["version"] == 2
        assert [crumb["summary"] for crumb in moved["history"]] == ["Created", "Changed Plan"]
        (world.root / "pages/scheme.md").unlink()
        eventually(lambda: "pages/scheme" not in world.refs(), "the ref is gone")
    assert list(world.documents()) == ["pages/other.md"]
    assert world.stream() == [
        ("pages/plan", "created", "1"),
        ("pages/plan", "updated", "2"),
        ("pages/scheme", "moved", "2"),
        ("pages/scheme", "deleted", "2"),
    ]


def test_a_note_with_an_id_of_its_own_keeps_its_ref_when_it_moves_to_another_collection(world: World) -> None:
    world.write("pages/plan.md", "---\nid: plan-id\n---\n# Plan\n")
    with world.watching():
        (world.root / "research_notes").mkdir()
        (world.root / "pages/plan.md").rename(world.root / "research_notes/plan.md")
        eventually(lambda: world.refs()["plan-id"]["path"] == "research_notes/plan.md", "the ref follows")
    world.assert_whole()
    assert world.refs()["plan-id"]["collection"] == "research_notes"
    assert world.stream() == [("plan-id", "created", "1"), ("plan-id", "moved", "1")]


def test_two_notebooks_on_one_server_do_not_see_each_other(world: World, tmp_path: Path) -> None:
    neighbour = World(tmp_path / "neighbour", world.mongodb_url, world.redis_url)
    neighbour.root.mkdir()
    name = uuid.uuid4().hex
    (neighbour.root / "notebook.toml").write_text(SETTINGS.format(database=f"notebook_test_{name}", prefix=name))
    for each, text in ((world, "Ours."), (neighbour, "Theirs.")):
        each.write("pages/plan.md", f"# Plan\n\n{text}\n")
        assert each.run("rebuild").code == 0
    for each in (world, neighbour):
        each.assert_whole()
        assert each.is_consistent()
    with world.notebook() as notebook:
        assert notebook.search("Theirs", mode="keyword") == []
    (world.root / "pages/plan.md").unlink()
    assert world.run("sync", "--allow-empty").code == 0
    neighbour.assert_whole()
    assert neighbour.is_consistent()
