"""A folder of the notebook, opened to be written in: locked against other writers of this program, and cleared of
what a killed one left. It is held by its descriptor, so that a link put in its place later leads nobody astray.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from notebook_sync.errors import NotebookError, RootLost, UnsafePath
from notebook_sync.files.beneath import open_beneath
from notebook_sync.files.disk import Disk, inode
from notebook_sync.files.names import twin_of
from notebook_sync.folder import lock

LEFTOVER_SECONDS = 60.0
_LOCK_SECONDS = 30.0
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Hidden, so no walk takes them for notes. A `-new-` file is being filled. A `-swap-` file may hold what was at the
# note's path; the start of the digests of the two texts it is expected to hold is in its name.
_LEFTOVER = re.compile(r"\.notebook-(?:new|swap-(?P<base>[0-9a-f]{16}|)-(?P<new>[0-9a-f]{16}|))-[0-9a-f]{16}~")


def new_name() -> str:
    """A hidden name for a file that is being filled."""
    return f".notebook-new-{os.urandom(8).hex()}~"


def swap_name(base: str, new: str) -> str:
    """A hidden name for a file that trades places with a note; `base` and `new` are digests, "" for no file."""
    return f".notebook-swap-{base[:16]}-{new[:16]}-{os.urandom(8).hex()}~"


class Folder:
    """An open folder. `fd` stays the folder it was, wherever its path leads later."""

    def __init__(self, root_fd: int, path: str, fd: int, disk: Disk) -> None:
        self.path = path
        self.fd = fd
        self.disk = disk
        self._root_fd = root_fd

    def names(self) -> list[str]:
        return _names_in(self.fd)

    def is_in_place(self) -> bool:
        """Whether its path still leads to it."""
        try:
            fd = open_beneath(self._root_fd, self.path or ".", _FOLDER)
        except OSError:
            return False
        try:
            return inode(os.fstat(fd)) == inode(os.fstat(self.fd))
        finally:
            os.close(fd)


@contextlib.contextmanager
def opened(root: Path, path: str, disk: Disk, *, make: bool = False) -> Iterator[Folder]:
    """The folder at `path`, locked and clean. With `make`, folders that are missing are made, and are gone again when
    what was to stand in them is not written.

    Raises FileNotFoundError, UnsafePath, RootLost, NotebookError when other writers do not come to an end.
    """
    try:
        root_fd = os.open(root, _FOLDER)
    except OSError as error:
        raise RootLost(f"{root}: {error.strerror}; nothing can be written") from None
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, root_fd)
        if make:
            stack.enter_context(_made(root_fd, path, disk))
        fd = _open_folder(root_fd, path)
        stack.callback(os.close, fd)
        _lock(fd, path)
        _clear(fd, disk)
        yield Folder(root_fd, path, fd, disk)


@contextlib.contextmanager
def _made(root_fd: int, path: str, disk: Disk) -> Iterator[None]:
    made: list[tuple[int, str]] = []
    try:
        place = ""
        for name in path.split("/") if path else []:
            above, place = place, f"{place}/{name}" if place else name
            with contextlib.suppress(FileNotFoundError):
                os.close(_open_folder(root_fd, place))
                continue
            made.append((_open_folder(root_fd, above), name))
            _make(made[-1][0], name, place, disk)
        yield
    except BaseException:
        for fd, name in reversed(made):
            with contextlib.suppress(OSError):  # it was somebody else's, or somebody's note stands in it by now
                os.rmdir(name, dir_fd=fd)
        raise
    finally:
        for fd, _ in made:
            os.close(fd)


def _make(above: int, name: str, place: str, disk: Disk) -> None:
    if twin := twin_of(name, _names_in(above)):
        raise UnsafePath(place, f"{twin!r} is there, which some systems take for the same name")
    with contextlib.suppress(FileExistsError):
        disk.make_folder(above, name)
        disk.sync(above)


def _open_folder(root_fd: int, path: str) -> int:
    try:
        return open_beneath(root_fd, path or ".", _FOLDER)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.EXDEV}:
            raise UnsafePath(path, "reached through a symbolic link; links are not followed") from None
        if error.errno == errno.ENOTDIR:
            raise UnsafePath(path, "is a file, and no folder") from None
        raise


def _lock(fd: int, path: str) -> None:
    """Have the folder to ourselves, among the writers of this program: two that take back their writes at the same
    time could not tell whose is whose."""
    with contextlib.suppress(OSError):  # a file system without locks
        if lock(fd, _LOCK_SECONDS):
            return
        raise NotebookError(
            f"{path or '.'}: other programs keep writing in this folder; nothing was changed, try again"
        )


def _names_in(fd: int) -> list[str]:
    with os.scandir(fd) as listing:
        return [entry.name for entry in listing]


def _clear(fd: int, disk: Disk) -> None:
    """Remove what a killed writer left, except bytes that only a person can have written: those become a note."""
    for name in _names_in(fd):
        if name.startswith(".notebook-") and (found := _LEFTOVER.fullmatch(name)):
            with contextlib.suppress(OSError):
                left = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if stat.S_ISREG(left.st_mode) and time.time() - left.st_ctime > LEFTOVER_SECONDS:
                    _clear_one(fd, name, found, disk)


def _clear_one(fd: int, name: str, found: re.Match[str], disk: Disk) -> None:
    expected = {found["base"], found["new"]}
    if expected != {None}:
        with os.fdopen(disk.open(fd, name), "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest[:16] not in expected:
            disk.move(fd, name, fd, f"recovered-{os.urandom(4).hex()}.md")
            return
    disk.remove(fd, name)
