"""How editors write: nobody who reads the mirror meanwhile sees a deleted note or half a file."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from notebook_sync.errors import UnreadableFile
from notebook_sync.files.vault import Vault
from notebook_sync.sync.engine import Engine
from notebook_sync.sync.sweep import Outcome, Task
from tests.sync.following import every_state_of, following
from tests.waiting import eventually

OLD, NEW = "---\ntitle: A\n---\nold\n", "---\ntitle: A\n---\nnew\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "notebook"
    folder.mkdir()
    (folder / "other.md").write_text("other")
    (folder / "a.md").write_text(OLD)
    return folder


def vim(*options: str) -> Callable[[Path], None]:
    def save(path: Path) -> None:
        settings = [part for option in options for part in ("-c", f"set {option}")]
        subprocess.run(
            ["vim", "-u", "NONE", "-i", "NONE", "-es", *settings, "-c", "%s/old/new/", "-c", "wq", str(path)],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, "TERM": "dumb"},
        )

    return save


def sed(path: Path) -> None:
    subprocess.run(["sed", "-i", "s/old/new/", str(path)], check=True)


def truncate_then_write(path: Path) -> None:
    """VS Code, and every `open(path, "w")`: an empty file, then the text by one write. Of one that is written piece by
    piece, a piece is the text for as long as nobody goes on, which any busy machine may decide."""
    with path.open("w") as file:
        file.write(NEW)


def rename_away_then_create(path: Path) -> None:
    """Backups by renaming."""
    path.rename(path.with_name(path.name + "~"))
    path.write_text(NEW)
    path.with_name(path.name + "~").unlink()


def delete_then_create(path: Path) -> None:
    path.unlink()
    path.write_text(NEW)


def replace_through_a_temporary_file(path: Path) -> None:
    beside = path.with_name("a.md.tmp")
    beside.write_text(NEW)
    beside.replace(path)


needs_vim = pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")


@pytest.mark.parametrize(
    "save",
    [
        pytest.param(vim("swapfile", "backup", "backupcopy=no"), marks=needs_vim, id="vim, renaming"),
        pytest.param(vim("swapfile", "backup", "backupcopy=yes"), marks=needs_vim, id="vim, copying"),
        pytest.param(vim("swapfile", "nobackup", "backupcopy=auto"), marks=needs_vim, id="vim, as it likes"),
        sed,
        truncate_then_write,
        rename_away_then_create,
        delete_then_create,
        replace_through_a_temporary_file,
    ],
)
def test_a_save_is_one_change_of_one_note(root: Path, save: Callable[[Path], None]) -> None:
    with following(root) as watch:
        with every_state_of(root, "a.md") as seen:
            eventually(lambda: seen == {"old\n"}, "the old text is seen")
            save(root / "a.md")
            watch.becomes({"a.md": "new\n", "other.md": "other"})
            eventually(lambda: "new\n" in seen, "the new text is seen")
        assert seen == {"old\n", "new\n"}
        assert watch.deleted() == 0
        assert {path.name for path in root.iterdir() if path.suffix == ".md"} == {"a.md", "other.md"}


@pytest.mark.parametrize("pause_after", [0, 5, len("---\ntitle: A\n")])
def test_a_writer_that_pauses_shows_no_half_file(root: Path, pause_after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause ends once the watcher has looked at the half file, which is well before the settle time has passed."""
    looked = threading.Event()
    with following(root) as watch:
        look = Engine.look

        def noticing(engine: Engine, task: Task, outcome: Outcome | None = None) -> Outcome:
            try:
                return look(engine, task, outcome)
            finally:
                looked.set()

        monkeypatch.setattr(Engine, "look", noticing)
        with every_state_of(root, "a.md") as seen:
            eventually(lambda: seen == {"old\n"}, "the old text is seen")
            looked.clear()
            with (root / "a.md").open("w") as file:
                file.write(NEW[:pause_after])
                file.flush()
                assert looked.wait(30)
                file.write(NEW[pause_after:])
            watch.becomes({"a.md": "new\n", "other.md": "other"})
            eventually(lambda: "new\n" in seen, "the new text is seen")
        assert seen == {"old\n", "new\n"}
        assert watch.deleted() == 0


def test_a_file_that_stays_empty_is_mirrored_empty(root: Path) -> None:
    with following(root) as watch:
        (root / "a.md").write_text("")
        watch.becomes({"a.md": "", "other.md": "other"})


def test_every_read_is_one_of_the_versions_that_were_written(tmp_path: Path) -> None:
    reads = int(os.environ.get("NOTEBOOK_TEST_READS", "1500"))
    size = 200_000
    versions = [bytes([letter]) * size for letter in b"abcd"]
    path = tmp_path / "a.md"
    path.write_bytes(versions[0])
    done = threading.Event()

    def write() -> None:
        fd = os.open(path, os.O_WRONLY)
        try:
            while not done.is_set():
                for version in versions:
                    os.pwrite(fd, version, 0)
        finally:
            os.close(fd)

    writer = threading.Thread(target=write)
    writer.start()
    vault = Vault(tmp_path)
    torn = refused = 0
    try:
        for _ in range(reads):
            try:
                raw, _ = vault.read("a.md")
            except UnreadableFile:
                refused += 1
                continue
            torn += raw not in versions
    finally:
        done.set()
        writer.join()
    assert torn == 0
    assert refused < reads
