"""What a watcher misses, and what it must not take for an end: the notebook is followed all the same (law 4)."""

import contextlib
import mmap
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from notebook_sync.errors import FollowLocked, NotebookError
from notebook_sync.files.locks import FollowLock
from notebook_sync.settings import SyncTable
from notebook_sync.sync import engine as engine_module
from notebook_sync.sync.watch import Watcher, WatchEvent
from tests.files.notebooks import write
from tests.sync.conftest import Follow, Following
from tests.sync.world import World, git
from tests.waiting import eventually

FIRST = {"first.md": "first"}


@pytest.fixture
def root(root: Path) -> Path:
    (root / "first.md").write_text("first")
    return root


def delete(folder: Path) -> None:
    """All of a folder that a watcher writes into meanwhile: what it made there since is deleted with it."""

    def deleted() -> bool:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
        return not folder.exists()

    eventually(deleted, f"{folder.name} is deleted")


# Events that are lost.


def test_a_burst_of_files_in_new_folders(root: Path, watch: Following) -> None:
    count = 600

    def write_part(part: int) -> None:
        write(root, {f"d{part}/deep/{number}.md": "x" for number in range(part, count, 4)})

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write_part, range(4)))
    eventually(lambda: watch.world.index.documents.count() == count + 1, "every file is indexed", 120)


def test_a_tree_that_is_moved_in_at_once(root: Path, watch: Following, tmp_path: Path) -> None:
    write(tmp_path, {"tree/deep/er/a.md": "a", "tree/deep/b.md": "b"})
    (tmp_path / "tree").rename(root / "tree")
    watch.becomes({**FIRST, "tree/deep/er/a.md": "a", "tree/deep/b.md": "b"})
    watch.follows({"tree/deep/er/a.md": "followed inside"})


def test_a_folder_that_is_renamed_and_one_that_is_moved_away(root: Path, following: Follow, tmp_path: Path) -> None:
    write(root, {"d/e/a.md": "a"})
    with following() as watch:
        watch.follows({"d/e/a.md": "b"})
        (root / "d").rename(root / "f")
        watch.becomes({**FIRST, "f/e/a.md": "b"})
        assert (watch.world.rows()["f/e/a.md"]["version"], watch.deleted()) == (2, 0)
        (root / "f").rename(tmp_path / "away")
        watch.becomes(FIRST)


def test_a_write_through_a_memory_map_is_found_by_the_next_full_look(world: World) -> None:
    world.sync()
    with (world.root / "good.md").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[:4] = b"GOOD"
    assert (world.sync().updated, world.texts()) == (1, {"good.md": "GOOD"})


def test_the_timer_finds_what_no_event_shows(root: Path, following: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_sync.sync.watch.EventSource._deliver", lambda *_: None)
    monkeypatch.setattr("notebook_sync.sync.watch._READY_SECONDS", 0.1)
    monkeypatch.setattr("notebook_sync.sync.watch._TICK_SECONDS", 0.1)
    with following() as watch:
        assert watch.of("ready") == [{"event": "ready", "file_events": False}]
        timers = SyncTable(reconcile_seconds=0.05)
        watch.engine.settings = msgspec.structs.replace(watch.engine.settings, sync=timers)
        watch.watcher._next_full = 0.0
        watch.follows({"a.md": "a"})


# The root.


def test_the_root_deleted_and_made_again_is_followed_again(root: Path, watch: Following) -> None:
    delete(root)
    eventually(lambda: watch.of("trouble"), "the loss of the folder is reported")
    assert (root.exists(), watch.world.texts()) == (False, FIRST)
    write(root, {"second.md": "second"})
    eventually(lambda: watch.lock.holds(), "the lock is held again")
    write(root, FIRST)
    watch.becomes({**FIRST, "second.md": "second"})
    eventually(lambda: watch.of("recovered"), "the return is reported")
    watch.follows({"third.md": "third"})


def test_the_root_moved_away_and_back_loses_nothing(root: Path, watch: Following, tmp_path: Path) -> None:
    root.rename(tmp_path / "elsewhere")
    eventually(lambda: watch.of("trouble"), "the loss of the folder is reported")
    write(tmp_path / "elsewhere", {"second.md": "written meanwhile"})
    (tmp_path / "elsewhere").rename(root)
    watch.becomes({**FIRST, "second.md": "written meanwhile"})
    eventually(lambda: watch.of("recovered"), "the return is reported")
    watch.follows({"third.md": "third"})
    assert watch.deleted() == 0


def test_an_emptied_root_suspends_deletions_each_time_and_recovers(
    root: Path, watch: Following, tmp_path: Path
) -> None:
    for time in (1, 2):
        (root / "first.md").rename(tmp_path / "first.md")
        eventually(lambda time=time: len(watch.of("trouble")) == time, "the alarm is raised")
        assert "nothing was deleted" in (watch.lock.holder() or {})["trouble"]
        (tmp_path / "first.md").rename(root / "first.md")
        eventually(lambda time=time: len(watch.of("recovered")) == time, "the alarm ends")
        assert (watch.world.texts(), (watch.lock.holder() or {})["trouble"]) == (FIRST, "")
    assert watch.deleted() == 0


def test_a_lock_that_was_deleted_is_taken_again(root: Path, watch: Following) -> None:
    delete(root / ".notebook")
    eventually(lambda: watch.lock.holds(), "the lock is held again")
    watch.follows({"second.md": "second"})


def test_one_watcher_a_notebook(watch: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_sync.sync.watch._LOCK_SECONDS", 0.1)
    second = Watcher(lambda: watch.world.engine, FollowLock(watch.world.place))
    with pytest.raises(FollowLocked, match=f"process {os.getpid()}"):
        next(iter(second.events()))


# Names.


def test_a_name_that_is_not_utf8_is_reported_and_the_watcher_lives_on(root: Path, watch: Following) -> None:
    write(root, {os.fsdecode(b"caf\xe9.md"): "latin"})
    eventually(lambda: "caf\\xe9.md" in watch.failures(), "the name is reported")
    watch.follows({"second.md": "second"})


@pytest.mark.parametrize("above", [".venv", "node_modules", ".git"])
def test_a_notebook_below_a_folder_that_others_ignore(tmp_path: Path, following: Follow, above: str) -> None:
    with following(tmp_path / above) as watch:
        write(watch.root, {"node_modules/a.md": "a note like any other"})
        watch.becomes({"node_modules/a.md": "a note like any other"})


def test_gitignore_is_followed_and_attachments_too(root: Path, watch: Following) -> None:
    watch.follows({"second.md": "second"})
    write(root, {".gitignore": "second.md\n"})
    watch.becomes(FIRST)
    write(root, {".gitignore": ""})
    watch.becomes({**FIRST, "second.md": "second"})
    write(root, {"picture.png": "x"})
    eventually(lambda: watch.world.index.attachments.one("picture.png"), "the attachment is known")


# git.


def test_a_checkout_of_many_files(root: Path, following: Follow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_sync.sync.losses.SECOND_LOOK_MS", 0)
    monkeypatch.setattr("notebook_sync.sync.watch._TICK_SECONDS", 0.2)
    states: list[dict[str, str]] = []
    git(root, "init", "-q", "-b", "main")
    for state in range(2):
        for number in range(150):
            if state == 0 or number % 3:
                (root / f"{number}.md").write_text(f"{number} in state {state}")
            else:
                (root / f"{number}.md").unlink()
        git(root, "add", "*.md")
        git(root, "commit", "-q", "-m", f"{state}")
        git(root, "tag", f"state{state}")
        states.append({path.name: path.read_text() for path in root.glob("*.md")})
    with following() as watch:
        for state in (0, 1, 0):
            git(root, "checkout", "-q", f"state{state}")
            watch.watcher._next_full = 0.0
            eventually(lambda state=state: watch.world.texts().items() >= states[state].items(), "it follows")
            if state:
                watch.engine.look(None)
        watch.becomes(states[0])


# Trouble.


def test_trouble_is_reported_once_and_its_end_too(
    root: Path, following: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that does not answer keeps nothing back for good."""
    monkeypatch.setattr("notebook_sync.sync.watch._PAUSES", (0.02, 0.05))
    is_down = threading.Event()
    failed: list[int] = []
    look = engine_module.Sweep.run

    def failing(sweep: engine_module.Sweep) -> None:
        if is_down.is_set():
            failed.append(1)
            raise NotebookError("the disk is full")
        look(sweep)

    monkeypatch.setattr(engine_module.Sweep, "run", failing)
    with following() as watch:
        is_down.set()
        (root / "a.md").write_text("a")
        eventually(lambda: watch.of("trouble"), "the trouble is reported")
        eventually(lambda: len(failed) > 3, "it was tried again")
        (root / "b.md").write_text("b")
        is_down.clear()
        watch.becomes({**FIRST, "a.md": "a", "b.md": "b"})
        eventually(lambda: watch.of("recovered"), "the end is reported")
        assert [each["message"] for each in watch.of("trouble")] == ["the disk is full"]


def test_a_fault_of_a_file_is_reported_once(root: Path, watch: Following) -> None:
    (root / "bad.md").write_text("---\nid: [\n---\n")
    eventually(lambda: "bad.md" in watch.failures(), "the fault is reported")
    (root / "first.md").write_text("second")
    eventually(lambda: watch.world.texts()["first.md"] == "second", "others are followed")
    alone = [batch for batch in watch.of("batch") if batch["failed"] and "first.md" not in batch["paths"]]
    assert len(alone) == 1


# Hooks and work.


def test_hooks_get_the_paths_and_work_is_done_after_a_batch(root: Path, following: Follow) -> None:
    worked: list[int] = []

    def hook(paths: object) -> tuple[list[WatchEvent], float]:
        return ([WatchEvent("prompt", {"paths": paths})] if paths else []), 3600.0

    def work() -> tuple[list[WatchEvent], float]:
        worked.append(1)
        return [WatchEvent("published", {"mongodb": len(worked)})], 3600.0

    with following(hooks=[hook], work=work) as watch:
        write(root, {"a.md": "a"})
        eventually(lambda: [each["paths"] for each in watch.of("prompt")] == [["first.md"], ["a.md"]], "the hook")
        eventually(lambda: len(watch.of("published")) >= 2, "the work is done again")


def test_new_settings_are_followed(root: Path, watch: Following) -> None:
    assert watch.world.rows()["first.md"]["audience"] == ""
    (root / "notebook.toml").write_text('[[prompt.files]]\npath = "first.md"\n')
    watch.engine = watch.world.restarted(watch.world._other_index)
    eventually(lambda: watch.world.rows()["first.md"]["audience"] == "apart", "the audience follows")
