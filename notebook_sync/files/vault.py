"""The notebook's folder: walk it, stamp a file, read a file whole, write a note. Follows no symbolic link, ever."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import posixpath
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from notebook_sync.errors import ConfigError, RootLost, TooLarge, UnreadableFile, UnsafePath
from notebook_sync.files.beneath import open_beneath
from notebook_sync.files.creating import create_all
from notebook_sync.files.disk import Disk
from notebook_sync.files.ignore import GITIGNORE, Rules, is_hidden, is_ignored, is_note_name
from notebook_sync.files.names import reason_against
from notebook_sync.files.note import RUNTIME_FILES, Stamp
from notebook_sync.files.stamped import Reading, read_stamped, stamp_of
from notebook_sync.files.writing import renaming, writing
from notebook_sync.folder import FOLDER
from notebook_sync.permissions import plain_parts

_TRIES = 10
_PAUSE_SECONDS = 0.001
_RUNTIME = "runtime"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_GONE = {errno.ENOENT, errno.ENOTDIR}


@dataclass(slots=True)
class Scan:
    """What a walk found. `blind` are places that could not be looked at: nothing there may be called gone. `excluded`
    are files with a note's name, and folders, that the rules leave out."""

    seen: dict[str, Stamp] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    blind: set[str] = field(default_factory=set)
    excluded: set[str] = field(default_factory=set)

    def is_blind_to(self, path: str) -> bool:
        """Whether `path` stands at a place that could not be looked at, so that its absence proves nothing."""
        return any(not place or path == place or path.startswith(place + "/") for place in self.blind)


class Vault:
    """A folder of Markdown. Paths are relative to `root`, with `/` between the parts.

    Raises ConfigError for an `exclude` that is no pattern.
    """

    disk = Disk()

    def __init__(self, root: Path, *, exclude: Sequence[str] = (), max_file_bytes: int = 2 << 20) -> None:
        self.root = root
        self.max_file_bytes = max_file_bytes
        self._exclude = Rules.read("", exclude)
        if self._exclude.broken:
            raise ConfigError(f"exclude = {self._exclude.broken[0]!r} is no pattern; write it as in a .gitignore")

    def scan(self, places: Iterable[str] | None = None, *, enters: Callable[[str], bool] = lambda _: True) -> Scan:
        """The notes at `places` and below them; of the whole notebook for None. Folders that `enters` refuses are left
        out. Raises RootLost."""
        scan = Scan()
        self.identity()
        rules_of = cache(self._rules_in)  # a checkout touches a thousand files in one folder
        below = {self.relative(place) for place in ([""] if places is None else places)}
        for place in sorted(place for place in below if place is not None):
            self._look_at(place, scan, rules_of, enters)
        return scan

    def folders(self, place: str) -> list[str]:
        """The names of the folders right in `place`, sorted, where notes may lie; none where no folder can be read."""
        try:
            with self._opened(place) as fd, os.scandir(fd) as listing:
                found = [entry.name for entry in listing if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        return sorted(name for name in found if not is_hidden(name) and _is_utf8(name))

    def relative(self, name: str) -> str | None:
        """The one spelling of a path below the root, without `.`, `..` and empty parts; None for a place outside."""
        path = posixpath.normpath(name)
        if path.startswith("/"):
            root = self.root.as_posix().rstrip("/")
            path = "/" + path.lstrip("/") + "/"
            if not path.startswith(root + "/"):
                return None
            path = path[len(root) :].strip("/")
        return None if path.split("/")[0] == ".." else "" if path == "." else path

    def place(self, name: str) -> str | None:
        """The one path that `name` means to every operation: as `relative`, but the bare name of a file that exists in
        `runtime/`, in any spelling, means that file. A file elsewhere never shadows it."""
        place = self.relative(name)
        bare = _bare(place or "")
        runtime = self.runtime_names().get(bare) if bare else None
        return runtime if runtime and os.path.lexists(self.root / runtime) else place

    def runtime_names(self) -> dict[str, str]:
        """The paths of the files in `runtime/`, by their file names in the form of `plain_parts`. The files that every
        notebook is made with are among them, whether they exist or not."""
        try:
            names = sorted(os.listdir(self.root / _RUNTIME))  # noqa: PTH208 - names are all that is needed
        except OSError:
            names = []
        # The last one wins where names differ in their spelling alone.
        names = [*RUNTIME_FILES, *names, *(name for name in RUNTIME_FILES if name in names)]
        return {_bare(name): f"{_RUNTIME}/{name}" for name in names if is_note_name(name)}

    def runtime_file(self, name: str) -> str:
        """The runtime file that answers to `name`, a path or an id, also without the ending; "" for none."""
        bare = _bare(name).removesuffix(".md")
        return self.runtime_names().get(f"{bare}.md", "") if bare else ""

    def reason_against(self, name: str) -> str:
        """Why what stands at `name` can be no note, whatever it says: it is outside, hidden, or reached through a link;
        "" where nothing speaks against it, also where nothing stands there."""
        place = self.relative(name)
        if place is None:
            return "leads out of the notebook; name a note by its path in it"
        kind, folder = stat.S_IFDIR, self.root
        for part in place.split("/") if place else ():
            if is_hidden(part):
                return f"{part!r} is hidden, and what is hidden is no note"
            folder = folder / part
            try:
                kind = stat.S_IFMT(os.lstat(folder).st_mode)
            except (OSError, ValueError):
                return ""
            if kind == stat.S_IFLNK:
                return "is a symbolic link, or reached through one; links are not followed"
        return "" if kind in {stat.S_IFREG, stat.S_IFDIR} else "is not a regular file"

    def identity(self) -> tuple[int, int]:
        """Device and inode of the root: another pair means that the folder was replaced. Raises RootLost."""
        try:
            found = self.root.stat()
        except OSError as error:
            raise RootLost(f"{self.root}: {error.strerror}; deletions wait until it is back") from None
        if not stat.S_ISDIR(found.st_mode):
            raise RootLost(f"{self.root} is not a folder; deletions wait until it is back")
        return found.st_dev, found.st_ino

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of the regular file at `path`, or None where there is none."""
        place = self.relative(path)
        if place is None:
            return None
        try:
            found = os.lstat(f"{self.root}/{place}")  # asked of hundreds at a time: a Path takes as long
        except (OSError, ValueError):
            return None
        return stamp_of(found) if stat.S_ISREG(found.st_mode) else None

    def read(self, path: str) -> tuple[bytes, Stamp]:
        """The file's bytes and the stamp they belong to. As `read_closely`."""
        reading = self.read_closely(path)
        return reading.raw, reading.stamp

    def read_closely(self, path: str) -> Reading:
        """The file's bytes, and how far its stamp vouches for them, as `read_stamped`.

        Raises FileNotFoundError, or UnreadableFile with the reason (a link, no permission, too large).
        """
        try:
            root_fd = os.open(self.root, _FOLDER)
            try:
                return self._read(root_fd, path)
            finally:
                os.close(root_fd)
        except FileNotFoundError:
            raise
        except OSError as error:
            if error.errno in _GONE:
                raise FileNotFoundError(path) from None
            raise UnreadableFile(path, _worded(error)) from None

    def digest(self, path: str) -> str | None:
        """The sha256 of the file as it is now, in hex; None where there is none. Raises UnreadableFile."""
        try:
            return hashlib.sha256(self.read(path)[0]).hexdigest()
        except FileNotFoundError:
            return None

    def write(self, path: str, raw: bytes, *, base: str | None) -> Stamp:
        """Make `raw` the note at `path`, durably, if its digest is `base`; for None, if there is no such note yet.

        Raises Conflict, UnsafePath, TooLarge, UnreadableFile, UnwritableFile, RootLost; nothing was changed then.
        """
        if len(raw) > self.max_file_bytes:
            raise TooLarge(path, len(raw), self.max_file_bytes)
        self.must_be_for_notes(path)
        with writing(self.root, path, base, self.max_file_bytes, self.disk) as note:
            return stamp_of(note.create(raw) if base is None else note.replace(raw, base))

    def create_all(self, folder: str, notes: Mapping[str, bytes]) -> dict[str, Stamp]:
        """Make new notes in one folder, by name, durably: the stamps, by path, of those whose names were free.

        Raises as `write`; then none of them was made.
        """
        for name, raw in notes.items():
            if len(raw) > self.max_file_bytes:
                raise TooLarge(f"{folder}/{name}", len(raw), self.max_file_bytes)
        rules = cache(self._rules_in)
        for name in notes:
            self._must_be_for_notes(f"{folder}/{name}", rules)
        made = create_all(self.root, folder, notes, self.disk)
        return {f"{folder}/{name}": stamp_of(found) for name, found in made.items()}

    def delete(self, path: str, *, base: str) -> None:
        """Remove the note at `path` if its digest is `base`. Raises as `write`."""
        self.must_be_for_notes(path)
        with writing(self.root, path, base, self.max_file_bytes, self.disk) as note:
            note.delete(base)

    def rename(self, old: str, new: str, *, base: str) -> Stamp:
        """Give the note at `old` the path `new`, where nothing is yet, if its digest is `base`. Raises as `write`."""
        self.must_be_for_notes(old)
        self.must_be_for_notes(new)
        with renaming(self.root, old, new, base, self.max_file_bytes, self.disk) as (note, target):
            return stamp_of(note.move(target, base))

    def must_be_for_notes(self, path: str) -> None:
        """Raises UnsafePath where a file at `path` would not be a note, or be one under another name elsewhere."""
        self._must_be_for_notes(path, self._rules_in)

    def _must_be_for_notes(self, path: str, rules_of: Callable[[str], list[Rules]]) -> None:
        if reason := reason_against(path):
            raise UnsafePath(path, reason)
        rules = [self._exclude]
        folder = ""
        for name in path.split("/"):
            rules += rules_of(folder)
            folder = f"{folder}/{name}" if folder else name
            if is_ignored(rules, folder, is_dir=folder != path):
                raise UnsafePath(path, "is left out by .gitignore or by `exclude` in notebook.toml, so it is no note")

    def _read(self, root_fd: int, path: str) -> Reading:
        for _ in range(_TRIES):
            fd = open_beneath(root_fd, path, os.O_RDONLY)
            try:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode):
                    raise UnreadableFile(path, "not a regular file")
                if found.st_nlink > 1 and self._is_of_our_own(found):
                    raise UnreadableFile(path, f"another name of a file in {FOLDER} or .git, a hard link; delete it")
                if found.st_size > self.max_file_bytes:
                    raise UnreadableFile(path, self._beyond(found.st_size))
                reading = read_stamped(fd, self.max_file_bytes + 1)
            finally:
                os.close(fd)
            if reading is not None:
                return reading
            time.sleep(_PAUSE_SECONDS)
        raise UnreadableFile(path, "was written to during every read; it is looked at again")

    def _is_of_our_own(self, found: os.stat_result) -> bool:
        """Whether a file is one of those with secrets, at any depth, by whatever name it is asked for."""
        folders = [f"{self.root}/{FOLDER}", f"{self.root}/.git"]
        while folders:
            with contextlib.suppress(OSError), os.scandir(folders.pop()) as listing:
                for entry in listing:
                    if entry.inode() == found.st_ino:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
        return False

    def _beyond(self, size: int) -> str:
        return (
            f"{size:,} bytes, more than max_file_bytes = {self.max_file_bytes:,}; "
            "raise the limit in notebook.toml or add the file to `exclude`"
        )

    def _look_at(
        self, place: str, scan: Scan, rules_of: Callable[[str], list[Rules]], enters: Callable[[str], bool]
    ) -> None:
        """One place: a file, a folder, or nothing."""
        rules = [self._exclude]
        folder = ""
        *parents, name = place.split("/") if place else [""]
        try:
            for parent in parents:
                rules += rules_of(folder)
                folder = f"{folder}/{parent}" if folder else parent
                is_folder = stat.S_ISDIR(os.lstat(self.root / folder).st_mode)
                if not is_folder or is_hidden(parent) or is_ignored(rules, folder, is_dir=True):
                    return
            found = os.lstat(self.root / place)
        except (OSError, ValueError) as error:
            _note_blindness(place, error, scan)
            return
        if is_hidden(name):
            return
        if place:
            rules += rules_of(folder)
        if not stat.S_ISDIR(found.st_mode):
            if is_note_name(name):
                _meet(place, found, rules, scan)
        elif not place or not is_ignored(rules, place, is_dir=True):
            self._walk(place, rules, scan, enters)

    def _walk(self, top: str, rules: list[Rules], scan: Scan, enters: Callable[[str], bool]) -> None:
        folders = [(top, rules)]
        while folders:
            folder, rules = folders.pop()
            try:
                with self._opened(folder) as fd, os.scandir(fd) as listing:
                    below = self._walk_one(folder, list(listing), rules, scan)
                    folders += (each for each in below if enters(each[0]))
            except OSError as error:
                _note_blindness(folder, error, scan)

    def _walk_one(
        self, folder: str, entries: list[os.DirEntry[str]], rules: list[Rules], scan: Scan
    ) -> Iterator[tuple[str, list[Rules]]]:
        """Sort the entries of one folder into the scan; yields the folders among them, with the rules for them."""
        if any(entry.name == GITIGNORE for entry in entries):
            rules = [*rules, *self._rules_in(folder)]
        prefix = folder + "/" if folder else ""
        for entry in entries:
            name = entry.name
            if name[0] == ".":  # as `is_hidden`, which a walk over 100,000 names has no time to call
                continue
            path = prefix + name
            if entry.is_dir(follow_symlinks=False):
                if is_ignored(rules, path, is_dir=True):
                    scan.excluded.add(path)
                else:
                    yield path, rules
            elif name.endswith(".md") or is_note_name(name):
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError as error:
                    _note_blindness(path, error, scan)
                    continue
                _meet(path, found, rules, scan)
            elif entry.is_symlink() and _leads_to_folder(entry) and not is_ignored(rules, path, is_dir=True):
                scan.refused[printable(path)] = _LINKED_FOLDER

    @contextlib.contextmanager
    def _opened(self, folder: str) -> Iterator[int]:
        """A descriptor of a folder below the root that no link leads to, also not one that was just put there."""
        root_fd = os.open(self.root, _FOLDER)
        try:
            fd = open_beneath(root_fd, folder or ".", _FOLDER)
        finally:
            os.close(root_fd)
        try:
            yield fd
        finally:
            os.close(fd)

    def _rules_in(self, folder: str) -> list[Rules]:
        """The rules of the `.gitignore` in `folder`, if it has one that can be read."""
        path = f"{folder}/{GITIGNORE}" if folder else GITIGNORE
        try:
            raw, _ = self.read(path)
        except (FileNotFoundError, UnreadableFile):
            return []
        return [Rules.read(folder, raw.decode(errors="replace").splitlines())]


def _bare(name: str) -> str:
    """A name without folders in the form of `plain_parts`; "" for a path through a folder."""
    parts = plain_parts(name) or ()
    return parts[0] if len(parts) == 1 else ""


def printable(path: str) -> str:
    """The path as it can be printed and stored: bytes of the name that are not UTF-8 are shown as `\\xNN`."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _meet(path: str, found: os.stat_result, rules: list[Rules], scan: Scan) -> None:
    """Sort one directory entry with a note's name into the scan."""
    if any(rule.asks_about_files for rule in rules) and is_ignored(rules, path, is_dir=False):
        scan.excluded.add(path)
        return
    if not path.isascii() and not _is_utf8(path):
        scan.refused[printable(path)] = "its name is not UTF-8; rename it"
    elif stat.S_ISREG(found.st_mode):
        scan.seen[path] = stamp_of(found)
    elif stat.S_ISLNK(found.st_mode):
        scan.refused[path] = "a symbolic link; links are not followed: put the file here or add it to `exclude`"
    else:
        scan.refused[path] = "not a regular file; add it to `exclude`"


_LINKED_FOLDER = "a symbolic link to a folder; links are not followed: add it to `exclude`"


def _leads_to_folder(link: os.DirEntry[str]) -> bool:
    try:
        return link.is_dir()
    except OSError:  # a link to itself
        return False


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _note_blindness(path: str, error: OSError | ValueError, scan: Scan) -> None:
    """A place that could not be looked at; one that is simply not there is no blindness."""
    if isinstance(error, OSError) and error.errno not in _GONE:
        scan.blind.add(path)
        scan.refused[printable(path) or "."] = _worded(error)


def _worded(error: OSError) -> str:
    if error.errno in {errno.ELOOP, errno.EXDEV}:
        return "reached through a symbolic link; links are not followed"
    return f"{error.strerror or error}".lower()
