"""Writing a note so that nobody's bytes are lost: not a person's who saves at the same moment, not the note's when
the disk or the process fails half way.

A new text is written beside the note, made durable, and trades places with it in one step (RENAME_EXCHANGE). Only
then can it be known what was replaced: where that is not the text that the write was based on, they trade back. An
editor that writes into the file itself is kept waiting meanwhile by a lease, and what it came to write to is put back.
Where the system has no exchange or no leases, the file is looked at again right before it is replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from notebook_sync.errors import Conflict, UnsafePath, UnwritableFile
from notebook_sync.files.disk import Disk, Inode, Unsupported, inode, inode_of
from notebook_sync.files.folder import Folder, new_name, opened, swap_name
from notebook_sync.files.held import Held, hold, must_be_plain, read_all
from notebook_sync.files.names import twin_of

# How long a program that has the note open for writing is waited for.
PATIENCE_SECONDS = 1.0
# A program that opens a file is interrupted at times between finding it and asking for it: it may still come to one
# that has just lost its name. It gets this long, of which the sync of the folder takes more or less.
_GRACE_SECONDS = 0.003


@contextlib.contextmanager
def writing(root: Path, path: str, base: str | None, limit: int, disk: Disk) -> Iterator[Writing]:
    """The note at `path`, to be changed once; with the base None the folders above it are made. `path` is safe.

    Raises what `Writing` raises, UnwritableFile where the disk fails, and as `opened`.
    """
    above, name = posixpath.split(path)
    with _told(path, base), opened(root, above, disk, make=base is None) as folder:
        yield Writing(folder, name, path, limit)


@contextlib.contextmanager
def renaming(root: Path, old: str, new: str, base: str, limit: int, disk: Disk) -> Iterator[tuple[Writing, Writing]]:
    """The notes at `old` and, not yet there, at `new`. As `writing`."""
    with _told(old, base), contextlib.ExitStack() as stack:
        # In the same order by everybody, so that no two wait for each other.
        folders = {
            above: stack.enter_context(opened(root, above, disk, make=above == posixpath.dirname(new)))
            for above in sorted({posixpath.dirname(old), posixpath.dirname(new)})
        }
        one, other = (
            Writing(folders[posixpath.dirname(path)], posixpath.basename(path), path, limit) for path in (old, new)
        )
        yield one, other


@contextlib.contextmanager
def _told(path: str, base: str | None) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise Conflict(path, base or "", "") from None
    except OSError as error:
        raise UnwritableFile(path, f"{error.strerror}".lower()) from None


class Writing:
    """One change to the note `name` in `folder`. `path` is what people call it, `limit` the most bytes it may have.

    Every method raises Conflict when the note is not the one with the digest `base`, or a program keeps it open for
    writing; UnsafePath when it is no plain file; OSError when the disk fails. Then the note is as it was.
    """

    def __init__(self, folder: Folder, name: str, path: str, limit: int) -> None:
        self._disk = folder.disk
        self._folder = folder
        self._name = name
        self._path = path
        self._limit = limit
        self._deadline = time.monotonic() + PATIENCE_SECONDS

    def create(self, raw: bytes) -> os.stat_result:
        """Write a note that is not there yet."""
        self._must_be_free()
        fd = self._folder.fd
        with self._beside(raw) as new:
            self._disk.sync(new.fd)
            with contextlib.ExitStack() as undo:
                try:
                    self._disk.move(fd, new.name, fd, self._name)
                except FileExistsError:
                    raise self._conflict("") from None
                undo.callback(self._take_away, new)
                found = os.fstat(new.fd)
                self._must_be_in_place()
                self._disk.sync(fd)
                undo.pop_all()
            return found

    def replace(self, raw: bytes, base: str) -> os.stat_result:
        """Write a note over the one with the digest `base`; mode, owner and attributes stay."""
        with contextlib.ExitStack() as stack:
            with self._held(base) as old:
                new = stack.enter_context(self._beside(raw, old))
            self._disk.sync(new.fd)
            # From here on there may be a person's bytes under the hidden name, and after a crash it must tell so.
            name = swap_name(base, hashlib.sha256(raw).hexdigest())
            self._disk.move(self._folder.fd, new.name, self._folder.fd, name)
            new.name = name
            with self._held(base) as old, contextlib.suppress(FileNotFoundError):
                found = self._swap(new, old)
                if found is not None:
                    return found
        raise self._conflict(base)

    def delete(self, base: str) -> None:
        """Remove the note with the digest `base`."""
        fd, aside = self._folder.fd, swap_name(base, "")
        with self._held(base) as old, contextlib.ExitStack() as undo, contextlib.suppress(FileNotFoundError):
            self._disk.move(fd, self._name, fd, aside)
            undo.callback(self._move_back, self._folder, aside)
            if inode_of(fd, aside) == old.inode and not old.is_wanted(self._disk):
                self._must_be_in_place()
                self._sync_names()
                if not old.is_wanted(self._disk):
                    undo.pop_all()
                    with contextlib.suppress(OSError):  # the next write in this folder removes it
                        self._disk.remove(fd, aside)
                    return
        raise self._conflict(base)

    def move(self, target: Writing, base: str) -> os.stat_result:
        """Give the note with the digest `base` the name of `target`, which nothing has yet."""
        fd, to = self._folder.fd, target._folder
        with self._held(base) as old, contextlib.ExitStack() as undo:
            target._must_be_free(instead_of=self._name if to is self._folder else "")
            try:
                self._disk.move(fd, self._name, to.fd, target._name)
            except FileExistsError:
                raise target._conflict("") from None
            except FileNotFoundError:
                raise Conflict(self._path, base, "") from None
            undo.callback(self._move_back, to, target._name)
            if inode_of(to.fd, target._name) == old.inode and not old.is_wanted(self._disk):
                self._must_be_in_place()
                target._must_be_in_place()
                found = os.fstat(old.fd)
                self._disk.sync(to.fd)
                self._disk.sync(fd)
                undo.pop_all()
                return found
        raise self._conflict(base)

    # The exchange.

    def _swap(self, new: _Beside, old: Held) -> os.stat_result | None:
        """Let `new` take the place of `old`, if `old` is what it replaces; None when it was not."""
        fd = self._folder.fd
        new.leased = self._disk.lease(new.fd)
        with contextlib.ExitStack() as undo:
            try:
                self._disk.exchange(fd, new.name, self._name)
            except Unsupported:
                return self._replace_after_a_look(new, old)
            undo.callback(self._trade_back, new)
            if inode_of(fd, new.name) == old.inode and not old.is_wanted(self._disk):
                self._must_be_in_place()
                found = os.fstat(new.fd)
                if new.leased:
                    self._disk.release(new.fd)
                    new.leased = False
                self._sync_names()
                if not old.is_wanted(self._disk):
                    undo.pop_all()
                    new.is_spent = True
                    return found
        return None

    def _sync_names(self) -> None:
        """Make the folder durable, and let who is on the way to what has just lost its name get there: in memory, and
        on a fast disk, a sync alone leaves no time for that."""
        until = time.monotonic() + _GRACE_SECONDS
        self._disk.sync(self._folder.fd)
        time.sleep(max(0.0, until - time.monotonic()))

    def _replace_after_a_look(self, new: _Beside, old: Held) -> os.stat_result | None:
        if inode_of(self._folder.fd, self._name) != old.inode or old.is_wanted(self._disk):
            return None
        self._must_be_in_place()
        self._disk.replace(self._folder.fd, new.name, self._name)
        found = os.fstat(new.fd)
        self._disk.sync(self._folder.fd)
        return found

    def _trade_back(self, new: _Beside) -> None:
        """Give the note's name back to what was replaced. When meanwhile a person put a newer file there, that comes
        out instead of `new`, and belongs back; and so on, until what comes out is what was put there."""
        fd = self._folder.fd
        if not new.leased and not self._is_untouched(new):
            return  # a person writes to the new text already. What it replaced keeps its hidden name, to be recovered
        expected: Inode | None = new.inode
        while True:
            theirs = inode_of(fd, new.name)
            try:
                self._disk.exchange(fd, new.name, self._name)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    self._disk.move(fd, new.name, fd, self._name)
                    return
                continue
            if inode_of(fd, new.name) == expected:
                break
            expected = theirs
        if expected != new.inode:
            new.is_spent = True  # a person's file, that the same person has replaced
            return
        time.sleep(_GRACE_SECONDS)
        if new.leased and self._disk.has_waiting_writer(new.fd):
            self._hand_over(new)

    def _hand_over(self, new: _Beside) -> None:
        """Somebody opened the new text to write to it, while it had the note's name, and waits. That one goes on with
        the person's text in it."""
        fd = self._folder.fd
        self._disk.exchange(fd, new.name, self._name)
        theirs = self._disk.open(fd, new.name)
        try:
            is_still = self._disk.lease(theirs)
            self._disk.write(new.fd, read_all(theirs))
            new.is_spent = bool(is_still) and not self._disk.has_waiting_writer(theirs)
        finally:
            os.close(theirs)

    # The way back for what was only moved.

    def _move_back(self, folder: Folder, name: str) -> None:
        with contextlib.suppress(FileExistsError, FileNotFoundError):  # a person made the note anew: both are kept
            self._disk.move(folder.fd, name, self._folder.fd, self._name)

    def _take_away(self, new: _Beside) -> None:
        """Undo a creation, unless a person has written to the note."""
        fd = self._folder.fd
        if not self._is_untouched(new):
            return
        with contextlib.suppress(FileNotFoundError):
            self._disk.move(fd, self._name, fd, new.name)
            is_wanted = new.leased and self._disk.has_waiting_writer(new.fd)
            if is_wanted or inode_of(fd, new.name) != new.inode:
                self._move_back(self._folder, new.name)

    def _is_untouched(self, new: _Beside) -> bool:
        """Whether nobody has written to the new text; from now on, whoever comes to do so waits."""
        new.leased = self._disk.lease(new.fd)
        return new.leased is not False and read_all(new.fd) == new.raw

    # The new text, beside the note.

    @contextlib.contextmanager
    def _beside(self, raw: bytes, like: Held | None = None) -> Iterator[_Beside]:
        fd = self._folder.fd
        name = new_name()
        new_fd = self._disk.create(fd, name, 0o600 if like else 0o644)
        new = _Beside(name, new_fd, inode(os.fstat(new_fd)), raw)
        try:
            self._disk.write(new_fd, raw)
            if like:
                self._disk.dress(new_fd, like.fd)
            yield new
        finally:
            # Under its name there may be a person's file by now, which only `is_spent` gives leave to remove.
            with contextlib.suppress(OSError):
                if new.is_spent or inode_of(fd, new.name) == new.inode:
                    self._disk.remove(fd, new.name)
            os.close(new_fd)

    # What is there.

    @contextlib.contextmanager
    def _held(self, base: str) -> Iterator[Held]:
        held = self._hold()
        if held is None:
            raise Conflict(self._path, base, "")
        try:
            if held.leased is False or held.digest != base:
                raise Conflict(self._path, base, held.digest, held.raw.decode(errors="replace"))
            yield held
        finally:
            os.close(held.fd)

    def _conflict(self, base: str) -> Conflict:
        held = self._hold()
        if held is None:
            return Conflict(self._path, base, "")
        os.close(held.fd)
        return Conflict(self._path, base, held.digest, held.raw.decode(errors="replace"))

    def _hold(self) -> Held | None:
        return hold(self._disk, self._folder.fd, self._name, self._path, self._limit, self._deadline)

    def _must_be_free(self, instead_of: str = "") -> None:
        """Raises Conflict where the note is there already, UnsafePath where something else, or nearly the same, is."""
        with contextlib.suppress(FileNotFoundError):
            must_be_plain(os.stat(self._name, dir_fd=self._folder.fd, follow_symlinks=False), self._path)
            raise self._conflict("")
        others = (name for name in self._folder.names() if name != instead_of)
        if twin := twin_of(self._name, others):
            raise UnsafePath(self._path, f"{twin!r} is there, which some systems take for the same name")

    def _must_be_in_place(self) -> None:
        if not self._folder.is_in_place():
            raise UnsafePath(self._path, "its folder was moved away meanwhile")


@dataclass(slots=True)
class _Beside:
    """A new text under a hidden name. `is_spent`: what the name means now may be removed, whatever it is."""

    name: str
    fd: int
    inode: Inode
    raw: bytes
    leased: bool | None = False
    is_spent: bool = False
