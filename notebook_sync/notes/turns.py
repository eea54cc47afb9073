"""Whose turn it is to change a note, among all tool writers of all processes: each write becomes one version.

Politeness, not safety: that nobody's text is lost is for the exchange by digest to see to. A turn that cannot be had,
or not in time, is gone without.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from notebook_sync.folder import make_folder

FOLDER = "turns"
PATIENCE_SECONDS = 10.0
# Notes that fall to the same file wait for each other; a file for each would leave as many behind as there are notes.
_FILES = 64


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
        # In the same order by everybody, so that no two wait for each other.
        wanted = sorted({_file_of(path) for path in paths} - self._mine.names)
        deadline = time.monotonic() + self._patience
        taken: list[int] = []
        try:
            for name in wanted:
                with contextlib.suppress(OSError):
                    fd = self._opened(name)
                    if _Queueing(fd).is_first_within(deadline - time.monotonic()):
                        taken.append(fd)
            self._mine.names |= set(wanted)
            yield
        finally:
            self._mine.names -= set(wanted)
            for fd in taken:
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
    """The turns that this thread has, or goes without."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()


def _file_of(path: str) -> str:
    return f"{sha256(path.encode('utf-8', 'surrogateescape')).digest()[0] % _FILES:02d}"


class _Queueing:
    """One that wants to lock what was opened. It stands in the system's own queue, where who came first is first, and
    which nobody can leave: where it is out of patience, a thread stays there in its place, and then lets go."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._deciding = threading.Lock()
        self._is_done = threading.Event()
        self._has_left = False

    def is_first_within(self, seconds: float) -> bool:
        """Whether it is locked, or cannot be; if not, what was opened is no longer the caller's."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            threading.Thread(target=self._wait, name="turn", daemon=True).start()
        except OSError:
            return True
        else:
            return True
        try:
            return self._is_done.wait(seconds) or self._leave()
        except BaseException:
            if self._leave():
                os.close(self._fd)
            raise

    def _leave(self) -> bool:
        """Wait no longer; whether that comes too late."""
        with self._deciding:
            self._has_left = True
            return self._is_done.is_set()

    def _wait(self) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        with self._deciding:
            if self._has_left:
                os.close(self._fd)
            else:
                self._is_done.set()
