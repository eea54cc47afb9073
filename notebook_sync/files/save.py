"""Changing one note so that nobody's bytes are lost: not a person's who saves at the same moment, and not the note's
when the disk or the process fails half way.

A new text is made durable in `.notebook/replaced`, then exchanged with the note in one step. Only then is it known what
was replaced; if that is not the text that the change was based on, they are exchanged back. What was replaced stays
there for a minute, because a program that has it open may still write to it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import posixpath
import re
import signal
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from notebook_sync.errors import (
    Conflict,
    NoSuchNote,
    ReadOnly,
    RootLost,
    TooLarge,
    UnreadableFile,
    UnsafePath,
    UnwritableFile,
)
from notebook_sync.files.beneath import digest_of, opened_file, opened_folder, read_all
from notebook_sync.files.names import is_note_name, twin, why_not
from notebook_sync.files.private import FOLDER, make_private, write_private
from notebook_sync.files.state import Place
from notebook_sync.files.tree import LINK, Tree

KEEP_SECONDS = 60.0
# Where the system cannot say whether a program still has a file open.
_KEEP_UNPROVED_SECONDS = 86_400.0
_REPLACED = "replaced"
_ELSEWHERE = "it is on another file system than .notebook, where only you can write, with an editor"
# The digests of the texts that may be dropped, and the end of the note's path.
_SWAP = re.compile(r"\.([0-9a-f]{16})-([0-9a-f]{16})-[0-9a-f]{16}-(.*)")
_TAIL = 100
_NOREPLACE, _EXCHANGE, _HERE = 1, 2, -100  # of renameat2; AT_FDCWD
# What a kernel, a file system or a sandbox answers that does not know a call.
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM})


class Saver:
    """Creates, replaces, deletes and renames notes. The caller holds the notebook's write lock.

    `base` is the digest (SHA-256, hex) of the text that a change is based on. Every method raises Conflict where the
    note is another one by now, UnsafePath for a path that cannot be a note's, ReadOnly, TooLarge, UnwritableFile where
    the disk fails, RootLost; the notes are as they were then.
    """

    def __init__(self, tree: Tree, place: Place) -> None:
        self._tree = tree
        self._place = place

    def create(self, path: str, raw: bytes) -> None:
        """Write a note that is not there yet, and the folders above it."""
        self._check(path, raw, is_new=True)
        with (
            self._worded(path, ""),
            self._new_folder(path) as (folder, name),
            self._aside() as aside,
            _temporary(aside, _swap_name(path, "", digest_of(raw)), raw, 0o666) as (new, fd),
        ):
            _must_be_free(path, folder, name)
            _inherit(fd, folder)
            os.fsync(fd)
            self._move(path, digest_of(raw), folder, aside, new, folder, name)

    def replace(self, path: str, raw: bytes, base: str) -> None:
        """Write a note over the one with the digest `base`. Mode, owner and attributes stay."""
        self._check(path, raw)
        with (
            self._note(path, base) as (folder, name, old),
            self._aside() as aside,
            _temporary(aside, _swap_name(path, base, digest_of(raw)), raw, 0o600) as (new, fd),
        ):
            _dress(fd, old)
            os.fsync(fd)
            try:
                _rename(aside, new, folder, name, _EXCHANGE)
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
                # A save between this look and the renaming would be lost.
                self._must_hold(path, base, folder, folder, name)
                os.rename(new, name, src_dir_fd=aside, dst_dir_fd=folder)
                os.fsync(folder)
                return
            try:
                self._must_hold(path, base, folder, aside, new)
                os.fsync(folder)
            except BaseException:
                # If a newer save comes out in place of our text, `tidy` recovers it.
                _rename(aside, new, folder, name, _EXCHANGE)
                raise

    def delete(self, path: str, base: str) -> None:
        """Remove the note with the digest `base`."""
        self._check(path)
        with self._note(path, base) as (folder, name, _), self._aside() as aside:
            self._move(path, base, folder, folder, name, aside, _swap_name(path, base, base))

    def rename(self, path: str, to: str, base: str) -> None:
        """Give the note with the digest `base` the path `to`, where nothing is yet."""
        self._check(path)
        self._check(to, is_new=True)
        with self._note(path, base) as (folder, name, _), self._new_folder(to) as (target, new):
            is_same = os.path.samestat(os.fstat(target), os.fstat(folder))
            _must_be_free(to, target, new, own=name if is_same else "")
            self._move(to, base, target, folder, name, target, new)

    def tidy(self) -> list[str]:
        """Drop what was replaced more than a minute ago and what killed processes left, if no program writes to it any
        more. A text that is nowhere else is kept in the state folder; returns the paths of those."""
        recovered: list[str] = []
        with suppress(OSError), self._aside() as aside:
            for swap in filter(None, map(_SWAP.fullmatch, os.listdir(aside))):  # noqa: PTH208 - a descriptor
                with suppress(OSError), opened_file(aside, swap[0]) as fd:
                    if _is_in_use(fd):
                        continue
                    raw = read_all(fd)
                    if raw and digest_of(raw)[:16] not in swap.groups():
                        file = self._place.state / "recovered" / f"{os.urandom(4).hex()}-{swap[3]}"
                        write_private(file, raw)
                        recovered.append(str(file))
                    os.unlink(swap[0], dir_fd=aside)
        return recovered

    # What a change needs.

    def _check(self, path: str, raw: bytes = b"", *, is_new: bool = False) -> None:
        if self._place.read_only:
            raise ReadOnly(str(self._place.root), "the notebook's folder is read-only")
        if len(raw) > self._tree.max_file_bytes:
            raise TooLarge(path, len(raw), self._tree.max_file_bytes)
        is_plain = is_note_name(posixpath.basename(path)) and posixpath.normpath(path) == path
        reason = why_not(path) if is_new else "" if is_plain else "is not a note's path"
        if reason := reason or self._tree.why_left_out(path):
            raise UnsafePath(path, reason)

    @contextmanager
    def _worded(self, path: str, base: str) -> Iterator[None]:
        """Raise in the errors of this class what goes wrong in the block."""
        try:
            yield
        except _Changed:
            raise self._conflict(path, base) from None
        except FileNotFoundError:
            raise Conflict(path, base, "") from None
        except OSError as error:
            if error.errno in {errno.ELOOP, errno.EINVAL, errno.ENOTDIR}:
                raise UnsafePath(path, LINK if error.errno == errno.ELOOP else "leads through a file") from None
            is_elsewhere = error.errno == errno.EXDEV
            raise UnwritableFile(path, _ELSEWHERE if is_elsewhere else f"{error.strerror}".lower()) from None

    def _conflict(self, path: str, base: str) -> Conflict:
        try:
            raw = self._tree.read(path).raw
        except (NoSuchNote, UnreadableFile, UnsafePath):
            return Conflict(path, base, "")
        return Conflict(path, base, digest_of(raw), raw.decode(errors="replace"))

    @contextmanager
    def _note(self, path: str, base: str) -> Iterator[tuple[int, str, int]]:
        """The note's folder, its name there, and the note, open; its text has the digest `base`."""
        above, name = posixpath.split(path)
        with self._worded(path, base), opened_folder(self._tree.root, above) as folder:
            _must_be_plain(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
            with opened_file(folder, name) as fd:
                if digest_of(read_all(fd)) != base:
                    raise _Changed
                yield folder, name, fd

    @contextmanager
    def _new_folder(self, path: str) -> Iterator[tuple[int, str]]:
        """The folder of a new note, and its name there. What is made for it disappears if the block fails."""
        above, name = posixpath.split(path)
        with ExitStack() as undo:
            _make_folder(self._tree.root, above, undo)
            with opened_folder(self._tree.root, above) as folder:
                yield folder, name
            undo.pop_all()

    @contextmanager
    def _aside(self) -> Iterator[int]:
        """Where what is replaced goes."""
        make_private(self._place.private / _REPLACED)
        with opened_folder(self._tree.root, f"{FOLDER}/{_REPLACED}") as aside:
            yield aside

    def _must_hold(self, path: str, base: str, folder: int, where: int, name: str) -> None:
        """What was displaced or moved is the text it was to be, and the note's folder is where it was."""
        with opened_folder(self._tree.root, posixpath.dirname(path)) as now, opened_file(where, name) as fd:
            if not os.path.samestat(os.fstat(now), os.fstat(folder)) or digest_of(read_all(fd)) != base:
                raise _Changed

    # Changing names.

    def _move(self, path: str, base: str, home: int, folder: int, name: str, target: int, new: str) -> None:
        """Give a file with the digest `base` a name that nothing has, durably, or leave it as it was. `home` is the
        folder of `path`."""
        try:
            _rename(folder, name, target, new, _NOREPLACE)
        except FileExistsError:
            raise self._conflict(path, "") from None
        try:
            self._must_hold(path, base, home, target, new)
            os.fsync(target)
            os.fsync(folder)
        except BaseException:
            with suppress(FileExistsError):  # a newer save has the name, and this one is left under the new name
                _rename(target, new, folder, name, _NOREPLACE)
            raise


class _Changed(Exception):
    """The note is not the one that the change is based on."""


def _is_in_use(fd: int) -> bool:
    """Whether a program has a displaced file open for writing, or may have. If not, none can open it so until `fd` is
    closed."""
    age = time.time() - os.fstat(fd).st_ctime
    if age < KEEP_SECONDS:
        return True
    try:
        # Who comes to write is announced by a signal, and the usual one ends the process.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except (OSError, AttributeError):
        return age < _KEEP_UNPROVED_SECONDS
    return False


def _swap_name(path: str, one: str, other: str) -> str:
    """A hidden name that says which texts may be dropped, by their digests ("" for none), and whose they are."""
    return f".{one[:16]:0>16}-{other[:16]:0>16}-{os.urandom(8).hex()}-{tail_of(path)}"


def tail_of(path: str) -> str:
    """The end of the name of a copy: that of the note's path."""
    return quote(path, safe="")[-_TAIL:]


@contextmanager
def _temporary(aside: int, name: str, raw: bytes, mode: int) -> Iterator[tuple[str, int]]:
    """A file with this text; `tidy` removes what is left of it."""
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode, dir_fd=aside)
    try:
        rest = memoryview(raw)
        while rest:
            rest = rest[os.write(fd, rest) :]
        yield name, fd
    finally:
        if rest:
            os.unlink(name, dir_fd=aside)
        os.close(fd)


def _make_folder(root: Path, path: str, undo: ExitStack) -> None:
    """Make a folder and those above it, where they are missing."""
    if path and not os.path.lexists(root / path):
        above, name = posixpath.split(path)
        _make_folder(root, above, undo)
        with opened_folder(root, above) as folder:
            _must_have_no_twin(path, name, os.listdir(folder))  # noqa: PTH208 - a descriptor
            os.mkdir(name, dir_fd=folder)
            undo.callback(_remove_folder, root, above, name)
            os.fsync(folder)


def _remove_folder(root: Path, above: str, name: str) -> None:
    with suppress(OSError, RootLost), opened_folder(root, above) as folder:
        os.rmdir(name, dir_fd=folder)


def _must_be_plain(path: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise UnsafePath(path, "is a link, has a second name, or is no regular file; tools leave it as it is")


def _must_be_free(path: str, folder: int, name: str, own: str = "") -> None:
    """Nothing but a note has this name, and no other note one too close to it; `_move` is never over a note."""
    with suppress(FileNotFoundError):
        _must_be_plain(path, os.stat(name, dir_fd=folder, follow_symlinks=False))
    _must_have_no_twin(path, name, set(os.listdir(folder)) - {own})


def _must_have_no_twin(path: str, name: str, others: Iterable[str]) -> None:
    if other := twin(name, others):
        raise UnsafePath(path, f"is too close to {other!r}, which some systems take for the same name")


def _inherit(fd: int, folder: int) -> None:
    """Give a file the group and rights that a new file in the folder gets."""
    found = os.fstat(folder)
    if found.st_mode & stat.S_ISGID:
        os.fchown(fd, -1, found.st_gid)
    with suppress(OSError, AttributeError):  # no such rights; macOS
        os.setxattr(fd, "system.posix_acl_access", os.getxattr(folder, "system.posix_acl_default"))


def _dress(fd: int, like: int) -> None:
    """Give a file the owner, group, mode and attributes of another, as far as this user may."""
    found = os.fstat(like)
    for owner, group in ((found.st_uid, -1), (-1, found.st_gid)):
        with suppress(PermissionError):
            os.fchown(fd, owner, group)
    os.fchmod(fd, stat.S_IMODE(found.st_mode))
    with suppress(OSError, AttributeError):  # a file system without attributes; macOS
        for name in os.listxattr(like):
            with suppress(OSError):
                os.setxattr(fd, name, os.getxattr(like, name))


def exchange(one: Path, other: Path) -> None:
    """Let two files or folders of one file system change places, at once. Raises OSError."""
    _rename(_HERE, str(one), _HERE, str(other), _EXCHANGE)


def _rename(folder: int, name: str, target: int, new: str, how: int) -> None:
    """renameat2: never over another file. Raises OSError."""
    import ctypes  # takes 4 ms to load, and most commands write nothing

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(folder, os.fsencode(name), target, os.fsencode(new), how) == 0:
        return
    code = ctypes.get_errno()
    if code not in _UNSUPPORTED or how == _EXCHANGE:
        raise OSError(code, os.strerror(code), new)
    os.link(name, new, src_dir_fd=folder, dst_dir_fd=target, follow_symlinks=False)
    os.unlink(name, dir_fd=folder)
