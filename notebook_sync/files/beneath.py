"""Opening and reading files strictly below a folder: no `..` and no symbolic link on the way, also while names are
swapped, and never half of what somebody writes; and whether what was read is the whole UTF-8 text that a note is.

Each part of a path is opened from the folder before it and never as a link, so a descriptor cannot lead elsewhere.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import msgspec

from notebook_sync.errors import RootLost
from notebook_sync.model import UNSETTLED, Problem, Stamp

# O_NONBLOCK: opening a FIFO would wait for its other end.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Two writes within one tick of the kernel's clock can leave the same times; it ticks at least every 10 ms.
_RACY_NS = 20_000_000
# A file's time can be set beyond the year 2262, where no database can count its nanoseconds.
_LAST_NS = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CHUNK = 1 << 20
MERGE_CONFLICT = "a mark of a merge conflict; keep the right text and delete the marks"
_BOM = b"\xef\xbb\xbf"
_BOMS_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_OPENING_LINE = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*(?:\r?\n|\r?\Z)")
_CLOSING_LINE = re.compile(rb"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
_MERGE_MARKS = ("<<<<<<< ", ">>>>>>> ")  # found much faster than a pattern with the start of a line
_MERGE_MARK = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)


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


class Read(msgspec.Struct, frozen=True):
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


def digest_of(raw: bytes | None) -> str:
    """What names a text: its SHA-256 in hex, "" for no file."""
    return "" if raw is None else sha256(raw).hexdigest()


def time_of(time_ns: int) -> datetime:
    """A time in ns since the epoch as aware UTC, to the microsecond."""
    return _EPOCH + timedelta(microseconds=time_ns // 1000)


def clamp_ns(time_ns: int) -> int:
    """A time in ns since the epoch, within signed 64 bits."""
    return time_ns if -_LAST_NS <= time_ns <= _LAST_NS else max(-_LAST_NS, min(time_ns, _LAST_NS))


def looks_unfinished(raw: bytes) -> bool:
    """Whether a writer seems to be at work: nothing yet, frontmatter still open, or half a character at the end."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return True
    opening = _OPENING_LINE.match(raw)
    return not raw or (opening is not None and not _CLOSING_LINE.search(raw, opening.end()))


def fault_of(raw: bytes) -> Problem | None:
    """What is wrong with bytes that are not UTF-8 text; None for UTF-8 text."""
    if raw.startswith(_BOMS_OF_UTF16):
        return Problem(1, "it is UTF-16; save it as UTF-8", severe=True)
    at, what = raw.find(b"\0"), "a NUL byte, as in binary files and UTF-16"
    if at < 0:
        try:
            raw.decode()
            return None
        except UnicodeDecodeError as error:
            at, what = error.start, "not UTF-8"
    return Problem(raw.count(b"\n", 0, at) + 1, f"{what}; save it as UTF-8 text", severe=True)


def why_not_text(raw: bytes) -> str:
    """Why these bytes are not UTF-8 text, with the 1-based line; "" if they are."""
    return str(fault_of(raw) or "")


def why_unusable(raw: bytes) -> str:
    """Why a prompt must not show these bytes, with the 1-based line; "" for text that says something.

    Unusable are: nothing but white space, bytes that are not UTF-8 text, and marks of an unresolved merge.
    """
    if not raw.removeprefix(_BOM).strip():
        return "it is empty"
    reason = why_not_text(raw)
    if not reason and (marks := conflict_marks(raw.decode())):
        reason = f"line {marks[0]}: {MERGE_CONFLICT}"
    return reason


def conflict_marks(text: str) -> tuple[int, ...]:
    """The 1-based lines outside of code on which a side of a merge conflict begins or ends."""
    if not any(mark in text for mark in _MERGE_MARKS):
        return ()
    from prompt.hidden import end_of_frontmatter  # most texts have no mark, and need no Markdown reader
    from prompt.outline import Outline

    start = end_of_frontmatter(text)
    blocks = Outline(text[start:]).root.walk()
    code = {line for each in blocks if each.type in ("fence", "code_block") for line in range(each.first, each.last)}
    above = text.count("\n", 0, start)
    lines = enumerate(text.split("\n"), 1)
    return tuple(line for line, words in lines if _MERGE_MARK.match(words) and line - above - 1 not in code)
