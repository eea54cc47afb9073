"""The system calls that a write is made of, one method each: the seam at which a test lets the disk fail.

Everything is named by an open folder and a name in it, so that no path is looked up twice.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import stat

from notebook_sync.files.beneath import open_beneath

Inode = tuple[int, int]

_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
# What a kernel, a file system or a sandbox says that does not know a call.
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}
_NO_LEASE = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.ENOLCK}


class Unsupported(Exception):
    """The kernel or the file system cannot exchange two names."""


class Disk:
    """Each method is one step. Raises OSError as the system does."""

    def open(self, folder: int, name: str) -> int:
        """A descriptor for reading; BlockingIOError while another program keeps the file for itself."""
        return open_beneath(folder, name, os.O_RDONLY)

    def create(self, folder: int, name: str, mode: int) -> int:
        """A descriptor for reading and writing of a file that was not there."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, mode, dir_fd=folder)

    def write(self, fd: int, raw: bytes) -> None:
        """Make `raw` the content."""
        os.ftruncate(fd, 0)
        written = 0
        while written < len(raw):
            written += os.pwrite(fd, raw[written:], written)

    def dress(self, fd: int, like: int) -> None:
        """Give a file the mode, owner, group and attributes of another, as far as this user may."""
        found = os.fstat(like)
        for owner, group in ((found.st_uid, -1), (-1, found.st_gid)):
            with contextlib.suppress(PermissionError):
                os.fchown(fd, owner, group)
        os.fchmod(fd, stat.S_IMODE(found.st_mode))
        with contextlib.suppress(OSError, AttributeError):  # a file system without attributes, or macOS
            for name in os.listxattr(like):
                with contextlib.suppress(OSError):
                    os.setxattr(fd, name, os.getxattr(like, name))

    def sync(self, fd: int) -> None:
        """Have the file's bytes, or the folder's names, on the medium."""
        os.fsync(fd)

    def sync_all(self, fd: int) -> None:
        """Have all that was written to the file system of an open file on the medium."""
        if _syncfs is None:
            os.sync()
        elif _syncfs(fd) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    def exchange(self, folder: int, one: str, other: str) -> None:
        """Let two names trade their files in one step. Raises Unsupported."""
        _rename(folder, one, folder, other, _RENAME_EXCHANGE)

    def move(self, folder: int, name: str, to_folder: int, to: str) -> None:
        """Give a file another name that nothing has; FileExistsError where something has it."""
        try:
            _rename(folder, name, to_folder, to, _RENAME_NOREPLACE)
        except Unsupported:
            os.link(name, to, src_dir_fd=folder, dst_dir_fd=to_folder, follow_symlinks=False)
            os.unlink(name, dir_fd=folder)

    def replace(self, folder: int, name: str, to: str) -> None:
        """Give a file another name, over the file that has it."""
        os.rename(name, to, src_dir_fd=folder, dst_dir_fd=folder)

    def remove(self, folder: int, name: str) -> None:
        os.unlink(name, dir_fd=folder)

    def make_folder(self, above: int, name: str) -> None:
        os.mkdir(name, dir_fd=above)

    def lease(self, fd: int) -> bool | None:
        """Ask that nobody may open the file for writing meanwhile; for a descriptor that can write, that nobody may
        open it at all. They wait, at most as long as the system lets them. Closing the descriptor ends it.

        False while another program has the file open in that way; None where there are no leases to be had.
        """
        try:
            # Who waits is told by a signal, and the usual one ends the process.
            fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(fd, fcntl.F_SETLEASE, _lease_kind(fd))
        except AttributeError:  # not Linux
            return None
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in _NO_LEASE:
                return None
            raise
        return True

    def has_waiting_writer(self, fd: int) -> bool:
        """Whether somebody came to write to a file under a lease, and waits, or waited until the lease ran out."""
        return fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_UNLCK

    def release(self, fd: int) -> None:
        """Let those who wait go on."""
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def inode_of(folder: int, name: str) -> Inode | None:
    """What `name` means now; None when it means nothing."""
    try:
        return inode(os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def inode(found: os.stat_result) -> Inode:
    return found.st_dev, found.st_ino


def _lease_kind(fd: int) -> int:
    writes = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    return fcntl.F_WRLCK if writes else fcntl.F_RDLCK


def _rename(folder: int, name: str, to_folder: int, to: str, how: int) -> None:
    if _renameat2 is None:
        raise Unsupported
    if _renameat2(folder, os.fsencode(name), to_folder, os.fsencode(to), how) == 0:
        return
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        raise Unsupported
    raise OSError(code, os.strerror(code), name)


_LIBRARY = ctypes.CDLL(None, use_errno=True)
_renameat2 = getattr(_LIBRARY, "renameat2", None)
_syncfs = getattr(_LIBRARY, "syncfs", None)
