"""Unpacking an archive that may be anyone's, into a folder of its own that nobody else sees yet.

Only what its manifest announces comes out of it, in that order and with these digests, and never at a place outside of
the folder. What is too much is refused before it is written.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import IO, cast

from notebook_sync.errors import NotebookError, UnreadableFile
from notebook_sync.notes.archive.format import LARGEST_MANIFEST, MANIFEST, Manifest, Member, manifest_from

_CHUNK = 1 << 20
# What the library reads ahead, and what stands around a member: its header, one for a long name, the end.
_AROUND = 128 << 10
_READ_AHEAD = 20 * tarfile.BLOCKSIZE
_OPEN_TO_OTHERS = 0o022
_LATEST_NS = 2**63
_DAMAGE = (tarfile.TarError, zlib.error, EOFError, OSError, ValueError)

Progress = Callable[[int, int], None]


def manifest_of(archive: Path) -> tuple[Manifest, bytes]:
    """The manifest, and its bytes. Raises UnreadableFile."""
    with _opened(archive) as members:
        return members.manifest()


def unpack(archive: Path, into: Path, beside: Path, progress: Progress | None = None) -> tuple[Manifest, bytes]:
    """Write the notebook's files into the empty folder `into` and the rest into `beside`; the manifest, and its bytes.

    Raises UnreadableFile with what is wrong with the archive, and NotebookError where the disk does not take it.
    """
    with _opened(archive) as members:
        manifest, raw = members.manifest()
        needed, free = sum(member.size for member in manifest.members), shutil.disk_usage(into).free
        if needed > free:
            raise NotebookError(f"{archive} needs {needed:,} bytes, and {into.parent} has {free:,}; make room first")
        for done, member in enumerate(manifest.members, 1):
            info, content = members.next(member.name)
            target = into / member.path if member.path else beside / member.name
            _must_be_announced(info, member)
            with _written(target):
                _write(target, content, info, member)
            if progress is not None:
                progress(done, len(manifest.members))
        members.must_end()
    return manifest, raw


class _Members:
    """The members of an open archive, one after the other."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._bounded = _Bounded(stream)
        self._bounded.allow(_AROUND)
        self._tar = tarfile.open(fileobj=self._bounded, mode="r|", bufsize=_READ_AHEAD)  # type: ignore[call-overload]  # noqa: SIM115 - it holds nothing that is to be closed

    def manifest(self) -> tuple[Manifest, bytes]:
        info, content = self.next(MANIFEST)
        if info.size > LARGEST_MANIFEST:
            raise ValueError(f"its manifest is too large, with {info.size:,} bytes")
        raw = content.read(info.size)
        return manifest_from(raw), raw

    def next(self, name: str) -> tuple[tarfile.TarInfo, IO[bytes]]:
        """The next member, which has to have this name and to be a file and nothing else."""
        self._bounded.allow(_AROUND)
        info = self._tar.next()
        self._tar.members = []  # else all are kept
        if info is None:
            raise ValueError(f"{name!r} is missing, and so is all that comes after it")
        if info.name != name:
            raise ValueError(f"{info.name!r} stands where {name!r} has to be")
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or info.issparse():
            raise ValueError(f"{name!r} is a {_KINDS.get(info.type, 'special file')}, and only files are in an archive")
        self._bounded.allow(info.size + _AROUND)
        content = self._tar.extractfile(info)
        assert content is not None  # noqa: S101 - of a regular file it never is
        return info, content

    def must_end(self) -> None:
        self._bounded.allow(_AROUND)
        if (more := self._tar.next()) is not None:
            raise ValueError(f"{more.name!r} is in it, which its manifest does not name")
        while self._bounded.read(_READ_AHEAD):  # to the checksum, which stands at the very end
            pass


class _Bounded:
    """A stream that gives no more than it was last allowed to: a header cannot ask for more than fits in memory."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = 0

    def allow(self, size: int) -> None:
        self._left = size

    def read(self, size: int) -> bytes:
        raw = self._stream.read(min(size, _CHUNK))
        self._left -= len(raw)
        if self._left < 0:
            raise ValueError("a header in it is too large")
        return raw


_KINDS = {
    tarfile.LNKTYPE: "link",
    tarfile.SYMTYPE: "symbolic link",
    tarfile.CHRTYPE: "device",
    tarfile.BLKTYPE: "device",
    tarfile.DIRTYPE: "folder",
    tarfile.FIFOTYPE: "pipe",
}


@contextmanager
def _opened(archive: Path) -> Iterator[_Members]:
    """The members of an archive, and its faults told as such."""
    try:
        file = archive.open("rb")
    except OSError as error:
        raise UnreadableFile(str(archive), f"{error.strerror or error}".lower()) from None
    with file, gzip.GzipFile(fileobj=file) as stream:
        try:
            yield _Members(cast("IO[bytes]", stream))
        except NotebookError:
            raise
        except _DAMAGE as error:
            reason = str(error) or "it ends before its end"
            raise UnreadableFile(str(archive), f"cannot be imported: {reason}; nothing was changed") from None


@contextmanager
def _written(target: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise ValueError(f"{target.name!r} is there already: this system takes two names in it for one") from None
    except OSError as error:
        raise NotebookError(f"{target}: {error.strerror or error}; nothing was imported") from None


def _must_be_announced(info: tarfile.TarInfo, member: Member) -> None:
    if info.size != member.size:
        raise ValueError(f"{member.name!r} has {info.size:,} bytes, and its manifest says {member.size:,}")


def _write(target: Path, content: IO[bytes], info: tarfile.TarInfo, member: Member) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, left = hashlib.sha256(), member.size
    with target.open("xb") as file:
        while left:
            chunk = _read(content, min(left, _CHUNK))
            file.write(chunk)
            digest.update(chunk)
            left -= len(chunk)
        os.fchmod(file.fileno(), info.mode & 0o777 & ~_OPEN_TO_OTHERS | 0o600)
    if digest.hexdigest() != member.sha256:
        raise ValueError(f"{member.name!r} is not what it was: its digest differs from its manifest's")
    time_ns = _time_ns(info)
    os.utime(target, ns=(time_ns, time_ns))


def _read(content: IO[bytes], size: int) -> bytes:
    try:
        chunk = content.read(size)
    except OSError as error:  # of the archive, not of what is written
        raise ValueError(str(error)) from None
    if not chunk:
        raise ValueError("it ends before its end")
    return chunk


def _time_ns(info: tarfile.TarInfo) -> int:
    try:
        told = info.pax_headers.get("mtime")
        time_ns = Decimal(told).scaleb(9) if told is not None else Decimal(int(info.mtime)).scaleb(9)
        if -_LATEST_NS <= time_ns < _LATEST_NS:  # asked first: an int of any Decimal may need all of memory
            return int(time_ns)
    except (ArithmeticError, ValueError):
        pass
    raise ValueError(f"{info.name!r} has a time that no file can have")
