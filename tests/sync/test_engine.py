"""`sync`, `rebuild` and `verify` as commands use them."""

import contextlib
import sqlite3
from itertools import count
from typing import Any

import pytest
from msgspec.structs import asdict

from notebook_sync.errors import IndexDamaged
from notebook_sync.store.rows import Is
from notebook_sync.sync.sweep import Sweep
from tests.files.notebooks import write
from tests.sync.world import World

# `sync`.


def test_the_report_has_the_documented_shape(world: World) -> None:
    report = world.save({"bad.md": b"\xff"}).as_dict()
    assert list(report) == ["added", "updated", "moved", "deleted", "unchanged", "failed", "warnings", "seconds"]
    assert (report["added"], report["unchanged"], [each["path"] for each in report["failed"]]) == (2, 0, ["bad.md"])


def test_a_rename_is_one_move(world: World) -> None:
    """Also of a note without an id, and where only the case differs."""
    world.sync()
    for old, new in (("good.md", "pages/plan.md"), ("pages/plan.md", "pages/Plan.md")):
        report = world.move(old, new)
        assert (report.moved, report.added, report.deleted, report.paths) == (1, 0, 0, [new])
    world.rename("pages/Plan.md", "x.md")
    assert world.engine.sync(force=True, allow_empty=True).moved == 1


def test_progress_counts_all_files(world: World) -> None:
    seen: list[tuple[int, int]] = []
    world.sync(progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (1, 1)


def test_a_damaged_index_is_set_aside_and_filled_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what only the index knew, from the dump."""
    world.sync()
    world.index.documents.update(Is("id", "=", "good"), inc={"access_count": 7})
    world.index.dump(world.place.state / "dump")
    run, errors = Sweep.run, [IndexDamaged("index.db", "a page is not what it should be")]

    def damaged(sweep: Sweep) -> None:
        while errors:
            raise errors.pop()
        run(sweep)

    monkeypatch.setattr(Sweep, "run", damaged)
    (warning,) = world.sync().warnings
    assert "the index was damaged" in warning
    assert world.rows()["good.md"]["access_count"] == 7
    assert world.index.stream.distinct("action") == {"created": 1}  # the first sync is told once


def test_a_file_that_changes_all_the_time_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_sync.sync.engine._ROUNDS", 2)
    tree: Any = world.engine._reader.tree
    read, texts = tree.read, count()

    def changing(path: str) -> Any:
        found = read(path)
        world.write(path, f"{next(texts)}")
        return found

    monkeypatch.setattr(tree, "read", changing, raising=False)
    (warning,) = world.sync().warnings
    assert warning == "good.md is still being written; sync again"


def test_what_is_in_order_is_not_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.save({"a.md": "---\nid: x\n---\n", "b.md": "---\nid: x\n---\n", "plain.md": "text"})
    read, tree = list[str](), world.engine._reader.tree
    monkeypatch.setattr(tree, "read", lambda path: read.append(path), raising=False)
    report = world.sync()
    assert (read, report.unchanged, report.faults.keys()) == ([], 3, {"b.md"})


def test_a_checkpoint_moves_what_was_committed_to_the_file(world: World) -> None:
    world.sync()
    world.index.checkpoint()
    with contextlib.closing(sqlite3.connect(f"{world.index.path.as_uri()}?immutable=1", uri=True)) as without_log:
        assert without_log.execute("SELECT id FROM documents").fetchall() == [("good",)]


# `verify`.


def test_every_kind_of_difference_is_found(world: World) -> None:
    world.save(
        {
            "bad.md": "good",
            "gone.md": "x",
            "facts/a.md": "- Omar has the key\n- The toll is ten crowns\n",
            "changed.md": "one",
        }
    )
    world.save({"bad.md": b"\xff"})
    write(world.root, {"new.md": "new", "changed.md": "two"})
    world.delete("gone.md")
    world.link("link.md", "good.md")
    world.index.facts.delete([world.facts()["Omar has the key"]["id"]])
    found = asdict(world.engine.verify())
    assert {each["path"]: each["what"] for each in found["differences"]} == {
        "bad.md": "stale",
        "changed.md": "differs",
        "facts/a.md": "facts",
        "gone.md": "orphan",
        "link.md": "missing",
        "new.md": "missing",
    }
    assert (found["files"], found["index"], found["mongodb"]) == (5, 5, None)
    for path in ("bad.md", "link.md"):
        world.delete(path)
    world.engine.sync(force=True, allow_empty=True)
    assert world.engine.verify().differences == []


def test_what_the_servers_lack_is_added(world: World) -> None:
    world.sync()
    difference = {"path": "good.md", "what": "no ref", "detail": ""}
    found = asdict(world.engine.verify(lambda: (1, 0, [difference])))
    assert (found["mongodb"], found["redis"], found["differences"]) == (1, 0, [difference])
