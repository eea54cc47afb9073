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
from notebook_sync.files.unfinished import looks_unfinished
from notebook_sync.files.vault import Vault
from prompt import FileText

FOLDER = "good"


class PromptFiles:
    """Reads files for the prompt from one vault. `folder` is the notebook's `.notebook`."""

    def __init__(self, vault: Vault, folder: Path, settle_seconds: float) -> None:
        self._vault = vault
        self._folder = folder / FOLDER
        self._settle_seconds = settle_seconds
        self._kept: dict[str, bytes] = {}

    def read(self, path: str) -> FileText:
        """The file as it is; its last good version and the reason when it cannot be read or is being written."""
        try:
            raw, stamp = self._vault.read(path)
        except FileNotFoundError:
            return FileText(path, None)
        except UnreadableFile as error:
            return self._last_good(path, error.reason, None)
        if looks_unfinished(raw) and time.time() - stamp.mtime_ns / 1e9 < self._settle_seconds:
            return self._last_good(path, "it is being written", raw)
        with contextlib.suppress(OSError):
            self._keep(path, raw)
        return FileText(path, raw)

    def _last_good(self, path: str, reason: str, found: bytes | None) -> FileText:
        with contextlib.suppress(OSError):
            return FileText(path, self._kept.get(path) or self._copy_of(path).read_bytes(), reason)
        return FileText(path, found, reason)

    def _keep(self, path: str, raw: bytes) -> None:
        if self._kept.get(path) == raw:
            return
        self._kept[path] = raw
        copy = self._copy_of(path)
        with contextlib.suppress(FileNotFoundError):
            if copy.read_bytes() == raw:
                return
        copy.parent.mkdir(parents=True, exist_ok=True)
        fd, temporary = tempfile.mkstemp(dir=copy.parent)
        with os.fdopen(fd, "wb") as file:
            file.write(raw)
        Path(temporary).replace(copy)

    def _copy_of(self, path: str) -> Path:
        return self._folder / f"{hashlib.sha256(path.encode()).hexdigest()[:16]}.md"
