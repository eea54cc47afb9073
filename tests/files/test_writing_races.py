"""Ten thousand races of a person against an agent, and of links against writes: nothing is lost, nothing gets out."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notebook_sync.errors import NotebookError
from notebook_sync.files import beneath
from notebook_sync.files.disk import Disk
from notebook_sync.files.vault import Vault
from tests import forked
from tests.files.disks import UnsyncedDisk
from tests.files.racing import NOTE


def racer(*arguments: object) -> subprocess.Popen[str]:
    command = [*forked.command("tests.files.racing"), *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(forked.REPOSITORY)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def told(racer: subprocess.Popen[str]) -> dict[str, object]:
    output, _ = racer.communicate(timeout=120)
    assert racer.returncode == 0
    return dict(json.loads(output))


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one: a disk that is busy with something else makes for few races."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own in it
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as folder:
        yield Path(folder)


@pytest.mark.parametrize(
    ("kind", "edits"), [("rename_over", 3000), ("write_in_place", 3500), ("append", 1500), ("sed", 2000)]
)
def test_no_save_of_a_person_is_lost_to_an_agent_that_writes_all_the_time(quick: Path, kind: str, edits: int) -> None:
    (quick / NOTE).write_text("person 0\n" if kind == "sed" else "")
    person = racer("person", quick, kind)
    try:
        agent = told(racer("agent", quick, edits))
    finally:
        (quick / "stop").touch()
        saved = told(person)
    assert saved["lost"] == []
    assert saved["saves"]
    assert agent["made"]
    assert agent["conflicts"]
    assert {path.name for path in quick.iterdir()} == {NOTE, "stop"}


# Links against writes.

SECRET = b"not of this notebook\n"


@pytest.fixture(params=["openat2", "components"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "components":
        monkeypatch.setattr(beneath, "_openat2", None)


def folder_for_link(root: Path, outside: Path) -> None:
    """The note's folder is a link that leads out, and a folder again."""
    link = root / ".link"
    if not link.is_symlink():
        link.symlink_to(outside)
    fd = os.open(root, os.O_RDONLY)
    try:
        Disk().exchange(fd, "harbour", ".link")
        Disk().exchange(fd, "harbour", ".link")
    finally:
        os.close(fd)


def file_for_link(root: Path, outside: Path) -> None:
    """The note is a link that leads out, and a file again."""
    note = root / "harbour" / "a.md"
    link = root / "harbour" / "link"
    link.symlink_to(outside / "a.md")
    with contextlib.suppress(FileNotFoundError):  # the agent has just deleted it
        note.rename(root / "harbour" / "real")
    link.rename(note)
    with contextlib.suppress(FileNotFoundError):
        (root / "harbour" / "real").rename(note)


@contextlib.contextmanager
def swapping(swap: Callable[[Path, Path], None], root: Path, outside: Path) -> Iterator[None]:
    done = threading.Event()
    broken: list[BaseException] = []

    def run() -> None:
        try:
            while not done.is_set():
                swap(root, outside)
        except BaseException as error:
            broken.append(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    assert not broken


def state_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def changes(vault: Vault, number: int, seen: set[bytes]) -> None:
    """One of each kind, based on what is read."""
    path = "harbour/a.md"
    try:
        raw = vault.read(path)[0]
    except (FileNotFoundError, NotebookError):
        vault.write(path, b"anew\n", base=None)
        return
    seen.add(raw)
    base = hashlib.sha256(raw).hexdigest()
    if number % 4 == 0:
        vault.delete(path, base=base)
    elif number % 4 == 1:
        vault.rename(path, "harbour/b.md", base=base)
        vault.rename("harbour/b.md", path, base=base)
    else:
        vault.write(path, b"%d\n" % number, base=base)


def escapes(tmp_path: Path, swap: Callable[[Path, Path], None], is_over: Callable[[int], bool]) -> int:
    """Change a note until it is over while links come and go; how many changes were made. Nothing gets out."""
    root, outside = tmp_path / "notebook", tmp_path / "outside"
    (root / "harbour").mkdir(parents=True)
    outside.mkdir()
    for folder, raw in ((root / "harbour", b"first\n"), (outside, SECRET)):
        (folder / "a.md").write_bytes(raw)
    before = state_of(outside)
    vault = Vault(root)
    vault.disk = UnsyncedDisk()
    made = 0
    seen: set[bytes] = set()
    with swapping(swap, root, outside):
        for number in itertools.count():
            if is_over(number):
                break
            try:
                changes(vault, number, seen)
            except NotebookError:
                continue
            made += 1
    assert state_of(outside) == before
    assert SECRET not in seen
    return made


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("swap", [folder_for_link, file_for_link])
def test_no_write_and_no_read_follows_a_link_that_is_put_in_its_way(
    tmp_path: Path, swap: Callable[[Path, Path], None]
) -> None:
    assert escapes(tmp_path, swap, lambda number: number == 1500) > 0


@pytest.mark.soak
@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("swap", [folder_for_link, file_for_link])
def test_no_write_and_no_read_follows_a_link_for_a_minute(tmp_path: Path, swap: Callable[[Path, Path], None]) -> None:
    end = time.monotonic() + 60
    assert escapes(tmp_path, swap, lambda _: time.monotonic() > end) > 0
