"""Files for the prompt: read from the disk at each call, and a copy of the last good version for when that fails.

The copies are in `.notebook/good/`; they may be deleted at any time, and no database is asked.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from pathlib import Path

from notebook_sync.errors import GitFailed, UnreadableFile
from notebook_sync.files.provenance import is_external
from notebook_sync.files.unfinished import looks_unfinished
from notebook_sync.files.vault import Vault
from notebook_sync.folder import make_folder, replace_private
from notebook_sync.notes.conflict_marks import why_unusable
from prompt import FileText

FOLDER = "good"
# A prompt does not wait for git longer than this.
GIT_SECONDS = 2.0
_UNDER_WAY = "it is being written"


class PromptFiles:
    """Reads files for the prompt from one vault. `folder` is the notebook's `.notebook`."""

    def __init__(self, vault: Vault, folder: Path, settle_seconds: float) -> None:
        self._vault = vault
        self._folder = folder / FOLDER
        self._settle_seconds = settle_seconds
        self._kept: dict[str, bytes] = {}
        self._copied: dict[str, bytes] = {}

    def read(self, path: str) -> FileText:
        """The file as it is; its last good version and the reason when it is unreadable, unusable or being written.

        `content` is None with a `problem` where there is no good version either.
        """
        try:
            raw, stamp = self._vault.read(path)
        except FileNotFoundError:
            return self._missing(path)
        except UnreadableFile as error:
            return as_source(path, self._good(path), error.reason)
        if looks_unfinished(raw) and self._is_recent(stamp.ctime_ns):
            good = self._good(path)
            return as_source(path, raw if good is None else good, _UNDER_WAY, raw)
        if raw != self._kept.get(path) and (reason := why_unusable(raw)):
            good = self._good(path)
            return as_source(path, self._committed(path) if good is None else good, reason, raw)
        self._keep(path, raw)
        return as_source(path, raw)

    def _is_recent(self, ctime_ns: int) -> bool:
        """Whether this is within the settle time of now. For a ctime: an mtime can be set to any time."""
        return abs(time.time_ns() - ctime_ns) < self._settle_seconds * 1e9

    def _changed_in_folder_of(self, path: str) -> int:
        try:
            return (self._vault.root / path).parent.stat().st_ctime_ns
        except OSError:
            return 0

    def _missing(self, path: str) -> FileText:
        """Editors may put the old file aside before the new one is there."""
        if not self._is_recent(self._changed_in_folder_of(path)):
            self._forget(path)
        good = self._good(path)
        return as_source(path, good, "" if good is None else _UNDER_WAY)

    def _good(self, path: str) -> bytes | None:
        """The copy; not one that an earlier version of the program took of a file that is no longer good."""
        if path not in self._kept:
            with contextlib.suppress(OSError):
                raw = self._copy_of(path).read_bytes()
                if not why_unusable(raw):
                    self._kept[path] = raw
        return self._kept.get(path)

    def _committed(self, path: str) -> bytes | None:
        """The last commit's version, which is then the good one: git is asked once."""
        from notebook_sync.files.git import blobs_of  # no good file needs it

        name = f"HEAD:./{path}"
        with contextlib.suppress(FileNotFoundError, GitFailed):
            raw = blobs_of(self._vault.root, [name], seconds=GIT_SECONDS).get(name)
            if raw is not None and not why_unusable(raw):
                self._keep(path, raw)
        return self._kept.get(path)

    def _keep(self, path: str, raw: bytes) -> None:
        self._kept[path] = raw  # also when no copy can be written
        if self._copied.get(path) != raw:
            with contextlib.suppress(OSError):
                keep_copy(self._copy_of(path), raw)
                self._copied[path] = raw

    def _forget(self, path: str) -> None:
        """Else a file removed long ago would be back for a moment whenever its folder changes."""
        self._kept.pop(path, None)
        self._copied.pop(path, None)
        with contextlib.suppress(OSError):
            self._copy_of(path).unlink()

    def _copy_of(self, path: str) -> Path:
        return self._folder / copy_name(path)


def as_source(path: str, content: bytes | None, problem: str = "", found: bytes | None = None) -> FileText:
    """The file for a prompt, with who wrote what is shown of it."""
    return FileText(path, content, problem, found, external=content is not None and is_external(content))


def copy_name(path: str) -> str:
    """The name of the file that holds a copy of the one at `path`."""
    return f"{hashlib.sha256(path.encode()).hexdigest()[:16]}.md"


def keep_copy(copy: Path, raw: bytes) -> None:
    """Write what `copy` does not hold yet in one step, with mode 0600. Raises OSError, and then leaves nothing."""
    with contextlib.suppress(FileNotFoundError):
        if copy.read_bytes() == raw:
            return
    make_folder(copy.parent)
    replace_private(copy, raw)
