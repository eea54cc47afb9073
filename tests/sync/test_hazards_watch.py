"""What a watcher misses, and what it must not take for an end: the notebook is followed all the same."""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.errors import WatchLocked
from notebook_sync.files.vault import Vault
from notebook_sync.sync.lock import WatchNote, watch_lock, watcher
from tests.sync.following import following
from tests.waiting import eventually

GIT = ("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notebook"
    folder.mkdir()
    (folder / "first.md").write_text("first")
    return folder


FIRST = {"first.md": "first"}


def delete(folder: Path) -> None:
    """All of a folder that a watch writes into meanwhile: what it made there since is deleted with it."""

    def deleted() -> bool:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
            return True
        return not folder.exists()

    eventually(deleted, f"{folder.name} is deleted")


def test_a_burst_that_overflows_the_queue_of_events(root: Path) -> None:
    count = 6000
    with following(root) as watch:

        def write(part: int) -> None:
            (root / f"d{part}" / "deep").mkdir(parents=True)
            for number in range(part, count, 4):
                (root / f"d{part}" / "deep" / f"{number}.md").write_text("x")

        writers = [threading.Thread(target=write, args=(part,)) for part in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        eventually(lambda: watch.notebook.mirror.counts()["notes"] == count + 1, "every file is mirrored", 120)


def test_a_tree_that_is_moved_in_at_once(root: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree" / "deep" / "er"
    tree.mkdir(parents=True)
    (tree / "a.md").write_text("a")
    (tree.parent / "b.md").write_text("b")
    with following(root) as watch:
        (tmp_path / "tree").rename(root / "tree")
        watch.becomes({**FIRST, "tree/deep/er/a.md": "a", "tree/deep/b.md": "b"})
        (root / "tree" / "deep" / "er" / "a.md").write_text("followed inside, too")
        watch.becomes({**FIRST, "tree/deep/er/a.md": "followed inside, too", "tree/deep/b.md": "b"})


def test_a_folder_that_is_moved_away(root: Path, tmp_path: Path) -> None:
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "e" / "a.md").write_text("a")
    with following(root) as watch:
        watch.becomes({**FIRST, "d/e/a.md": "a"})
        (root / "d").rename(tmp_path / "away")
        watch.becomes(FIRST)


def test_a_folder_that_is_renamed_keeps_its_notes_histories(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "a.md").write_text("---\nid: x\n---\nold")
    with following(root) as watch:
        (root / "d" / "a.md").write_text("---\nid: x\n---\nnew")
        watch.becomes({**FIRST, "d/a.md": "new"})
        (root / "d").rename(root / "e")
        watch.becomes({**FIRST, "e/a.md": "new"})
        document = watch.notebook.mirror.get("x")
        assert document is not None
        assert document["metadata"]["version"] == 2
        assert watch.deleted() == 0


def test_the_root_deleted_and_made_again_is_followed_again(root: Path) -> None:
    with following(root) as watch:
        delete(root)
        eventually(watch.troubles, "the loss of the folder is told")
        root.mkdir()
        (root / "second.md").write_text("second")
        watch.becomes({"second.md": "second"})
        (root / "third.md").write_text("third")
        watch.becomes({"second.md": "second", "third.md": "third"})
        assert watcher(root / ".notebook") is not None


def test_the_root_moved_away_and_back_loses_nothing(root: Path, tmp_path: Path) -> None:
    with following(root) as watch:
        root.rename(tmp_path / "elsewhere")
        eventually(watch.troubles, "the loss of the folder is told")
        (tmp_path / "elsewhere" / "second.md").write_text("written meanwhile")
        (tmp_path / "elsewhere").rename(root)
        watch.becomes({**FIRST, "second.md": "written meanwhile"})
        eventually(watch.recoveries, "the return is told")
        (root / "third.md").write_text("third")
        watch.becomes({**FIRST, "second.md": "written meanwhile", "third.md": "third"})
        assert watch.deleted() == 0


@pytest.mark.parametrize("lock_goes_first", [True, False])
def test_the_root_that_goes_away_while_it_is_looked_at_is_waited_for(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lock_goes_first: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    looks = iter([lock_goes_first, not lock_goes_first])
    still_held, identity = WatchNote.holds.fget, Vault.identity

    def moves() -> None:
        if next(looks, False):
            root.rename(elsewhere)

    def holds(note: WatchNote) -> bool:
        moves()
        return bool(still_held(note))

    def identify(vault: Vault) -> tuple[int, int]:
        found = identity(vault)
        moves()
        return found

    with following(root) as watch:
        monkeypatch.setattr(WatchNote, "holds", property(holds))
        monkeypatch.setattr(Vault, "identity", identify)
        eventually(watch.troubles, "the loss of the folder is told")
        (elsewhere / "second.md").write_text("written meanwhile")
        elsewhere.rename(root)
        watch.becomes({**FIRST, "second.md": "written meanwhile"})
        eventually(watch.recoveries, "the return is told")


def test_the_folder_that_goes_away_before_a_lost_lock_can_be_had_again_is_waited_for(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"

    @contextlib.contextmanager
    def moves_first(folder: Path) -> Iterator[WatchNote]:
        if not elsewhere.exists():
            root.rename(elsewhere)
        with watch_lock(folder) as note:
            yield note

    with following(root) as watch:
        monkeypatch.setattr("notebook_sync.sync.watch.watch_lock", moves_first)
        (root / ".notebook" / "watch.lock").unlink()
        eventually(watch.troubles, "the loss of the folder is told")
        monkeypatch.undo()
        elsewhere.rename(root)
        eventually(lambda: watcher(root / ".notebook"), "the lock is held again")
        eventually(watch.recoveries, "the return is told")
        watch.becomes(FIRST)


def test_an_emptied_root_suspends_deletions_each_time_and_recovers(root: Path, tmp_path: Path) -> None:
    with following(root) as watch:
        for time in (1, 2):
            (root / "first.md").rename(tmp_path / "first.md")
            eventually(lambda time=time: len(watch.troubles()) == time, "the alarm is raised")
            assert watch.texts() == FIRST
            told = watcher(root / ".notebook")
            assert told is not None
            assert "nothing was deleted" in told["trouble"]
            (tmp_path / "first.md").rename(root / "first.md")
            (root / ".gitignore").write_text(f"# {time}: makes the watcher look at everything")
            eventually(lambda time=time: len(watch.recoveries()) == time, "the alarm ends")
        assert watch.deleted() == 0


def test_a_watch_whose_lock_was_deleted_locks_again(root: Path) -> None:
    with following(root) as watch:
        delete(root / ".notebook")
        eventually(lambda: watcher(root / ".notebook"), "the lock is held again")
        (root / "second.md").write_text("second")
        watch.becomes({**FIRST, "second.md": "second"})


def test_a_name_that_is_not_utf8_is_reported_and_the_watcher_lives_on(root: Path) -> None:
    with following(root) as watch:
        Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.md")).write_text("latin")
        eventually(lambda: "caf\\xe9.md" in watch.failures(), "the name is reported")
        (root / "second.md").write_text("second")
        watch.becomes({**FIRST, "second.md": "second"})


@pytest.mark.parametrize("above", [".venv", "node_modules", ".git", "__pycache__", ".hidden"])
def test_a_notebook_below_a_folder_that_others_ignore(tmp_path: Path, above: str) -> None:
    root = tmp_path / above / "notebook"
    root.mkdir(parents=True)
    with following(root) as watch:
        (root / "node_modules").mkdir()
        (root / "node_modules" / "a.md").write_text("a note like any other")
        watch.becomes({"node_modules/a.md": "a note like any other"})


def test_what_an_event_does_not_tell_the_next_reconcile_finds(root: Path) -> None:
    """A write through a memory map sends no event."""
    with Notebook.open(root) as notebook:
        notebook.sync()
        with (root / "first.md").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            memory[:5] = b"FIRST"
        assert notebook.sync().updated == 1
        assert [document["content"] for document in notebook.mirror.documents()] == ["FIRST"]
        assert notebook.admin.verify().consistent


def test_gitignore_is_followed(root: Path) -> None:
    (root / "second.md").write_text("second")
    with following(root) as watch:
        watch.becomes({**FIRST, "second.md": "second"})
        (root / ".gitignore").write_text("second.md\n")
        watch.becomes(FIRST)
        (root / ".gitignore").write_text("")
        watch.becomes({**FIRST, "second.md": "second"})


def test_a_checkout_of_many_files(root: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run((*GIT, "-C", str(root), *arguments), check=True, capture_output=True)

    states: list[dict[str, str]] = []
    git("init", "-q", "-b", "main")
    for state in range(2):
        for number in range(300):
            if state == 0 or number % 3:
                (root / f"{number}.md").write_text(f"{number} in state {state}")
            else:
                (root / f"{number}.md").unlink()
        git("add", "*.md")
        git("commit", "-q", "-m", f"{state}")
        git("tag", f"state{state}")
        states.append({path.name: path.read_text() for path in root.glob("*.md")})
    with following(root) as watch:
        for state in (0, 1, 0):
            git("checkout", "-q", f"state{state}")
            watch.becomes(states[state])


def test_a_file_dated_in_the_future_does_not_keep_the_watcher_busy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    read = Vault.read_closely

    def counting(vault: Vault, path: str) -> object:
        reads.append(path)
        return read(vault, path)

    monkeypatch.setattr(Vault, "read_closely", counting)
    (root / "later.md").write_text("later")
    os.utime(root / "later.md", (2**32, 2**32))
    with following(root) as watch:
        watch.becomes({**FIRST, "later.md": "later"})
        for number in range(10):
            (root / "first.md").write_text(f"{number}")
            watch.becomes({"first.md": f"{number}", "later.md": "later"})
    assert reads.count("later.md") <= 5


def test_one_watcher_a_notebook(root: Path) -> None:
    with following(root), Notebook.open(root) as second, pytest.raises(WatchLocked, match=f"process {os.getpid()}"):
        next(iter(second.watch().events()))


def test_looking_for_the_watcher_does_not_keep_one_from_starting(tmp_path: Path) -> None:
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            watcher(tmp_path)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(200):
            with watch_lock(tmp_path):
                pass
    finally:
        done.set()
        asking.join()
