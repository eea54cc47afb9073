"""`.notebook`, the program's own folder: never in git, and for its owner alone. Without it everything is made again but
what the docs list, such as the versions that `trust` accepted.

Everything in it is made here, readable to nobody else: folders with mode 0700, files with mode 0600.
"""

from __future__ import annotations

import fcntl
import os
import random
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from notebook_sync.errors import NotebookError

FOLDER = ".notebook"
_OTHERS = 0o077
_LONGEST_PAUSE_SECONDS = 0.01


def make_folder(folder: Path) -> None:
    """Make `.notebook` or a folder in it, and hide it from git, where it is not there. Raises OSError."""
    if FOLDER in folder.parent.parts:
        make_folder(folder.parent)
    folder.mkdir(0o700, exist_ok=True)
    if folder.name == FOLDER and not (folder / ".gitignore").exists():
        replace_private(folder / ".gitignore", b"*\n")


def open_private(path: Path, flags: int = 0) -> int:
    """A descriptor for reading and writing a file in `.notebook`, made with its folders where it is not there.

    Raises OSError."""
    flags |= os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with suppress(FileNotFoundError):
        return os.open(path, flags, 0o600)
    make_folder(path.parent)
    return os.open(path, flags, 0o600)


@contextmanager
def opened_private(path: Path, need: str) -> Iterator[int]:
    """`open_private` for a `with`. Raises NotebookError, which ends with `need`, where the file cannot be opened."""
    try:
        fd = open_private(path)
    except OSError as error:
        raise NotebookError(f"{path}: {error.strerror}; {need}") from None
    try:
        yield fd
    finally:
        os.close(fd)


def attempts(seconds: float) -> Iterator[None]:
    """One attempt, and more for so many seconds, with pauses of random length: nobody is always late."""
    deadline = time.monotonic() + seconds
    yield
    while time.monotonic() < deadline:
        time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS))  # noqa: S311  # no secret
        yield


def lock(fd: int, seconds: float = 0.0) -> bool:
    """Lock an open file or folder until it is closed; False where another descriptor still holds it after `seconds`.

    Raises OSError on a file system without locks."""
    for _ in attempts(seconds):
        with suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


def replace_private(path: Path, raw: bytes, *, durably: bool = False) -> None:
    """Give a file in `.notebook` this content in one step; its folder is there. Raises OSError, and leaves nothing."""
    fd, temporary = tempfile.mkstemp(dir=path.parent)  # with mode 0600 from its first moment
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(raw)
            if durably:
                file.flush()
                os.fsync(fd)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def make_private(folder: Path) -> list[Path]:
    """Close `.notebook` to other users; what they could open until now. Links are left alone. Raises OSError."""
    with suppress(FileNotFoundError):
        return list(_closed(folder, is_top=True))
    return []


def _closed(place: Path, *, is_top: bool = False) -> Iterator[Path]:
    found = place.lstat()
    is_folder, is_open = stat.S_ISDIR(found.st_mode), bool(found.st_mode & _OTHERS)
    if stat.S_ISLNK(found.st_mode):
        return
    if is_open:
        place.chmod(0o700 if is_folder else 0o600)
        yield place
    # What is in a folder that was closed before, nobody else could open.
    for inner in place.iterdir() if is_folder and (is_open or is_top) else ():
        with suppress(FileNotFoundError):  # a temporary file of another process
            yield from _closed(inner)
