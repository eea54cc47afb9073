"""Files for the prompt: read from the disk at each call, and a copy of the last good version for when that fails.

The copies stand in `.notebook/good/`; they may be deleted at any time, and no database is asked.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from pathlib import Path

from notebook_sync.errors import UnreadableFile
from notebook_sync.files.provenance import is_external
from notebook_sync.files.unfinished import looks_unfinished
from notebook_sync.files.vault import Vault
from prompt import FileText

FOLDER = "good"
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
        """The file as it is; its last good version and the reason when it cannot be read or is being written."""
        try:
            raw, stamp = self._vault.read(path)
        except FileNotFoundError:
            return self._missing(path)
        except UnreadableFile as error:
            return self._last_good(path, error.reason, None)
        if looks_unfinished(raw) and self._is_recent(stamp.ctime_ns):
            return self._last_good(path, _UNDER_WAY, raw)
        with contextlib.suppress(OSError):
            self._keep(path, raw)
        return FileText(path, raw, external=is_external(raw))

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
        if good is None:
            return FileText(path, None)
        return FileText(path, good, _UNDER_WAY, external=is_external(good))

    def _last_good(self, path: str, reason: str, found: bytes | None) -> FileText:
        good = self._good(path)
        shown = found if good is None else good
        return FileText(path, shown, reason, found, external=shown is not None and is_external(shown))

    def _good(self, path: str) -> bytes | None:
        if path in self._kept:
            return self._kept[path]
        with contextlib.suppress(OSError):
            return self._copy_of(path).read_bytes()
        return None

    def _keep(self, path: str, raw: bytes) -> None:
        self._kept[path] = raw  # also when no copy can be written
        if self._copied.get(path) == raw:
            return
        copy = self._copy_of(path)
        if not _holds(copy, raw):
            _write(copy, raw)
        self._copied[path] = raw

    def _forget(self, path: str) -> None:
        """Else a file removed long ago would be back for a moment whenever its folder changes."""
        self._kept.pop(path, None)
        self._copied.pop(path, None)
        with contextlib.suppress(OSError):
            self._copy_of(path).unlink()

    def _copy_of(self, path: str) -> Path:
        return self._folder / f"{hashlib.sha256(path.encode()).hexdigest()[:16]}.md"


def _holds(copy: Path, raw: bytes) -> bool:
    try:
        return copy.read_bytes() == raw
    except FileNotFoundError:
        return False


def _write(copy: Path, raw: bytes) -> None:
    """In one step, and leaving nothing behind when it fails."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    fd, temporary = tempfile.mkstemp(dir=copy.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(raw)
        Path(temporary).replace(copy)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
