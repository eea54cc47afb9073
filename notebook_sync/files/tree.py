"""The notebook's folder: one spelling for each path, a look at what is there, one file read whole.

Follows no symbolic link and writes nothing.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path

import msgspec

from notebook_sync.errors import ConfigError, NoSuchNote, UnreadableFile, UnsafePath
from notebook_sync.files.beneath import (
    Read,
    clamp_ns,
    opened_file,
    opened_folder,
    read_all,
    read_whole,
    stamp_of,
    time_of,
)
from notebook_sync.files.names import (
    GITIGNORE,
    Rules,
    is_hidden,
    is_ignored,
    is_note_name,
    is_system_folder,
    read_rules,
)
from notebook_sync.files.private import FOLDER, printable
from notebook_sync.model import CORE_FACTS, RUNTIME_FILES, SETTINGS_FILE, Stamp
from notebook_sync.permissions import CHANNEL_FILE, NO_MEMBERS, Members, guarded_key, members_in
from notebook_sync.settings import NotebookTable

LINK = "is a symbolic link, or reached through one; links are not followed"
_PLACEHOLDER = ".icloud"
_TRIES = 50
_PAUSE_SECONDS = 0.001
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_Rules = tuple[Rules, ...]


class Scan(msgspec.Struct):
    """What a look at the folder found; paths are relative to the root.

    `refused`: why files with a note's name are none, and folders cannot be entered. `blind`: folders and files whose
    absence proves nothing. `attachments`: size and mtime_ns of all other files.
    """

    seen: dict[str, Stamp] = msgspec.field(default_factory=dict)
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    blind: set[str] = msgspec.field(default_factory=set)
    attachments: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)

    def is_blind_to(self, path: str) -> bool:
        """Whether `path` is where nobody could look, so that it must not be called gone."""
        return is_at_or_below(path, self.blind)


class Tree:
    """A folder of Markdown. Paths are relative to `root`, with `/` between the parts.

    `always` are the files of the prompt: notes although git ignores them or `exclude` names them, since rules that a
    session reads must not be missing from lists; a bare file name means them first. `mounts` are folders that were seen
    on another file system; keep them between processes, so that one that is not mounted is not taken for deleted notes.
    Raises ConfigError for a broken pattern in `exclude`.
    """

    def __init__(
        self,
        root: Path,
        settings: NotebookTable,
        always: Collection[str] = (*RUNTIME_FILES, CORE_FACTS),
        mounts: Iterable[str] = (),
    ) -> None:
        self.root = root
        self.max_file_bytes = settings.max_file_bytes
        self.mounts = set(mounts)
        self._always = tuple(always)
        self._named = {guarded_key(path): path for path in always}
        self._exclude = read_rules("", tuple(settings.exclude))
        if broken := [line for rules in self._exclude for line in rules.broken]:
            raise ConfigError(
                f"notebook.exclude has {broken[0]!r}, which is no pattern",
                path=SETTINGS_FILE,
                next="write patterns as in a .gitignore",
            )

    def place(self, name: str) -> str:
        """The one spelling of a path in the notebook, whether or not there is a file: relative, without `.`, `..` and
        empty parts. A bare file name that means a file of the prompt, in any spelling, is that file's path.

        Raises UnsafePath for a path that leads outside.
        """
        path = posixpath.normpath(name)
        if path.startswith("/"):
            path = os.path.relpath(path, self.root)
        if "\0" in path or path.split("/")[0] in ("", ".", ".."):
            raise UnsafePath(name, "leads out of the notebook", next="name the note by its path in the notebook")
        return path if "/" in path else self._named.get(guarded_key(path), path)

    def stat(self, path: str) -> Stamp | None:
        """The stamp of the regular file at `path`; None where there is none."""
        try:
            found = os.lstat(f"{self.root}/{path}")
        except (OSError, ValueError):
            return None
        return stamp_of(found) if stat.S_ISREG(found.st_mode) else None

    def modified_at(self, path: str) -> datetime | None:
        """When the file was last written to, aware UTC; None where there is none."""
        stamp = self.stat(path)
        return time_of(stamp.mtime_ns) if stamp else None

    def read(self, path: str) -> Read:
        """The file's bytes and their stamp.

        Raises NoSuchNote; UnsafePath for a hidden path, a link or a way out; UnreadableFile for what is too large, no
        regular file, or not permitted; RootLost.
        """
        if any(map(is_hidden, path.split("/"))):
            raise UnsafePath(path, "is hidden, and hidden files are not part of the notebook")
        above, _, name = path.rpartition("/")
        for _ in range(_TRIES):
            try:
                with opened_folder(self.root, above) as folder, opened_file(folder, name) as fd:
                    self._must_be_readable(path, os.fstat(fd))
                    read = read_whole(fd, self.max_file_bytes + 1)
            except BlockingIOError:  # under a lease, whose holder is now asked to give it back
                read = None
            except (OSError, ValueError) as error:
                raise _why_unread(path, error) from None
            if read is not None:
                return read
            time.sleep(_PAUSE_SECONDS)
        raise UnreadableFile(path, "was written to during every read; it is looked at again")

    def members(self, channel: str) -> Members:
        """Whom the channel.toml in the folder `channel` lets in, next to its agent; nobody where there is none."""
        try:
            return members_in(self.read(f"{channel}/{CHANNEL_FILE}").raw)
        except (NoSuchNote, UnreadableFile, UnsafePath):
            return NO_MEMBERS

    def folders(self, path: str) -> list[str]:
        """The names of the folders in a folder, sorted; none where it does not exist, or only through a link."""
        try:
            with opened_folder(self.root, path) as folder, os.scandir(folder) as entries:
                return sorted(each.name for each in entries if each.is_dir(follow_symlinks=False))
        except OSError:
            return []

    def scan(self, places: Collection[str] | None = None) -> Scan:
        """Look at `places`, files or folders with all below them; at everything for None. Raises RootLost."""
        scan = Scan()
        wanted = {""} if places is None else set(places)
        rules_above = cache(self._rules_in)  # the same for all places in a folder, within one look
        for place in sorted(wanted):
            self._look_at(place, self._rules_for(place, rules_above), scan)
        for path in self._always:
            if path not in scan.seen and is_at_or_below(path, wanted):
                self._look_at(path, (), scan)
        for mount in self.mounts:
            with suppress(OSError), opened_folder(self.root, mount) as fd:
                if not self._is_mounted(fd) and not os.listdir(fd):  # noqa: PTH208 - a descriptor
                    _note_blindness(mount, "had a file system of its own, which is not mounted", scan)
        return scan

    def why_left_out(self, path: str) -> str:
        """Why a file at this path would be no note, by ignore rules and the folders it is in; "" where it could be."""
        rules = self._rules_for(path, self._rules_in)
        if path not in self._always and (rules is None or is_ignored(rules, path, is_dir=False)):
            return "is left out by .gitignore or notebook.exclude, or in a system folder, so it would be no note"
        return ""

    def _must_be_readable(self, path: str, found: os.stat_result) -> None:
        if reason := self._why_not_readable(found):
            raise UnreadableFile(path, reason)
        if found.st_nlink > 1:
            private = (*self.root.glob(f"{FOLDER}/*"), *self.root.glob(".git/*"))
            if any(os.path.samestat(found, each.lstat()) for each in private):
                raise UnreadableFile(path, f"is another name of a file in {FOLDER} or .git; delete it")

    def _why_not_readable(self, found: os.stat_result) -> str:
        if not stat.S_ISREG(found.st_mode):
            return "is not a regular file; move it away, or add it to notebook.exclude"
        is_too_large = found.st_size > self.max_file_bytes
        limit = f"notebook.max_file_bytes = {self.max_file_bytes:,}"
        return f"has {found.st_size:,} bytes, more than {limit}" if is_too_large else ""

    def _rules_for(self, path: str, rules_in: Callable[[str], _Rules]) -> _Rules | None:
        """The rules for what is in the folder of `path`; None where nothing in it can be a note."""
        rules = self._exclude
        parts = path.split("/") if path else []
        for depth in range(len(parts)):
            folder = "/".join(parts[:depth])
            if folder and _is_left_out(folder, rules):
                return None
            rules += rules_in(folder)
        return rules

    def _rules_in(self, folder: str) -> _Rules:
        with suppress(OSError), opened_folder(self.root, folder) as fd, opened_file(fd, GITIGNORE) as file:
            return read_rules(folder, tuple(read_all(file).decode(errors="replace").splitlines()))
        return ()

    def _look_at(self, place: str, rules: _Rules | None, scan: Scan) -> None:
        """Look at one place: a file, a folder with all below it, or nothing. "" is the root."""
        above, _, name = place.rpartition("/")
        folders: list[tuple[str, _Rules]] = []
        try:
            with opened_folder(self.root, above) as fd:
                found = os.stat(name or ".", dir_fd=fd, follow_symlinks=False)
            if rules is not None:
                self._meet(place, name, found, rules, scan, folders)
        except OSError as error:
            _note_trouble(place, error, scan)
        while folders:
            folder, rules = folders.pop()
            try:
                self._look_into(folder, rules, scan, folders)
            except OSError as error:
                _note_trouble(folder, error, scan)

    def _look_into(self, folder: str, rules: _Rules, scan: Scan, folders: list[tuple[str, _Rules]]) -> None:
        """Sort what is in one folder into the scan."""
        prefix = f"{folder}/" if folder else ""
        with opened_folder(self.root, folder) as fd, os.scandir(fd) as listing:
            if self._is_mounted(fd) and not is_at_or_below(folder, self.mounts):
                self.mounts.add(folder)
            rules += self._rules_in(folder)
            for entry in listing:
                path = prefix + entry.name
                try:
                    self._meet(path, entry.name, entry.stat(follow_symlinks=False), rules, scan, folders)
                except OSError as error:
                    _note_trouble(path, error, scan)

    def _is_mounted(self, folder: int) -> bool:
        """Whether an open folder is on another file system than the root."""
        return os.fstat(folder).st_dev != self.root.stat().st_dev

    def _meet(
        self, path: str, name: str, found: os.stat_result, rules: _Rules, scan: Scan, folders: list[tuple[str, _Rules]]
    ) -> None:
        """Sort one file into the scan, and one folder into those to look into."""
        mode, is_note = found.st_mode, is_note_name(name)
        if stat.S_ISDIR(mode):
            if not path or not _is_left_out(path, rules):
                folders.append((path, rules))
        elif name[0] == ".":
            _meet_hidden(path, name, scan)
        elif rules and is_ignored(rules, path, is_dir=False):
            return
        elif not path.isascii() and printable(path) != path:
            if is_note:
                scan.refused[printable(path)] = "has a name that is not UTF-8; rename it"
        elif stat.S_ISLNK(mode):
            if is_note or (self.root / path).is_dir():
                scan.refused[path] = LINK
        elif is_note and (stat.S_ISREG(mode) and found.st_size <= self.max_file_bytes):
            scan.seen[path] = stamp_of(found)
        elif is_note:
            scan.refused[path] = self._why_not_readable(found)
        elif stat.S_ISREG(mode) and name not in (SETTINGS_FILE, CHANNEL_FILE):
            scan.attachments[path] = (found.st_size, clamp_ns(found.st_mtime_ns))


def is_at_or_below(path: str, places: Iterable[str]) -> bool:
    """Whether `path` is one of the places, or in one of them; "" is the root."""
    return any(place in ("", path) or path.startswith(place + "/") for place in places)


def _is_left_out(folder: str, rules: _Rules) -> bool:
    """Whether nothing in a folder can be a note, by its name and the rules."""
    return is_system_folder(folder.rpartition("/")[2]) or is_ignored(rules, folder, is_dir=True)


def _meet_hidden(path: str, name: str, scan: Scan) -> None:
    """A hidden file may be what a cloud client left of a note that it took away."""
    note = name[1 : -len(_PLACEHOLDER)]
    if name.endswith(_PLACEHOLDER) and is_note_name(note):
        _note_blindness(path.removesuffix(name) + note, "is in the cloud only; download it to have it read", scan)


def _note_trouble(path: str, error: OSError, scan: Scan) -> None:
    """Note a place that could not be looked at; one that is not there is no such place."""
    if error.errno not in _GONE:
        _note_blindness(path, f"cannot be read: {error.strerror}".lower(), scan)


def _note_blindness(path: str, reason: str, scan: Scan) -> None:
    scan.blind.add(path)
    scan.refused[printable(path) or "."] = f"{reason}; until then its notes stay as they were"


def _why_unread(path: str, error: OSError | ValueError) -> NoSuchNote | UnsafePath | UnreadableFile:
    code = getattr(error, "errno", errno.EINVAL)  # a ValueError: a name with a NUL
    if code in {errno.ENOENT, errno.ENOTDIR}:
        return NoSuchNote(path)
    if code in {errno.ELOOP, errno.EINVAL}:
        return UnsafePath(path, LINK if code == errno.ELOOP else "leads out of the notebook")
    return UnreadableFile(path, os.strerror(code).lower())
