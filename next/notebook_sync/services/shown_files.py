"""Which version of each prompt file is shown: the file as it is, its last good version, or the one the owner trusts.

A copy of the last good version of each file is in `.notebook/good/`. Trusted versions are those that git has, and those
that the owner accepted. Token counts are kept there, too. Nothing here needs the index.
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from notebook_sync.errors import GitFailed, NoSuchNote, NotebookError, UnreadableFile, UnsafePath
from notebook_sync.files.private import read_json, read_private, write_private
from notebook_sync.files.state import Place
from notebook_sync.files.tree import Tree
from notebook_sync.files.usable import looks_unfinished, why_unusable
from notebook_sync.settings import Settings
from prompt import FileText

if TYPE_CHECKING:
    from notebook_sync.files.history import History

FOLDER = "good"
_BEING_WRITTEN = "it is being written"
_EMPTY = why_unusable(b"")
_MOST_COUNTS = 4096


class ShownFiles:
    """Reads the files of one notebook's prompt. May be used from several threads."""

    def __init__(self, tree: Tree, place: Place, settings: Settings) -> None:
        self.needs_trust = settings.prompt.trust == "committed"
        self._tree = tree
        self._folder = place.lock_folder / FOLDER
        self._accepted = place.state / "accepted"
        self._settle_seconds = settings.sync.settle_ms / 1000
        self._place, self._git = place, settings.git
        self._copies: dict[str, bytes] = {}
        self._trusted: dict[str, tuple[object, bytes | None]] = {}

    def read(self, path: str) -> FileText:
        """The file as a prompt shows it. `problem` says why where that is not the file as it is."""
        found, problem = self.found(path)
        if not self.needs_trust:
            return self._good(path, found, problem)
        waits = f"[{path} waits for the owner's trust]\n".encode()
        try:
            trusted = self.trusted(path)
        except GitFailed as error:
            return as_source(path, waits, f"no version of it is known to be trusted: {error}", found)
        if is_same(trusted, found):
            return as_source(path, found)
        problem = problem or f"changes wait for trust: notebook-sync trust {path}"
        return as_source(path, waits if trusted is None else trusted, problem, found)

    def found(self, path: str) -> tuple[bytes | None, str]:
        """The bytes that are in the file now, None for no file, and why they cannot be shown."""
        try:
            read = self._tree.read(path)
        except NoSuchNote:
            # Editors may put the old file aside before the new one is there.
            if self._copy(path) is not None and self._is_recent(_changed_at((self._tree.root / path).parent)):
                return None, _BEING_WRITTEN
            self._copies.pop(path, None)
            with suppress(OSError):
                self._file(path).unlink()
            return None, ""
        except (UnreadableFile, UnsafePath) as error:
            return None, error.reason
        if looks_unfinished(read.raw) and (not read.settled or self._is_recent(read.stamp.ctime_ns)):
            return read.raw, _BEING_WRITTEN
        return read.raw, "" if self._copies.get(path) == read.raw else why_unusable(read.raw)

    def trusted(self, path: str) -> bytes | None:
        """What the owner accepted since the last commit of the file, else what that commit has; None for neither.

        Raises GitFailed.
        """
        stamp = (self._history.head_stamp(), _changed_at(self._accepted))
        known = self._trusted.get(path)
        if known is None or known[0] != stamp:
            raw = self._history.accepted(path)
            known = self._trusted[path] = stamp, self._committed(path) if raw is None else raw
        return known[1]

    def accept(self, path: str, raw: bytes | None) -> None:
        """Trust this version until the last commit has another one; None for no file. Raises GitFailed."""
        self._history.accept(path, raw or b"")
        self._trusted.pop(path, None)

    def _good(self, path: str, found: bytes | None, problem: str) -> FileText:
        """The file, or its last good version."""
        if not problem:
            if found is not None and self._copies.get(path) != found:
                self._copies[path] = found  # also where no copy can be written
                keep_copy(self._file(path), found)
            return as_source(path, found)
        good = self._copy(path)
        if good is None and found is not None and problem != _BEING_WRITTEN:
            with suppress(GitFailed):
                good = self._committed(path)
        if good is None and problem in (_BEING_WRITTEN, _EMPTY):  # it never said anything else
            return as_source(path, found, "" if problem == _EMPTY else problem)
        if good is None:
            return as_source(path, f"[{path} cannot be read and is not shown]\n".encode(), problem, found)
        meant = "; delete the file if it is meant to be empty" if problem == _EMPTY else ""
        return as_source(path, good, f"{problem}; its last good version is shown{meant}", found)

    @cached_property
    def _history(self) -> History:
        from notebook_sync.files.history import History  # git is asked only about what is not as it should be

        return History(self._place, self._tree, self._git)

    def _committed(self, path: str) -> bytes | None:
        raw = self._history.head_text(path)
        return None if raw is None or why_unusable(raw) else raw

    def _is_recent(self, ctime_ns: int) -> bool:
        """Within the settle time of now. A ctime, since an mtime can be set to anything."""
        return abs(time.time_ns() - ctime_ns) < self._settle_seconds * 1e9

    def _copy(self, path: str) -> bytes | None:
        if path not in self._copies:
            with suppress(OSError):
                raw = read_private(self._file(path))
                if raw is not None and not why_unusable(raw):
                    self._copies[path] = raw
        return self._copies.get(path)

    def _file(self, path: str) -> Path:
        return self._folder / f"{sha256(path.encode()).hexdigest()[:16]}.md"


class CountFile:
    """A `prompt.CountCache` in one JSON file, so that an unchanged prompt needs no vocabulary in the next process.

    A file that is missing, broken or not writable costs time, never an error; the last process to save wins.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._counts = {key: tokens for key, tokens in read_json(path).items() if type(tokens) is int and tokens >= 0}
        self._is_new = False

    def get(self, key: str) -> int | None:
        """The count of a key, None where it is not known."""
        return self._counts.get(key)

    def put(self, key: str, tokens: int) -> None:
        """Remember a count."""
        self._counts[key] = tokens
        self._is_new = True

    def save(self) -> None:
        """Write what is new, and forget what is oldest."""
        if self._is_new:
            self._is_new = False
            self._counts = dict(list(self._counts.items())[-_MOST_COUNTS:])
            keep_copy(self._path, msgspec.json.encode(self._counts))


def as_source(path: str, content: bytes | None, problem: str = "", found: bytes | None = None) -> FileText:
    """A file's bytes as the prompt takes them."""
    if content is not None and content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"-", b"+", b"{"):
        from notebook_sync.files.frontmatter import is_external  # few files of a prompt have any frontmatter

        return FileText(path, content, problem, found, external=is_external(content))
    return FileText(path, content, problem, found)


def keep_copy(file: Path, raw: bytes) -> None:
    """Write a copy; where the disk is full or cannot be written, the next call tries again."""
    with suppress(OSError, NotebookError):
        write_private(file, raw)


def is_same(one: bytes | None, other: bytes | None) -> bool:
    """Whether these are one text, in a file or in none: git may keep other line ends than the file has."""
    return one == other or lines_of(one) == lines_of(other)


def lines_of(raw: bytes | None) -> list[str]:
    """The lines of a text without their ends."""
    return (raw or b"").decode(errors="replace").replace("\r\n", "\n").split("\n")


def _changed_at(folder: Path) -> int:
    """The ctime of a folder in ns, 0 where there is none."""
    with suppress(OSError):
        return folder.stat().st_ctime_ns
    return 0
