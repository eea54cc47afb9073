"""Whose turn it is to change a note, among all tool writers of all processes: each write becomes one version.

Politeness, not safety: that nobody's text is lost is for the exchange by digest to see to. A turn that cannot be had,
or not as long as one other has it, is gone without.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from notebook_sync.folder import make_folder

FOLDER = "turns"
PATIENCE_SECONDS = 10.0
# Who still stand in the system's queue without wanting the turn any more. A holder that hangs for hours, and writers
# that come all the while, would cost a thread and a descriptor each.
_MOST_LEFT = 8
# Notes that fall to the same file wait for each other; a file for each would leave as many behind as there are notes.
_FILES = 64
_MARK_BYTES = 8


class Turns:
    """The turns of one notebook, for any number of threads; `folder` is its `.notebook`."""

    def __init__(self, folder: Path, *, patience: float = PATIENCE_SECONDS) -> None:
        self._own = folder
        self._folder = folder / FOLDER
        self._patience = patience
        self._mine = _Mine()
        self._left = _Left()

    @contextmanager
    def of(self, paths: Collection[str]) -> Iterator[None]:
        """Keep other tool writers from the notes at these paths meanwhile; a thread may take a turn that it has."""
        # In the same order by everybody, so that no two wait for each other.
        wanted = sorted({_file_of(path) for path in paths} - self._mine.names)
        deadline = time.monotonic() + self._patience
        taken = _Taken()
        try:
            for name in wanted:
                with contextlib.suppress(OSError):
                    fd = self._opened(name)
                    if _Queueing(fd, self._left).is_first_within(deadline - time.monotonic()):
                        taken.add(fd)
                        deadline = time.monotonic() + self._patience
                        _mark(fd)
            self._mine.names |= set(wanted)
            self._mine.taken = (*self._mine.taken, taken)
            yield
        finally:
            self._mine.names -= set(wanted)
            self._mine.taken = tuple(one for one in self._mine.taken if one is not taken)
            taken.give_up()

    def mine(self) -> Callable[[], None]:
        """What gives up the turns that this thread has, from whatever thread. This one goes on without them."""
        taken = self._mine.taken

        def give_up() -> None:
            for one in taken:
                one.give_up()

        return give_up

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
        self.taken: tuple[_Taken, ...] = ()


class _Taken:
    """Locks that are had, and given up once."""

    def __init__(self) -> None:
        self._fds: list[int] = []
        self._lock = threading.Lock()

    def add(self, fd: int) -> None:
        self._fds.append(fd)

    def give_up(self) -> None:
        with self._lock:
            while self._fds:
                os.close(self._fds.pop())


class _Left:
    """How many have left the queue, and stand in it still."""

    def __init__(self) -> None:
        self.count = 0
        self.lock = threading.Lock()


def _file_of(path: str) -> str:
    return f"{sha256(path.encode('utf-8', 'surrogateescape')).digest()[0] % _FILES:02d}"


def _mark(fd: int) -> None:
    """Tell those who wait that another has the turn now."""
    with contextlib.suppress(OSError):
        os.pwrite(fd, os.urandom(_MARK_BYTES), 0)


def _mark_in(fd: int) -> bytes:
    with contextlib.suppress(OSError):
        return os.pread(fd, _MARK_BYTES, 0)
    return b""


def is_set_within(event: threading.Event, seconds: float) -> bool:
    return event.wait(seconds)


class _Queueing:
    """One that wants to lock what was opened. It stands in the system's own queue, where who came first is first, and
    which nobody can leave: where it is out of patience, a thread stays there in its place, and then lets go. Where many
    have left so, it does not queue."""

    def __init__(self, fd: int, left: _Left) -> None:
        self._fd = fd
        self._left = left
        self._is_done = threading.Event()
        self._has_left = False

    def is_first_within(self, seconds: float) -> bool:
        """Whether it is locked, or cannot be; if not, what was opened is no longer the caller's. So many seconds are
        waited for each that has the turn before: that the queue is long is no reason to leave it."""
        mark = _mark_in(self._fd)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if self._left.count >= _MOST_LEFT:
                os.close(self._fd)
                return False
            threading.Thread(target=self._wait, name="turn", daemon=True).start()
        except OSError:
            return True
        else:
            return True
        try:
            while not is_set_within(self._is_done, seconds):
                others, mark = mark, _mark_in(self._fd)
                if mark == others:
                    return self._leave()
            return True
        except BaseException:
            if self._leave():
                os.close(self._fd)
            raise

    def _leave(self) -> bool:
        """Wait no longer; whether that comes too late."""
        with self._left.lock:
            if self._is_done.is_set():
                return True
            self._has_left = True
            self._left.count += 1
            return False

    def _wait(self) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        with self._left.lock:
            if self._has_left:
                self._left.count -= 1
                os.close(self._fd)
            else:
                self._is_done.set()
