"""Locks on notes, held by one tool writer among all processes, so that each write becomes one version.

No text is lost without them: each write names the digest it replaces. Where files cannot be locked, writes go on.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from notebook_sync.errors import Refused
from notebook_sync.folder import lock, open_private

FOLDER = "locks"
TIMEOUT_SECONDS = 30.0
# Notes share lock files by the hash of their path; a file for each note would leave as many files as notes.
_FILES = 64


class NoteLocks:
    """The locks of one notebook, for any number of threads; `folder` is its `.notebook`.

    The system frees a lock when its process ends.
    """

    def __init__(self, folder: Path, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._folder = folder / FOLDER
        self._timeout = timeout
        self._thread = _Held()

    @contextmanager
    def hold(self, paths: Collection[str]) -> Iterator[None]:
        """Keep other tool writers from the notes at these paths. A thread may hold a lock more than once.

        Raises Refused where another writer still holds one after the timeout.
        """
        held = self._thread.descriptors
        wanted = {_file_of(path): path for path in paths if _file_of(path) not in held}
        deadline = time.monotonic() + self._timeout
        try:
            for name in sorted(wanted):  # the same order for everyone, so that no two wait for each other
                with suppress(OSError):
                    # flock belongs to the open file, so threads wait for each other as processes do.
                    held[name] = open_private(self._folder / name)
                    self._lock(held[name], deadline, wanted[name], self._folder / name)
            yield
        finally:
            for name in wanted.keys() & held.keys():
                os.close(held.pop(name))

    def releaser(self) -> Callable[[], None]:
        """A function that releases all locks of the calling thread; another thread may call it while this one waits."""
        held = self._thread.descriptors

        def release() -> None:
            while held:
                os.close(held.popitem()[1])

        return release

    def _lock(self, fd: int, deadline: float, path: str, file: Path) -> None:
        if not lock(fd, deadline - time.monotonic()):
            raise Refused(
                f"{path} was locked by another writer for {self._timeout:g} seconds; nothing was changed. "
                f"Try again; if it stays locked, find the process with `lsof {file}` and stop it"
            )


class _Held(threading.local):
    """The open lock files of a thread, by name."""

    def __init__(self) -> None:
        self.descriptors: dict[str, int] = {}


def _file_of(path: str) -> str:
    return f"{sha256(path.encode('utf-8', 'surrogateescape')).digest()[0] % _FILES:02d}"
