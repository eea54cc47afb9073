"""The two locks of a notebook: `write.lock`, held from an edit's read to its commit, and `follow.lock`, held by the one
process that follows the files. Both end with their process; the lock file says who holds it.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import Busy, ReadOnly
from notebook_sync.files.private import open_private, read_json

if TYPE_CHECKING:
    from notebook_sync.files.state import Place

# A process that only asks for the holder has the lock for a moment.
_ASKING_SECONDS = 0.1


class FileLock:
    """An exclusive lock on a file, for one thread of one process at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd: int | None = None
        self._said: dict[str, Any] = {}

    def acquire(self, timeout: float = 0.0) -> bool:
        """Take the lock; False where another process has it, still after `timeout` seconds. Raises ReadOnly."""
        self.release()
        if not timeout and self.holder() is not None:
            return False
        try:
            fd = open_private(self._path)
            if not _locked(fd, timeout):
                return False
        except OSError as error:
            raise ReadOnly(str(self._path), f"it cannot be locked: {error.strerror}".lower()) from None
        self._fd, self._said = fd, {}
        if not self.holds():  # the file was removed meanwhile, and others lock a new one
            return self.acquire(timeout)
        self.say(pid=os.getpid(), host=os.uname().nodename, since=datetime.now(UTC).isoformat(timespec="seconds"))
        return True

    def release(self) -> None:
        """Give the lock back, if it is held."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def holds(self) -> bool:
        """Whether this object has the lock, and its file is still the one that others would lock."""
        try:
            return self._fd is not None and os.path.samestat(os.fstat(self._fd), self._path.lstat())
        except OSError:
            return False

    def say(self, **fields: Any) -> None:
        """Add JSON fields to what `holder` answers in other processes. Only for the holder."""
        if self._fd is not None:
            self._said |= fields
            raw = json.dumps(self._said).encode()
            with suppress(OSError):  # a full disk: the lock holds, and says less
                os.pwrite(self._fd, raw, 0)
                os.ftruncate(self._fd, len(raw))

    def holder(self) -> dict[str, Any] | None:
        """What the holder says of itself: `{pid, host, since, …}`; None for no holder."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return read_json(self._path)
        finally:
            os.close(fd)
        return None

    def describe_holder(self) -> str:
        """The holder, for a person."""
        said = self.holder() or {}
        operation = f"{said['operation']}, " if said.get("operation") else ""
        return f"{operation}process {said.get('pid', '?')} on {said.get('host', '?')}, since {said.get('since', '?')}"


class FollowLock(FileLock):
    """The lock of the process that follows a notebook."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.lock_folder / "follow.lock")


@contextmanager
def write_lock(place: Place, operation: str, *, timeout: float = 5.0) -> Iterator[None]:
    """Let nobody else write to the notebook. `operation` names the holder's work for those who wait.

    Not re-entrant. Raises Busy after `timeout` seconds, naming pid, operation and since when; ReadOnly.
    """
    lock = FileLock(place.lock_folder / "write.lock")
    if not lock.acquire(timeout):
        raise Busy(lock.describe_holder())
    try:
        lock.say(operation=operation)
        yield
    finally:
        lock.release()


def _locked(fd: int, timeout: float) -> bool:
    """Lock `fd` within `timeout` seconds, else close it.

    A thread waits in the kernel's queue, since that wait has no deadline of its own and polling would starve some of
    many writers. If nobody waits any more when the lock comes, the thread gives it back at once.
    """
    with suppress(BlockingIOError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    from concurrent.futures import Future  # loads logging, and few locks are waited for

    taken: Future[None] = Future()

    def wait() -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)
        if taken.set_running_or_notify_cancel():
            taken.set_result(None)
        else:
            os.close(fd)

    threading.Thread(target=wait, name="notebook-sync lock", daemon=True).start()
    try:
        with suppress(TimeoutError):
            taken.result(max(timeout, _ASKING_SECONDS))
    finally:
        is_abandoned = taken.cancel()
    return not is_abandoned
