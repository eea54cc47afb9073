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

from notebook_sync.files.moves import own_id
from notebook_sync.folder import make_folder

FOLDER = "past"
KEPT = 20


@dataclass(frozen=True, slots=True)
class Copy:
    """One version that was kept. `rev` names it among those of its note; it `begins` where no note was before."""

    path: str
    rev: str
    at: datetime
    changed_by: str
    summary: str
    digest: str
    begins: bool
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

    def keep(self, path: str, raw: bytes, changed_by: str, summary: str, *, begins: bool = False) -> None:
        """Keep what the note at `path` says, unless that is what was kept last. Raises OSError."""
        digest = sha256(raw).hexdigest()
        newest = next(self._copies_at(self._place(path)), None)
        if newest is not None and newest.digest == digest:
            return
        now = time.time_ns()
        head = {"path": path, "at": now, "changed_by": changed_by, "summary": summary, "digest": digest}
        head |= {"begins": True} if begins else {}
        make_folder(self._own)
        place = self._place(path)
        place.mkdir(parents=True, exist_ok=True)
        _write(place / f"{now:020d}-{digest[:12]}", json.dumps(head).encode() + b"\n" + raw)
        for old in sorted(place.iterdir(), reverse=True)[KEPT:]:
            old.unlink(missing_ok=True)

    def copies(self, path: str) -> Iterator[Copy]:
        """What was kept of the note at `path`, the latest first: not of one with another id that was there before."""
        begun: Copy | None = None
        for copy in self._copies_at(self._place(path)):
            if begun is not None and not _is_of_one_note(begun, copy):
                return
            yield copy
            begun = copy if copy.begins else None

    def newest(self, limit: int) -> Iterator[Copy]:
        """The last copy of each of the `limit` notes of which one was kept last, the latest first."""
        try:
            places = sorted(self._folder.iterdir(), key=lambda place: place.stat().st_mtime_ns, reverse=True)
        except OSError:
            return
        for place in places[:limit]:
            copy = next(self._copies_at(place), None)
            if copy is not None:
                yield copy

    def _copies_at(self, place: Path) -> Iterator[Copy]:
        try:
            files = sorted(place.iterdir(), reverse=True)
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
        changed_by, summary, digest = (str(head[name]) for name in ("changed_by", "summary", "digest"))
        return Copy(str(head["path"]), file.name, at, changed_by, summary, digest, head.get("begins") is True, file)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def _is_of_one_note(begun: Copy, before: Copy) -> bool:
    new, old = begun.read(), before.read()
    return new is not None and old is not None and own_id(new) == own_id(old)


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
