"""What tools' edits found and left: copies in `.notebook/past`, so that an edit can be undone where there is no git.

A few for each note, the latest; they may be deleted at any time. Failing to keep one stops no edit but one that would
take away the only text there is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from notebook_sync.files.moves import own_id
from notebook_sync.folder import make_folder, replace_private

FOLDER = "past"
KEPT = 20
_LONGEST_HEAD = 1 << 16
NOT_KEPT = "saved, but no copy of what was there before is kept"
"""How a warning begins after which there is nothing to undo with."""


Together = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Copy:
    """One version that was kept. `rev` names it among those of its note; it `begins` where no note was before. `path`
    is where the note was then, `moved_from` where it had been up to then, "" where that was there too.

    `together` is what the edit that left it did to several notes as one: by path, the digests before and after.
    """

    path: str
    rev: str
    at: datetime
    changed_by: str
    summary: str
    digest: str
    begins: bool
    file: Path
    together: Together
    moved_from: str

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
        self._folder = folder / FOLDER

    def keep(
        self,
        path: str,
        raw: bytes,
        changed_by: str,
        summary: str,
        *,
        begins: bool = False,
        together: Together | None = None,
        moved_from: str = "",
    ) -> None:
        """Keep what the note at `path` says, unless that is what was kept last. Raises OSError.

        What was kept of one that was `moved_from` another path goes with it.
        """
        digest = sha256(raw).hexdigest()
        newest = next(self._copies_at(self._place(path)), None)
        coming = list(self.copies(moved_from)) if moved_from else []
        if newest is not None and not moved_from and (newest.path, newest.digest) == (path, digest):
            return
        # Behind the newest, also where the clock went back since: the order of copies is that in which they were made.
        now = max(time.time_ns(), 0, *(_moment(each) + 1 for each in (newest, *coming[:1]) if each))
        head = {"path": path, "at": now, "changed_by": changed_by, "summary": summary, "digest": digest}
        head |= {"begins": True} if begins else {}
        head |= {"together": together} if together else {}
        head |= {"from": moved_from} if moved_from else {}
        place = self._place(path)
        make_folder(place)
        kept = place / f"{now:020d}-{digest[:12]}"
        if len(json.dumps(head)) > _LONGEST_HEAD:  # of so many notes each is undone by itself
            head.pop("together", None)
        replace_private(kept, json.dumps(head).encode() + b"\n" + raw)
        for copy in coming:
            copy.file.replace(place / copy.rev)
        for old in sorted(place.iterdir(), reverse=True)[KEPT:]:
            if old != kept:
                old.unlink(missing_ok=True)

    def copies(self, path: str) -> Iterator[Copy]:
        """What was kept of the note at `path`, the latest first, and before it was moved there: not of one with another
        id that was there before."""
        begun: Copy | None = None
        at = path
        for copy in self._copies_at(self._place(path)):
            if copy.path != at:
                continue  # of a note that was here before this one came
            at = copy.moved_from or at
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
            head: Any = json.loads(opened.readline(_LONGEST_HEAD + 1))
        at = datetime.fromtimestamp(head["at"] / 1e9, UTC)
        changed_by, summary, digest = (str(head[name]) for name in ("changed_by", "summary", "digest"))
        together = {str(path): (str(was), str(now)) for path, (was, now) in head.get("together", {}).items()}
        begins = head.get("begins") is True
        path, moved_from = str(head["path"]), str(head.get("from", ""))
        return Copy(path, file.name, at, changed_by, summary, digest, begins, file, together, moved_from)
    except (AttributeError, OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def _moment(copy: Copy) -> int:
    """When it was kept, in nanoseconds, as its name says."""
    told = copy.rev.partition("-")[0]
    return int(told) if told.isdecimal() else 0


def _is_of_one_note(begun: Copy, before: Copy) -> bool:
    new, old = begun.read(), before.read()
    return new is not None and old is not None and own_id(new) == own_id(old)
