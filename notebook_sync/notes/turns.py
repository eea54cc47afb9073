"""Whose turn it is to change a note, among all tool writers of all processes: each write becomes one version.

Politeness, not safety: that nobody's text is lost is for the exchange by digest to see to. A turn that cannot be had,
or not in time, is gone without.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from notebook_sync.folder import make_folder

FOLDER = "turns"
PATIENCE_SECONDS = 10.0
# Turns that others give up so soon are a queue that moves, and count against nobody's patience, up to a limit.
_SOON_SECONDS = 1.0
_LONGEST_SECONDS = 60.0
# Notes that fall to the same file wait for each other; many files would be left behind by many notes.
_FILES = 64
_POLL_SECONDS = (0.001, 0.01)
_MARK_BYTES = 8


class Turns:
    """The turns of one notebook, for any number of threads; `folder` is its `.notebook`."""

    def __init__(self, folder: Path, *, patience: float = PATIENCE_SECONDS) -> None:
        self._own = folder
        self._folder = folder / FOLDER
        self._patience = patience
        self._mine = _Mine()

    @contextmanager
    def of(self, paths: Collection[str]) -> Iterator[None]:
        """Keep other tool writers from the notes at these paths meanwhile; a thread may take a turn that it has."""
        taken: dict[str, int] = {}
        try:
            # In the same order by everybody, so that no two wait for each other.
            for name in sorted({_file_of(path) for path in paths} - self._mine.names):
                with contextlib.suppress(OSError):
                    taken[name] = self._opened(name)
                    _lock(taken[name], self._patience)
            self._mine.names |= taken.keys()
            yield
        finally:
            self._mine.names -= taken.keys()
            for fd in taken.values():
                os.close(fd)

    def _opened(self, name: str) -> int:
        # Opened anew each time: a lock belongs to what was opened, so threads wait for each other like processes.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(FileNotFoundError):
            return os.open(self._folder / name, flags, 0o600)
        make_folder(self._own)
        self._folder.mkdir(exist_ok=True)
        return os.open(self._folder / name, flags, 0o600)


class _Mine(threading.local):
    """The turns that this thread has."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()


def _file_of(path: str) -> str:
    return f"{sha256(path.encode('utf-8', 'surrogateescape')).digest()[0] % _FILES:02d}"


def _lock(fd: int, patience: float) -> None:
    """Lock what was opened, and mark it as taken anew: whoever waits sees that the queue moves."""
    began = moved = time.monotonic()
    mark = os.pread(fd, _MARK_BYTES, 0)
    shortest, longest = _POLL_SECONDS
    pause = shortest
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now = time.monotonic()
            if (newer := os.pread(fd, _MARK_BYTES, 0)) != mark:
                patience += now - moved if now - moved < _SOON_SECONDS else 0.0
                mark, moved = newer, now
            if now - began >= min(patience, _LONGEST_SECONDS):
                return
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - keeps pollers apart, guards nothing
            pause = min(pause * 1.5, longest)
        else:
            os.pwrite(fd, os.urandom(_MARK_BYTES), 0)
            return
