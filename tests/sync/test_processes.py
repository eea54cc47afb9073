"""Several processes, and processes that end at any moment: the index ends with what is on disk (laws 6, 7)."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from notebook_sync.store.rows import Is
from notebook_sync.sync import readers
from tests.files.notebooks import write
from tests.processes import start_process
from tests.sync.conftest import Follow
from tests.sync.world import World

HEAD = "---\nid: x\n---\n"


def die_at_every_step(folder: Path) -> None:
    """Sync in forks of this process, each of which is killed at another change of the index; after each, this process
    syncs again, and files and index agree."""
    world = World(folder)
    for step in count(1):
        texts = {"a.md": f"{HEAD}# {step}\n", "facts/notes.md": f"- The ferry leaves at {step}\n"}
        write(world.root, {**texts, f"new/{step}.md": f"new {step}"})
        world.rename(f"new/{step - 1}.md", f"moved/{step - 1}.md")
        world.delete(f"moved/{step - 2}.md")
        world.close()  # SQLite must not be carried into a fork
        child = os.fork()
        if not child:
            dying = World(folder)
            dying.fuse.set(lambda: os.kill(os.getpid(), signal.SIGKILL), at=step, only_changes=True)
            dying.engine.sync()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        world = World(folder)
        world.check()
        assert world.rows()["a.md"]["version"] == step
        if status == 0:
            world.close()
            assert step > 20
            return
        assert os.WTERMSIG(status) == signal.SIGKILL


def save_and_look(folder: Path, name: str) -> None:
    world = World(folder)
    for number in range(40):
        world.replace("a.md", f"{name} {number}".encode())
        world.engine.look(["a.md"])


def test_a_process_killed_at_any_step_leaves_what_the_next_one_completes(tmp_path: Path) -> None:
    write(tmp_path, {"notebook/good.md": "good"})
    process = start_process(die_at_every_step, tmp_path)
    process.join(120)
    assert process.exitcode == 0


def test_two_processes_save_and_look_at_one_path(world: World, tmp_path: Path) -> None:
    world.sync()
    processes = [start_process(save_and_look, tmp_path, name) for name in ("one", "two")]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    # The last look read the file after the last save, or has noted that it must be read again.
    world.check()
    row = world.rows()["a.md"]
    crumbs = world.index.history.find(Is("note", "=", "a"), order=("version",))
    assert crumbs[-1]["version"] == row["version"]


def test_a_follower_and_a_tool_apply_the_same_change_once(tmp_path: Path, following: Follow) -> None:
    write(tmp_path, {"notebook/good.md": "good"})
    with following() as watch:
        for number in range(30):
            watch.world.replace("good.md", f"text {number}".encode())
            watch.world.engine.look(["good.md"])
        watch.becomes({"good.md": "text 29"})
        assert watch.world.rows()["good.md"]["version"] <= 31
        versions = [row["version"] for row in watch.world.index.history.find(order=("version",))]
        assert len(versions) == len(set(versions))


# Readers.


@pytest.fixture
def always_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read by another process, however few they are."""
    monkeypatch.setattr(readers, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.mark.usefixtures("always_readers")
def test_orders_larger_than_a_pipe_are_carried_out(tmp_path: Path) -> None:
    files = {f"{'f' * 80}/{'g' * 80}/{number:04}.md": f"note {number}" for number in range(850)}
    with closing(World(tmp_path, batch=425)) as world:
        write(world.root, {**files, "bad.md": b"\xff\xfe"})
        reading = threading.Thread(target=world.other.sync, daemon=True)
        reading.start()
        reading.join(90)
        assert (reading.is_alive(), world.index.documents.count()) == (False, 851)
        assert {path.split("/")[-1] for path in world.engine.sync().faults} == {"bad.md"}
        assert world.other.verify().differences == []


@pytest.mark.usefixtures("always_readers")
def test_a_reader_that_dies_is_replaced_by_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = readers._start

    def dying(*orders: object) -> subprocess.Popen[bytes]:
        process = start(*orders)  # type: ignore[arg-type]
        process.kill()
        return process

    monkeypatch.setattr(readers, "_start", dying)
    with closing(World(tmp_path, batch=2)) as world:
        write(world.root, {f"{number}.md": f"{number}" for number in range(9)})
        assert world.other.sync().added == 9


@pytest.mark.usefixtures("always_readers")
def test_nothing_of_the_folder_it_is_started_in_is_run(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = ("hashlib.py", "notebook_sync.py", "sitecustomize.py", "yaml.py")
    write(world.root, dict.fromkeys(modules, f"open({str(tmp_path / 'pwned')!r}, 'w')\n"))
    monkeypatch.chdir(world.root)
    monkeypatch.setattr(sys, "path", [*sys.path, ""])
    assert (world.other.sync().added, (tmp_path / "pwned").exists()) == (1, False)
