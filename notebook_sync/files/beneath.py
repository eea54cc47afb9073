"""Opening files strictly below a folder: no `..`, no symbolic link anywhere on the way, also not under a race.

Linux answers with one system call, openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS). Where the kernel or a sandbox
refuses that call, each component is opened by itself with O_NOFOLLOW from the folder before it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import time

_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
# The same number on every architecture that Linux has given it to.
_SYS_OPENAT2 = 437
_TRIES = 50
_PAUSE_SECONDS = 0.001
_UNAVAILABLE = {errno.ENOSYS, errno.EPERM, errno.E2BIG}


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(root_fd: int, path: str, flags: int) -> int:
    """A descriptor for the relative POSIX `path` below the folder `root_fd`.

    Raises OSError: ELOOP for a symbolic link on the way, EXDEV or EINVAL for a way out of the folder, ENOENT as usual,
    EAGAIN for a file that another program keeps for itself.
    """
    if path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise OSError(errno.EINVAL, "not a path below the notebook", path)
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NOCTTY | os.O_NONBLOCK
    for _ in range(_TRIES):
        try:
            return _open(root_fd, path, flags)
        except BlockingIOError:  # a rename went on beside the look-up, or another program has a lease on the file
            time.sleep(_PAUSE_SECONDS)
    raise OSError(errno.EAGAIN, "another program has it for itself", path)


def _open(root_fd: int, path: str, flags: int) -> int:
    fd = _openat2(root_fd, path, flags) if _openat2 is not None else None
    return fd if fd is not None else _open_by_components(root_fd, path, flags)


def _call_openat2(root_fd: int, path: str, flags: int) -> int | None:
    """The descriptor, or None where the call is not to be had."""
    how = _OpenHow(flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS)
    while True:
        fd: int = _libc.syscall(_SYS_OPENAT2, root_fd, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code in _UNAVAILABLE:
            return None
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code), path)


def _open_by_components(root_fd: int, path: str, flags: int) -> int:
    folder = os.dup(root_fd)
    try:
        *parents, name = path.split("/")
        for parent in parents:
            below = _open_folder(folder, parent)
            os.close(folder)
            folder = below
        return os.open(name, flags, dir_fd=folder)
    finally:
        os.close(folder)


def _open_folder(above: int, name: str) -> int:
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_openat2 = _call_openat2 if os.uname().sysname == "Linux" else None
