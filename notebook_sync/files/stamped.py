"""Reads an open file whole, and tells how far its stamp vouches for the bytes: never half of what somebody writes."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass

from notebook_sync.files.note import Stamp

# Two writes within one tick of the kernel's clock can leave the same stamp; kernels tick at least every 10 ms.
RACY_SECONDS = 0.02
# The year 2262: a file's time may be set to a later one, whose nanoseconds no store can count.
_LAST_NS = 2**63 - 1
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Reading:
    """A file's bytes and the stamp they belong to. `racy`: a write after the reading may leave the very same stamp."""

    raw: bytes
    stamp: Stamp
    racy: bool


def read_stamped(fd: int, limit: int) -> Reading | None:
    """The file's bytes, at most `limit` of them; None where it was written to meanwhile, or is longer.

    `fstat` was the same before and after, and where the file was written to so lately that this proves nothing, so were
    the bytes. Raises OSError.
    """
    before = stamp_of(os.fstat(fd))
    _await_write(fd)
    began = time.time_ns()
    raw = _read_all(fd, limit)
    racy = _is_racy(before, began)
    is_whole = not racy or raw == _read_all(fd, limit)
    after = stamp_of(os.fstat(fd))
    return Reading(raw, after, racy) if is_whole and after == before and after.size == len(raw) else None


def stamp_of(found: os.stat_result) -> Stamp:
    """What `stat` says of a file, in numbers that every store can hold."""
    return Stamp(found.st_size, _countable(found.st_mtime_ns), _countable(found.st_ctime_ns), found.st_ino)


def _countable(time_ns: int) -> int:
    return max(-_LAST_NS, min(time_ns, _LAST_NS))


def _is_racy(stamp: Stamp, now_ns: int) -> bool:
    """Whether a write after `now_ns` may leave this very stamp."""
    # Not the mtime, which anybody can set to any time, the future included.
    return abs(now_ns - stamp.ctime_ns) < RACY_SECONDS * 1e9


def _await_write(fd: int) -> None:
    """Let a write that is under way end. It changed the file's times when it began, so that no stamp betrays it; a
    search for holes takes the lock that it holds (Linux, the usual file systems)."""
    with contextlib.suppress(OSError):
        os.lseek(fd, 0, os.SEEK_HOLE)


def _read_all(fd: int, limit: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    chunks = []
    while limit > 0 and (chunk := os.read(fd, min(_CHUNK, limit))):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)
