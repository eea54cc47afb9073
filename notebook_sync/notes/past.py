"""What tools' edits found and left: copies in `.notebook/past`, so that an edit can be undone where there is no git.

A few for each note, the latest; they may be deleted at any time, and failing to keep one stops no edit.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from notebook_sync.folder import make_folder

FOLDER = "past"
KEPT = 20


@dataclass(frozen=True, slots=True)
class Copy:
    """One version that was kept. `rev` names it among those of its note."""

    rev: str
    at: datetime
    changed_by: str
    summary: str
    digest: str
    file: Path

    def read(self) -> bytes | None:
        """What the note said; None when the copy is gone, or is not what was kept."""
        try:
            raw = self.file.read_bytes().partition(b"\n")[2]
        except OSError:
            return None
        return raw if sha256(raw).hexdigest() == self.digest else None


class Past:
    """The copies of one notebook; `folder` is its `.notebook`."""

    def __init__(self, folder: Path) -> None:
        self._own = folder
        self._folder = folder / FOLDER

    def keep(self, path: str, raw: bytes, changed_by: str, summary: str) -> None:
        """Keep what the note at `path` says, unless that is what was kept last. Raises OSError."""
        digest = sha256(raw).hexdigest()
        newest = next(iter(self.copies(path)), None)
        if newest is not None and newest.digest == digest:
            return
        now = time.time_ns()
        head = {"path": path, "at": now, "changed_by": changed_by, "summary": summary, "digest": digest}
        make_folder(self._own)
        place = self._place(path)
        place.mkdir(parents=True, exist_ok=True)
        _write(place / f"{now:020d}-{digest[:12]}", json.dumps(head).encode() + b"\n" + raw)
        for old in sorted(place.iterdir(), reverse=True)[KEPT:]:
            old.unlink(missing_ok=True)

    def copies(self, path: str) -> Iterator[Copy]:
        """What was kept of the note at `path`, the latest first."""
        try:
            files = sorted(self._place(path).iterdir(), reverse=True)
        except OSError:
            return
        for file in files:
            copy = _copy_in(file)
            if copy is not None:
                yield copy

    def _place(self, path: str) -> Path:
        return self._folder / sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _copy_in(file: Path) -> Copy | None:
    try:
        with file.open("rb") as opened:
            head: Any = json.loads(opened.readline(1 << 16))
        at = datetime.fromtimestamp(head["at"] / 1e9, UTC)
        return Copy(file.name, at, str(head["changed_by"]), str(head["summary"]), str(head["digest"]), file)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def _write(file: Path, raw: bytes) -> None:
    """In one step, readable to the owner alone, and leaving nothing behind when it fails."""
    fd, temporary = tempfile.mkstemp(dir=file.parent.parent)
    try:
        with os.fdopen(fd, "wb") as opened:
            opened.write(raw)
        Path(temporary).replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
