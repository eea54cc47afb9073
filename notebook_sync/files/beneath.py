"""Opening and reading files strictly below a folder: no `..` and no symbolic link on the way, also while names are
swapped, and never half of what somebody writes.

Each part of a path is opened from the folder before it and never as a link, so a descriptor cannot lead elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from notebook_sync.errors import RootLost
from notebook_sync.model import UNSETTLED, Stamp

# O_NONBLOCK: opening a FIFO would wait for its other end.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Two writes within one tick of the kernel's clock can leave the same times; it ticks at least every 10 ms.
_RACY_NS = 20_000_000
# A file's time can be set beyond the year 2262, where no database can count its nanoseconds.
_LAST_NS = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CHUNK = 1 << 20


@contextmanager
def opened_folder(root: Path, path: str) -> Iterator[int]:
    """A descriptor for the folder at the relative POSIX `path`, "" for the root itself, as long as the block runs.

    Raises RootLost; OSError: ELOOP for a symbolic link on the way, EINVAL for a way out of the root, ENOENT as usual.
    """
    if path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise OSError(errno.EINVAL, "not a path below the notebook", path)
    try:
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        reason = f"{error.strerror}".lower()
        raise RootLost(f"{root}: {reason}", next="nothing is deleted until the folder is back") from None
    try:
        for part in path.split("/") if path else ():
            below = open_below(fd, part)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def open_below(folder: int, name: str) -> int:
    """A descriptor for the folder `name` in an open folder. Raises OSError, ELOOP for a symbolic link."""
    try:
        return os.open(name, _FOLDER_FLAGS, dir_fd=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


@contextmanager
def opened_file(folder: int, name: str) -> Iterator[int]:
    """A descriptor for reading the file `name` in an open folder. Raises OSError: ELOOP for a symbolic link, EAGAIN for
    a file under a lease."""
    fd = os.open(name, _READ_FLAGS, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class Read:
    """A file's bytes and the stamp they belong to. `stamp` is `UNSETTLED` unless `settled`: a later write may leave the
    same times, so the next look must read the file again. `mtime` is aware UTC."""

    raw: bytes
    stamp: Stamp
    mtime: datetime
    settled: bool


def stamp_of(found: os.stat_result) -> Stamp:
    """What `stat` says of a file, in numbers that every database can hold."""
    return Stamp(found.st_size, clamp_ns(found.st_mtime_ns), clamp_ns(found.st_ctime_ns), found.st_ino)


def read_whole(fd: int, limit: int) -> Read | None:
    """Read the file, at most `limit` bytes; None where somebody wrote to it meanwhile, or it is longer.

    `fstat` is the same before and after; where the file changed too recently for that to prove anything, two reads are
    the same too. Raises OSError.
    """
    before = stamp_of(os.fstat(fd))
    # A write in progress has already changed the times. On Linux this call waits for the lock that the write holds.
    with suppress(OSError):
        os.lseek(fd, 0, os.SEEK_HOLE)
    # Not the mtime: anybody can set that to any time.
    settled = abs(time.time_ns() - before.ctime_ns) >= _RACY_NS
    raw = read_all(fd, limit)
    if not settled and raw != read_all(fd, limit):
        return None
    after = stamp_of(os.fstat(fd))
    if after != before or after.size != len(raw):
        return None
    return Read(raw, after if settled else UNSETTLED, time_of(after.mtime_ns), settled)


def read_all(fd: int, limit: int = 1 << 62) -> bytes:
    """The file's bytes from its start, at most `limit`. Raises OSError."""
    chunks: list[bytes] = []
    at = 0
    while at < limit and (chunk := os.pread(fd, min(_CHUNK, limit - at), at)):
        chunks.append(chunk)
        at += len(chunk)
    return b"".join(chunks)


def time_of(time_ns: int) -> datetime:
    """A time in ns since the epoch as aware UTC, to the microsecond."""
    return _EPOCH + timedelta(microseconds=time_ns // 1000)


def clamp_ns(time_ns: int) -> int:
    """A time in ns since the epoch, within signed 64 bits."""
    return time_ns if -_LAST_NS <= time_ns <= _LAST_NS else max(-_LAST_NS, min(time_ns, _LAST_NS))
