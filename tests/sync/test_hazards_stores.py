"""Stores that fail at any operation, processes that are killed at any moment, and two that do the same work at once."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

import pytest

from notebook_sync import Notebook
from notebook_sync.embedded import Embedded
from notebook_sync.errors import BackendDown, UnreadableFile
from notebook_sync.mirror.base import Mirror, Put
from notebook_sync.sync.sweep import Task
from tests import forked
from tests.sync.faults import Crash, raising
from tests.sync.world import World
from tests.waiting import eventually


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with patch("notebook_sync.sync.engine.sleep"):
        made = World(tmp_path, batch=2)
        yield made
        made.close()


def change_everything(world: World) -> None:
    """From a synced notebook, one change of each kind."""
    for name in ("kept", "edited", "gone", "broken"):
        world.write(f"{name}.md", f"---\nid: {name}\n---\n{name}".encode())
    world.write("moved.md", b"moves by its bytes")
    world.write("one.md", b"---\nid: x\n---\none")
    world.write("two.md", b"---\nid: x\n---\ntwo")
    world.reconcile()
    world.write("edited.md", b"---\nid: edited\n---\nedited again")
    world.write("broken.md", b"---\nid: [\n---\n")
    world.delete("gone.md")
    world.rename("moved.md", "d/moved.md")
    world.delete("one.md")
    world.write("new.md", b"new")


@pytest.mark.parametrize(
    ("error", "after"),
    [
        pytest.param(BackendDown("SQLite (embedded)", "told to"), False, id="down-before its effect"),
        pytest.param(BackendDown("SQLite (embedded)", "told to"), True, id="down-after its effect"),
        # After its effect is before the next one's: a crash leaves nothing that could be told of it.
        pytest.param(Crash(), False, id="crash"),
    ],
)
def test_a_failure_at_any_store_operation_is_repaired_by_the_next_sync(
    tmp_path: Path, error: BaseException, after: bool
) -> None:
    with patch("notebook_sync.sync.engine.sleep"):
        for at in range(1, 1000):
            folder = tmp_path / str(at)
            folder.mkdir()
            world = World(folder, batch=2)
            change_everything(world)
            world.fuse.set(raising(error), at=at, after=after)
            try:
                world.engine.reconcile(Task(allow_empty=True))
                if world.fuse.is_set:
                    break
            except (BackendDown, Crash):
                pass
            world.engine = world.restarted()
            world.check()
            world.close()
            shutil.rmtree(folder)
        world.check()
        world.close()
    assert at > 20


@pytest.mark.parametrize("message", ["database or disk is full", "disk I/O error"])
def test_a_disk_that_fails_at_any_statement_leaves_each_row_old_or_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    """Every statement of the embedded store fails once, inside a transaction or outside."""
    left = [0]

    class Failing(sqlite3.Connection):
        def _spend(self) -> None:
            left[0] -= 1
            if left[0] == 0:
                raise sqlite3.OperationalError(message)

        def execute(self, *arguments: object) -> sqlite3.Cursor:  # type: ignore[override]
            self._spend()
            return super().execute(*arguments)  # type: ignore[arg-type]

        def commit(self) -> None:
            self._spend()
            super().commit()

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **kwargs: connect(*args, factory=Failing, **kwargs))
    with patch("notebook_sync.sync.engine.sleep"):
        at, failed = 1, True
        while failed:
            folder = tmp_path / str(at)
            folder.mkdir()
            world = World(folder)
            change_everything(world)
            left[0] = at
            try:
                world.engine.reconcile(Task(allow_empty=True))
                failed = False
            except BackendDown as error:
                failed = message in str(error)
            left[0] = 0
            world.check()
            world.close()
            shutil.rmtree(folder)
            at += 3
    assert at > 30


def test_the_embedded_file_deleted_while_it_is_open_is_made_anew(world: World) -> None:
    world.write("a.md", b"a")
    world.check()
    for file in world.store_path.parent.glob("mirror.db*"):
        file.unlink()
    world.check()
    assert [row.path for row in world.mirror.known()] == ["a.md"]
    assert world.store_path.exists()


def test_the_embedded_file_is_not_made_where_the_notebook_is_gone(tmp_path: Path) -> None:
    (tmp_path / "notebook" / ".notebook").mkdir(parents=True)
    store = Embedded(tmp_path / "notebook" / ".notebook" / "mirror.db", "CREATE TABLE IF NOT EXISTS t (n);")
    shutil.rmtree(tmp_path / "notebook")
    with pytest.raises(BackendDown):
        store.rows("SELECT * FROM t")
    assert not (tmp_path / "notebook").exists()
    (tmp_path / "notebook").mkdir()
    assert store.rows("SELECT * FROM t") == []
    store.close()


def test_a_note_that_the_store_cannot_hold_fails_and_the_others_go_on(world: World) -> None:
    world.write("good.md", b"good")
    world.write("huge.md", b"fits")
    world.check()
    apply = world.mirror.apply

    def refusing(writes: list[Put]) -> list[Put]:
        rest = [write for write in writes if not (isinstance(write, Put) and write.note.path == "huge.md")]
        lost = apply(rest)
        if rest != list(writes):
            raise UnreadableFile("huge.md", "17 MB, the store holds 16 MB")
        return lost  # type: ignore[return-value]

    world.mirror.apply = refusing  # type: ignore[assignment, method-assign]
    world.write("huge.md", b"does not fit")
    world.write("good.md", b"better")
    report = world.engine.reconcile()
    assert (report.updated, report.failed) == (1, {"huge.md": "17 MB, the store holds 16 MB"})
    stale = {row.path: row.stale for row in world.mirror.known()}
    assert stale == {"good.md": "", "huge.md": "17 MB, the store holds 16 MB"}
    del world.mirror.apply  # type: ignore[method-assign]
    world.check()


def test_a_file_that_changes_while_it_is_written_to_the_mirror_is_looked_at_again(world: World) -> None:
    world.write("a.md", b"first")
    apply = world.mirror.apply
    later = [b"second", b"third"]

    def slow(writes: list[Put]) -> list[Put]:
        lost = apply(writes)
        if later and any(isinstance(write, Put) for write in writes):
            world.replace("a.md", later.pop(0))
        return lost  # type: ignore[return-value]

    world.mirror.apply = slow  # type: ignore[assignment, method-assign]
    world.engine.look(Task(frozenset({"a.md"})))
    assert [document["content"] for document in world.mirror.documents()] == ["third"]


def interleaved(world: World, act: Callable[[], object]) -> None:
    """Run `act` before every single store operation of one sync, each time in a notebook that was just changed."""
    for at in range(1, 40):
        world.write("a.md", f"---\nid: x\n---\n{at}".encode())
        world.meanwhile(act, at)
        world.reconcile()
        world.check()


def test_another_process_that_syncs_in_between_leaves_no_old_ref(world: World) -> None:
    def edit_and_sync() -> None:
        world.write("a.md", b"---\nid: x\n---\nedited meanwhile")
        world.other_reconciles()

    interleaved(world, edit_and_sync)


def test_another_process_that_deletes_in_between_leaves_no_ref(world: World) -> None:
    def delete_and_sync() -> None:
        world.delete("a.md")
        world.other_reconciles()

    interleaved(world, delete_and_sync)


def test_two_processes_that_adopt_an_emptied_hot_memory_at_once_lose_no_ref(world: World) -> None:
    def empty_and_sync() -> None:
        world.lose_refs()
        world.write("b.md", b"written meanwhile")
        world.other_reconciles()

    interleaved(world, empty_and_sync)


SYNC_ON = """
import sys
from notebook_sync import Notebook
notebook = Notebook.open(sys.argv[1])
while True:
    notebook.sync(allow_empty=True)
"""


def test_a_process_killed_at_any_moment_leaves_what_the_next_sync_repairs(tmp_path: Path) -> None:
    chance = random.Random(5)
    root = tmp_path / "notebook"
    root.mkdir()
    for kill in range(8):
        for number in range(60):
            (root / f"{number}.md").write_text(f"---\nid: n{(number + kill) % 60}\n---\n{kill}")
        process = syncing(root)
        database = root / ".notebook" / "mirror.db"
        eventually(database.exists, "it has begun")
        size = database.with_name("mirror.db-wal")
        # Somewhere in the middle of its work, told by how much it has written.
        until = chance.randrange(1, 200) * 1000
        eventually(lambda size=size, until=until: size.exists() and size.stat().st_size > until, "it writes", 10)
        process.send_signal(signal.SIGKILL)
        process.wait()
        with Notebook.open(root) as notebook:
            notebook.sync()
            assert notebook.admin.verify().consistent
            assert notebook.mirror.pending() == []
            assert list(root.rglob("*.tmp")) == []


def test_two_processes_that_sync_the_same_edits_at_once_count_each_once(tmp_path: Path) -> None:
    root = tmp_path / "notebook"
    root.mkdir()
    with Notebook.open(root) as notebook:
        (root / "a.md").write_text("0")
        notebook.sync()
        processes = [syncing(root) for _ in range(2)]
        try:
            for number in range(1, 31):
                (root / "a.md").write_text(f"{number}")
                eventually(lambda number=number: version(notebook.mirror) == number + 1, f"edit {number} is mirrored")
        finally:
            for process in processes:
                process.kill()
                process.wait()
        notebook.sync()
        assert notebook.admin.verify().consistent
        document = notebook.mirror.get("a")
        assert document is not None
        assert document["metadata"]["version"] == 31
        assert [crumb["version"] for crumb in document["history"]] == list(range(1, 32))


def syncing(root: Path) -> subprocess.Popen[bytes]:
    """A process that syncs without end."""
    environment = {**os.environ, "PYTHONPATH": str(forked.REPOSITORY)}
    return subprocess.Popen([*forked.python_command(), SYNC_ON, str(root)], env=environment)


def version(mirror: Mirror) -> int:
    (row,) = mirror.known()
    return row.version


def test_a_new_embedded_file_is_opened_by_many_threads_at_once(tmp_path: Path) -> None:
    def open_and_close(number: int) -> None:
        Embedded(tmp_path / f"{number // 8}.db", "CREATE TABLE IF NOT EXISTS note (id);").close()

    with ThreadPoolExecutor(8) as threads:  # about one file in thirty had one open refused
        list(threads.map(open_and_close, range(8 * 400)))


def test_two_threads_of_one_process_lose_nothing(tmp_path: Path) -> None:
    root = tmp_path / "notebook"
    root.mkdir()
    for number in range(100):
        (root / f"{number}.md").write_text(f"{number}")

    def sync(_: int) -> None:
        with Notebook.open(root) as notebook:
            notebook.sync()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(sync, range(4)))
    with Notebook.open(root) as notebook:
        assert notebook.admin.verify().consistent
        assert {row.version for row in notebook.mirror.known()} == {1}
