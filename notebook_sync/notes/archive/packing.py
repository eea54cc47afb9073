"""Packing an archive: members one after the other, each read as it was at one moment, and the manifest before them.

What comes first is known last, so the members are gathered in a file beside the archive, uncompressed.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import tarfile
from decimal import Decimal
from pathlib import Path
from typing import IO

from notebook_sync.errors import UnreadableFile
from notebook_sync.files.beneath import open_beneath
from notebook_sync.files.vault import Vault
from notebook_sync.notes.archive.format import FILES, LARGEST_FILE, MANIFEST, Member

_CHUNK = 1 << 20
_TRIES = 5
_SECOND = 10**9
_END = tarfile.NUL * (2 * tarfile.BLOCKSIZE)
_PRIVATE = 0o600
# Some file systems know later times, and no import takes one.
_LATEST_NS = 2**63 - 1


class Packing:
    """The members of one archive, gathered in `file`."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.members: list[Member] = []

    def add_file(self, vault: Vault, path: str) -> None:
        """Add a file of the notebook. Raises UnreadableFile and FileNotFoundError; nothing is added then."""
        try:
            root_fd = os.open(vault.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fd = open_beneath(root_fd, path, os.O_RDONLY)
            finally:
                os.close(root_fd)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise UnreadableFile(path, f"{error.strerror or error}".lower()) from None
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            if found.st_size > LARGEST_FILE:
                raise UnreadableFile(path, f"{found.st_size:,} bytes, more than an archive takes: {LARGEST_FILE:,}")
            if found.st_size > vault.max_file_bytes:
                self._add_large(path, file)
            else:
                reading = vault.read_closely(path)
                info = _info(FILES + path, len(reading.raw), found.st_mode, reading.stamp.mtime_ns)
                self._add(info, io.BytesIO(reading.raw))

    def add_beside(self, name: str, source: Path) -> None:
        """Add what is no file of the notebook."""
        with source.open("rb") as file:
            self._add(_info(name, os.fstat(file.fileno()).st_size, _PRIVATE, 0), file)

    def write(self, out: IO[bytes], manifest: bytes) -> None:
        """Write the whole archive, with this manifest. The same members make the same bytes."""
        with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0, compresslevel=6) as packed:
            packed.write(_header(_info(MANIFEST, len(manifest), _PRIVATE, 0)))
            packed.write(manifest + _padding(len(manifest)))
            self._file.seek(0)
            shutil.copyfileobj(self._file, packed, _CHUNK)
            packed.write(_END)

    def _add_large(self, path: str, file: IO[bytes]) -> None:
        """Add a file that is not held in memory; again from its beginning where it is written to meanwhile."""
        begin = self._file.tell()
        for _ in range(_TRIES):
            before = os.fstat(file.fileno())
            file.seek(0)
            try:
                self._add(_info(FILES + path, before.st_size, before.st_mode, before.st_mtime_ns), file)
                after = os.fstat(file.fileno())
                if (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns):
                    return
                self.members.pop()
            except EOFError:
                pass
            self._file.seek(begin)
            self._file.truncate()
        raise UnreadableFile(path, "was written to during every read; export again when that is over")

    def _add(self, info: tarfile.TarInfo, source: IO[bytes]) -> None:
        self._file.write(_header(info))
        digest, left = hashlib.sha256(), info.size
        while left:
            chunk = source.read(min(left, _CHUNK))
            if not chunk:
                raise EOFError
            self._file.write(chunk)
            digest.update(chunk)
            left -= len(chunk)
        self._file.write(_padding(info.size))
        self.members.append(Member(info.name, info.size, digest.hexdigest()))


def _info(name: str, size: int, mode: int, mtime_ns: int) -> tarfile.TarInfo:
    """Nobody's: whose a file was means nothing elsewhere."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, mode & 0o777
    mtime_ns = min(mtime_ns, _LATEST_NS)
    seconds, rest = divmod(mtime_ns, _SECOND)
    info.mtime = max(0, seconds)
    if rest or seconds < 0:  # a float would lose the last of the nanoseconds
        info.pax_headers = {"mtime": str(Decimal(mtime_ns).scaleb(-9))}
    return info


def _header(info: tarfile.TarInfo) -> bytes:
    return info.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> bytes:
    return tarfile.NUL * (-size % tarfile.BLOCKSIZE)
