"""Writing many new notes into one folder: each whole or not at all, none over another, and all durable at the end.

One look at the folder and one sync serve all of them, which for each by itself would take longer the more there are.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from notebook_sync.errors import UnsafePath, UnwritableFile
from notebook_sync.files.disk import Disk
from notebook_sync.files.folder import Folder, new_name, opened
from notebook_sync.files.names import folded


def create_all(root: Path, above: str, notes: Mapping[str, bytes], disk: Disk) -> dict[str, os.stat_result]:
    """Write these notes, by name, into the folder `above`, which is made where it is missing: the files of those that
    were written. One whose name, or what some systems take for it, is there already is not.

    Raises UnwritableFile where the disk fails, and as `opened`; then none of them is there.
    """
    try:
        with opened(root, above, disk, make=True) as folder:
            return _created(folder, notes)
    except OSError as error:
        raise UnwritableFile(above, f"{error.strerror}".lower()) from None


def _created(folder: Folder, notes: Mapping[str, bytes]) -> dict[str, os.stat_result]:
    taken = {folded(name) for name in folder.names()}
    free = {}
    for name, raw in notes.items():
        if folded(name) not in taken:
            taken.add(folded(name))
            free[name] = raw
    with _filled(folder, free) as filled, contextlib.ExitStack() as undo:
        folder.disk.sync_all(folder.fd)
        written = {}
        for name, new in filled.items():
            undo.callback(_take_away, folder, name, new)
            with contextlib.suppress(FileExistsError):  # somebody made it meanwhile
                folder.disk.move(folder.fd, new.name, folder.fd, name)
                written[name] = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
        if not folder.is_in_place():
            raise UnsafePath(folder.path, "was moved away meanwhile")
        folder.disk.sync(folder.fd)
        undo.pop_all()
    return written


@dataclass(frozen=True, slots=True)
class _New:
    """A text under a hidden name, and its file as it was when it was written."""

    name: str
    found: os.stat_result

    def is_untouched_at(self, folder: Folder, name: str) -> bool:
        found = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
        return _marks(found) == _marks(self.found)


def _marks(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@contextlib.contextmanager
def _filled(folder: Folder, notes: Mapping[str, bytes]) -> Iterator[dict[str, _New]]:
    """The texts of notes under hidden names, which end with this."""
    filled: dict[str, _New] = {}
    with contextlib.ExitStack() as made:
        for name, raw in notes.items():
            hidden = new_name()
            made.callback(_remove, folder, hidden)
            fd = folder.disk.create(folder.fd, hidden, 0o644)
            try:
                folder.disk.write(fd, raw)
                filled[name] = _New(hidden, os.fstat(fd))
            finally:
                os.close(fd)
        yield filled


def _take_away(folder: Folder, name: str, new: _New) -> None:
    """Undo a creation, unless a person has written to the note."""
    with contextlib.suppress(OSError):
        if new.is_untouched_at(folder, name):
            folder.disk.remove(folder.fd, name)


def _remove(folder: Folder, name: str) -> None:
    with contextlib.suppress(OSError):
        folder.disk.remove(folder.fd, name)
