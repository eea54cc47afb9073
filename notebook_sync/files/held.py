"""A note held still: open, read whole, and under a lease where the system has leases, so that whoever comes to write
to it waits and is noticed."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from dataclasses import dataclass

from notebook_sync.errors import UnreadableFile, UnsafePath
from notebook_sync.files.disk import Disk, Inode, inode

_PAUSE_SECONDS = 0.001
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Held:
    """`leased`: True while the lease holds, False when another program has the file open for writing and did not come
    to an end, None where there are no leases."""

    fd: int
    inode: Inode
    raw: bytes
    leased: bool | None

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()

    def is_wanted(self, disk: Disk) -> bool:
        """Whether anybody has come to write to it since it was read. A program that holds it open does not count."""
        return disk.has_waiting_writer(self.fd) if self.leased else read_all(self.fd) != self.raw


def hold(disk: Disk, folder: int, name: str, path: str, limit: int, deadline: float) -> Held | None:
    """The file `name`, for which people say `path`; None when it is not there. Who is writing to it is waited for until
    the time `deadline` of the monotonic clock. Close its descriptor to let it go.

    Raises UnsafePath for what is no plain file, UnreadableFile.
    """
    while True:
        is_late = time.monotonic() >= deadline
        try:
            held = _hold(disk, folder, name, path, limit)
        except FileNotFoundError:
            return None
        except BlockingIOError:
            if is_late:
                raise UnreadableFile(path, "another program keeps it for itself") from None
        except PermissionError as error:
            raise UnreadableFile(path, f"{error.strerror}".lower()) from None
        except OSError as error:
            if error.errno not in {errno.ELOOP, errno.EXDEV}:
                raise
            raise UnsafePath(path, _LINK) from None
        else:
            if held.leased is not False or is_late:
                return held
            os.close(held.fd)
        time.sleep(_PAUSE_SECONDS)


def must_be_plain(found: os.stat_result, path: str) -> None:
    """Raises UnsafePath for a link, a folder, a device, and for a file that has a second name elsewhere."""
    if stat.S_ISLNK(found.st_mode):
        raise UnsafePath(path, _LINK)
    if not stat.S_ISREG(found.st_mode):
        raise UnsafePath(path, "is not a regular file")
    if found.st_nlink > 1:
        raise UnsafePath(path, "is a hard link: the same file has another name, which would keep the old text")


def read_all(fd: int) -> bytes:
    chunks = []
    at = 0
    while chunk := os.pread(fd, _CHUNK, at):
        chunks.append(chunk)
        at += len(chunk)
    return b"".join(chunks)


_LINK = "is a symbolic link; links are not followed"


def _hold(disk: Disk, folder: int, name: str, path: str, limit: int) -> Held:
    must_be_plain(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
    fd = disk.open(folder, name)
    try:
        leased = disk.lease(fd)
        found = os.fstat(fd)
        if found.st_nlink:  # none: it was replaced or removed since it was opened
            must_be_plain(found, path)
        _must_fit(found.st_size, limit, path)
        return Held(fd, inode(found), read_all(fd), leased)
    except BaseException:
        os.close(fd)
        raise


def _must_fit(size: int, limit: int, path: str) -> None:
    if size > limit:
        raise UnreadableFile(path, f"{size:,} bytes, more than max_file_bytes = {limit:,}")
