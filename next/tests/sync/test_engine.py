"""`sync`, `rebuild`, `verify` as commands use them, and the chores of upkeep."""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from dataclasses import asdict
from typing import Any

import pytest

from notebook_sync.errors import IndexDamaged, UsageError
from notebook_sync.store.rows import Is
from notebook_sync.sync import upkeep
from notebook_sync.sync.sweep import Sweep
from notebook_sync.sync.upkeep import Chore, run_chores
from tests.sync.world import World


class TestSync:
    def test_the_report_has_the_documented_shape(self, world: World) -> None:
        report = world.save({"bad.md": b"\xff"}).as_dict()
        assert list(report) == ["added", "updated", "moved", "deleted", "unchanged", "failed", "warnings", "seconds"]
        assert (report["added"], report["unchanged"]) == (2, 0)
        assert [each["path"] for each in report["failed"]] == ["bad.md"]

    def test_a_rename_is_one_move(self, world: World) -> None:
        """Also of a note without an id, and where only the case differs."""
        world.sync()
        for old, new in (("good.md", "pages/plan.md"), ("pages/plan.md", "pages/Plan.md")):
            world.rename(old, new)
            report = world.sync()
            assert (report.moved, report.added, report.deleted, report.paths) == (1, 0, 0, [new])
        world.rename("pages/Plan.md", "x.md")
        assert world.engine.rebuild().moved == 1

    def test_progress_counts_all_files(self, world: World) -> None:
        seen: list[tuple[int, int]] = []
        world.sync(progress=lambda done, total: seen.append((done, total)))
        assert seen[-1] == (1, 1)

    def test_a_damaged_index_is_set_aside_and_filled_again(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
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

    def test_a_file_that_changes_all_the_time_is_named(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("notebook_sync.sync.engine._ROUNDS", 2)
        read = world.engine._reader.tree.read
        number = 0

        def changing(path: str) -> Any:
            nonlocal number
            number += 1
            found = read(path)
            world.write(path, f"{number}")
            return found

        tree: Any = world.engine._reader.tree
        monkeypatch.setattr(tree, "read", changing, raising=False)
        (warning,) = world.sync().warnings
        assert warning == "good.md is still being written; sync again"

    def test_a_checkpoint_moves_what_was_committed_to_the_file(self, world: World) -> None:
        world.sync()
        world.index.checkpoint()
        with contextlib.closing(sqlite3.connect(f"{world.index.path.as_uri()}?immutable=1", uri=True)) as without_log:
            assert without_log.execute("SELECT id FROM documents").fetchall() == [("good",)]


class TestVerify:
    def test_every_kind_of_difference_is_found(self, world: World) -> None:
        world.save(
            {
                "bad.md": "good",
                "gone.md": "x",
                "facts/a.md": "- Omar has the key\n- The toll is ten crowns\n",
                "changed.md": "one",
            }
        )
        world.save({"bad.md": b"\xff"})
        world.write("new.md", "new")
        world.write("changed.md", "two")
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
        world.delete("bad.md")
        world.delete("link.md")
        world.engine.rebuild()
        assert world.engine.verify().differences == []

    def test_what_the_servers_lack_is_added(self, world: World) -> None:
        world.sync()
        difference = {"path": "good.md", "what": "no ref", "detail": ""}
        found = asdict(world.engine.verify(lambda: (1, 0, [difference])))
        assert (found["mongodb"], found["redis"]) == (1, 0)
        assert found["differences"] == [difference]


class TestUpkeep:
    @pytest.fixture
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        now = [1_000_000.0]
        monkeypatch.setattr(upkeep.time, "time", lambda: now[0])
        return now

    def test_chores_run_after_their_period_in_whichever_process(self, world: World, clock: list[float]) -> None:
        ran: list[str] = []
        chores = [Chore("dump", 100, lambda: ran.append("dump")), Chore("scores", 30, lambda: ran.append("scores"))]
        assert run_chores(world.index, chores) == 30
        clock[0] += 29
        assert run_chores(world.index, chores) == pytest.approx(1)
        assert ran == []
        clock[0] += 1
        assert run_chores(world.index, chores) == 30
        assert ran == ["scores"]
        clock[0] += 70
        run_chores(world.index, chores)
        assert ran == ["scores", "dump", "scores"]

    @pytest.mark.parametrize("jump", [10 * 365 * 86_400, -3600, 8 * 86_400])
    def test_a_clock_that_jumps_is_not_believed(self, world: World, clock: list[float], jump: float) -> None:
        """A chore of a clock that is wrong for a moment does nothing; one that stays goes on a period later."""
        ran: list[int] = []
        chores = [Chore("decay", 3600, lambda: ran.append(1))]
        run_chores(world.index, chores)
        clock[0] += jump
        run_chores(world.index, chores)
        assert ran == []
        clock[0] += 3600
        run_chores(world.index, chores)
        assert ran == [1]

    def test_a_chore_with_more_to_do_goes_on_at_once(self, world: World, clock: list[float]) -> None:
        left = [3]

        def some() -> bool:
            left[0] -= 1
            return left[0] > 0

        chores = [Chore("embed", 2, some)]
        run_chores(world.index, chores)
        clock[0] += 2
        assert [run_chores(world.index, chores) for _ in range(3)] == [0, 0, 2]

    def test_a_chore_that_fails_ends_no_other_one(
        self, world: World, clock: list[float], caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail() -> None:
            raise UsageError("no")

        ran: list[int] = []
        chores = [Chore("one", 2, fail), Chore("two", 2, lambda: ran.append(1))]
        run_chores(world.index, chores)
        clock[0] += 2
        with caplog.at_level(logging.ERROR):
            run_chores(world.index, chores)
        assert ran == [1]
        assert "the chore one failed" in caplog.text
