"""The program's own files, in `.notebook` and in the state folder: for their owner alone, whole or not there at all.

Folders have mode 0700, files 0600. A symbolic link is never followed: a cloned folder may bring its own `.notebook`.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from notebook_sync.errors import UnsafePath

FOLDER = ".notebook"


def printable(path: str | Path) -> str:
    """The path as it can be stored: bytes of a name that are not UTF-8 are shown as `\\xNN`."""
    return os.fsencode(path).decode(errors="backslashreplace")


def make_private(folder: Path) -> None:
    """Make `.notebook`, a folder in it or another private one, where it is missing, but none above it. Raises OSError,
    and UnsafePath for a link."""
    if folder.is_symlink():
        raise UnsafePath(str(folder), "is a symbolic link", next="remove it; notebook-sync makes its own folder")
    if folder.parent.name == FOLDER:
        make_private(folder.parent)
    folder.mkdir(0o700, exist_ok=True)
    if folder.name == FOLDER:
        with suppress(FileExistsError):
            fd = os.open(folder / ".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            os.write(fd, b"*\n")
            os.close(fd)


def open_private(path: Path) -> int:
    """A descriptor for reading and writing; makes file and folder where they are missing. Raises OSError."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    make_private(path.parent)
    return os.open(path, flags, 0o600)


def write_private(path: Path, raw: bytes, *, durable: bool = True) -> None:
    """Give the file this content in one step; `durable`: it survives a power failure. Raises OSError; the file is as it
    was then."""
    if read_private(path) == raw:
        return
    temporary = path.with_name(f".{os.urandom(8).hex()}~")
    try:
        with os.fdopen(open_private(temporary), "wb") as file:
            file.write(raw)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_private(path: Path) -> bytes | None:
    """The file's content, None where there is no regular file. Raises OSError."""
    if path.is_symlink() or not path.is_file():
        return None
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        return file.read()


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in the file, {} where there is none."""
    try:
        values = json.loads(read_private(path) or b"{}")
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def close_to_others(folder: Path) -> list[Path]:
    """Take from other users what they could open of `folder` and right in it; return it. Raises OSError."""
    closed = []
    for place in (folder, *folder.iterdir()) if folder.is_dir() else ():
        mode = place.lstat().st_mode
        if mode & 0o077 and not stat.S_ISLNK(mode):
            place.chmod(0o700 if stat.S_ISDIR(mode) else 0o600)
            closed.append(place)
    return closed
