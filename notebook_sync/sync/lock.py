"""One watcher per notebook: an advisory lock that ends with its process, and tells others who holds it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from notebook_sync.errors import NotebookError, RootLost, WatchLocked
from notebook_sync.folder import lock, open_private

FILE = "watch.lock"
# One that only looks who holds the lock (`watcher`) is gone at once.
_LOCK_SECONDS = 0.1


@contextmanager
def watch_lock(folder: Path) -> Iterator[WatchNote]:
    """Hold the watch lock in `folder` (the notebook's `.notebook`).

    Raises WatchLocked naming the holder, RootLost where there is no notebook to hold it in.
    """
    path = folder / FILE
    try:
        fd = open_private(path)
    except FileNotFoundError as error:
        raise RootLost(f"{folder.parent}: {error.strerror}; deletions wait until it is back") from None
    except OSError as error:
        raise NotebookError(f"{path}: {error.strerror}; a watch needs to lock this file") from None
    try:
        if not lock(fd, _LOCK_SECONDS):
            holder = watcher(folder) or {}
            who = f"process {holder.get('pid', '?')} on {holder.get('host', '?')} since {holder.get('since', '?')}"
            raise WatchLocked(f"this notebook is already watched by {who}; stop that one first", who)
        note = WatchNote(fd, path)
        note.write()
        yield note
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


class WatchNote:
    """What the lock's holder tells of itself to `status`."""

    def __init__(self, fd: int, path: Path) -> None:
        self._fd = fd
        self._path = path
        self._told: dict[str, Any] = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now()}

    def write(self, **told: Any) -> None:
        """Add to what is told."""
        self._told |= told
        raw = json.dumps(self._told).encode()
        os.pwrite(self._fd, raw, 0)
        os.ftruncate(self._fd, len(raw))

    @property
    def holds(self) -> bool:
        """Whether the locked file is still the one that others would lock: `.notebook` may be deleted at any time."""
        try:
            return self._path.stat().st_ino == os.fstat(self._fd).st_ino
        except OSError:
            return False

    def reconciled(self) -> None:
        """A full reconcile has just ended well."""
        self.write(last_reconcile=_now())


def watcher(folder: Path) -> dict[str, Any] | None:
    """What the watcher of this notebook tells of itself, or None when no process holds the lock."""
    try:
        fd = os.open(folder / FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
        try:
            told = json.loads(os.pread(fd, 1 << 16, 0))
        except ValueError:
            return {}
        return told if isinstance(told, dict) else {}
    finally:
        os.close(fd)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
