"""One question at a time, whoever asks: an advisory lock for this machine, and a lease in the store for all others.

The lock ends with its process, the lease by its time: nobody who was killed holds up anybody for long.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from notebook_sync.errors import BackendDown
from notebook_sync.folder import opened_private, replace_private
from notebook_sync.mirror.syntheses import Syntheses

MOST_WAITING = 8
"""Threads of one process that ask, or wait until they may."""
FILE, HOLDER_FILE = "synthesis.lock", "synthesis.holder"
_LOOK_SECONDS = 0.05
# What comes before and after the question itself: links are written down, and a brief is compiled again.
_BESIDE_SECONDS = 60.0
_LONGEST_NOTE = 1 << 16
_LONGEST_NAME = 64


class Turn:
    """That it is somebody's turn. Who had it before may have failed at the same."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def trouble_since(self, key: str, began: float) -> str:
        """Why who had the turn before got no answer to this, where that was after `began`; "" where they did not try,
        or had no trouble."""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            told = json.loads(os.pread(self._fd, _LONGEST_NOTE, 0))
            if told["key"] == key and float(told["at"]) >= began:
                return str(told["trouble"])
        return ""

    def note(self, key: str, trouble: str) -> None:
        """Tell those who wait why there is no answer to this; "" that there is one."""
        raw = json.dumps({"key": key, "at": time.time(), "trouble": trouble}).encode()
        with contextlib.suppress(OSError):  # then they try it themselves
            os.pwrite(self._fd, raw[:_LONGEST_NOTE], 0)
            os.ftruncate(self._fd, min(len(raw), _LONGEST_NOTE))


class Turns:
    """Of one notebook; `folder` is its `.notebook`. A question takes no longer than `seconds`, and is waited for as
    long."""

    def __init__(self, folder: Path, store: Callable[[], Syntheses], seconds: float) -> None:
        self._folder = folder
        self._store = store
        self._seconds = seconds
        self._places = threading.BoundedSemaphore(MOST_WAITING)

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Whether there is a place among those who ask and wait, held meanwhile. A thread that waits is one that a
        server has no more for anything else."""
        is_free = self._places.acquire(blocking=False)
        try:
            yield is_free
        finally:
            if is_free:
                self._places.release()

    @contextmanager
    def turn(self) -> Iterator[Turn | None]:
        """None where it did not come in time. Raises BackendDown; NotebookError where there is nothing to lock."""
        until = time.monotonic() + self._seconds
        with opened_private(self._folder / FILE, "a synthesis needs to lock this file") as fd:
            if not _tried_until(until, lambda: _is_locked(fd)):
                yield None
                return
            holder = f"{socket.gethostname()}:{self._folder}:{self._own_name()}"
            if not _tried_until(until, lambda: self._is_leased(holder)):
                yield None
                return
            try:
                yield Turn(fd)
            finally:
                with contextlib.suppress(BackendDown):  # it ends by itself
                    self._store().release(holder)

    def _own_name(self) -> str:
        """What tells this folder from one at the same place of a machine of the same name, as containers are. Who asks
        has the lock."""
        path = self._folder / HOLDER_FILE
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if kept := path.read_text(encoding="ascii")[:_LONGEST_NAME].strip():
                return kept
        name = secrets.token_hex(8)
        with contextlib.suppress(OSError):  # then each turn is somebody else's, and none takes over a lease
            replace_private(path, name.encode())
        return name

    def _is_leased(self, holder: str) -> bool:
        """Whoever has the lock on this machine may take what another process of it left behind."""
        return self._store().lease(holder, self._seconds + _BESIDE_SECONDS)


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _tried_until(until: float, attempt: Callable[[], bool]) -> bool:
    """Whether an attempt succeeded; there is one in any case."""
    while not attempt():
        if time.monotonic() >= until:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
