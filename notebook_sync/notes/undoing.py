"""What a note said before: its history, the difference to now, and taking an edit back by a new one.

Git is asked first, which knows what people did by hand; then the copies that tools' edits leave. Neither needs a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from heapq import merge
from pathlib import Path
from typing import Any

from notebook_sync.config import Settings
from notebook_sync.errors import BackendDown, EditFailed, NoSuchNote
from notebook_sync.files.moves import blobs, edit_of, opens, own_id, paths_told_by
from notebook_sync.files.revisions import content_at, revisions, taken_away
from notebook_sync.files.vault import Vault
from notebook_sync.notes.difference import difference
from notebook_sync.notes.door import Text, digest_of
from notebook_sync.notes.editing import Edited, Editing
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.past import KEPT, Past
from notebook_sync.notes.showing import sees_all
from notebook_sync.sessions import Session

UNDO, HISTORY, DIFF = "undo", "history", "diff"
LIMIT = 50
# How far back an earlier text is looked for: many commits in a row may leave a note as it is.
_FARTHEST = 200
# Among how many notes that are gone one is looked for by its id.
_MOST_GONE = 1000
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of a note. `rev` names it for `diff`: a commit, or a copy that a tool's edit left."""

    rev: str
    timestamp: datetime
    changed_by: str
    summary: str

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {
            "rev": self.rev,
            "timestamp": self.timestamp.isoformat(),
            "changed_by": self.changed_by,
            "summary": self.summary,
        }


class Undoing:
    """The past of one notebook's notes. `find` gives the path of a note that is there, and raises NoSuchNote.

    What is named need not be there any more: its path is known, or the id it had. Every method raises NotPermitted,
    UnsafePath and NoSuchNote.
    """

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        folder: Path,
        editing: Editing,
        find: Callable[[str, Session], str],
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._past = Past(folder)
        self._editing = editing
        self._find = find

    def history(self, name: str, session: Session, limit: int = LIMIT) -> list[Revision]:
        """The versions of a note, the latest first: those that git has, and what tools did since its last."""
        path = self._path_of(name, session)
        # Beyond the limit: a copy that no commit that is shown holds may be in the one before.
        committed = list(self._committed(path, session, limit + KEPT))
        since = committed[0].moment if committed else None
        copies = [version for version in self._copied(path) if since is None or version.moment > since]
        if copies:
            known = self._digests(committed, copies[-1].moment - _SECOND)
            copies = [version for version in copies if digest_of(version.read()) not in known]
        return [version.revision for version in (*copies, *committed)][:limit]

    def diff(self, name: str, rev: str, session: Session) -> str:
        """What changed from the version `rev`, "" for the one before, to what the note says now; unified.

        Of a file that the session is shown a part of, also what was taken out would be told: that needs `write`.
        """
        path = self._path_of(name, session)
        if not sees_all(session, path, self._settings.prompt):
            self._guard.require(session, "write", path, DIFF)
        now = self._now(path)
        before = self._version(path, rev, session) if rev else self._before(path, now, session)
        return difference(path, before, now)

    def undo(self, name: str, session: Session) -> Edited:
        """Give the note the text it had before the one it has now; a second undo takes back the first.

        Raises EditFailed where no earlier text is known, Conflict, and as `Vault.write`.
        """
        path = self._path_of(name, session)
        self._guard.require(session, "write", path, UNDO)

        def earlier(now: bytes | None) -> Text:
            return Text(path, now, self._before(path, now, session, is_put_there=True), UNDO)

        return self._editing.put(path, earlier, session, UNDO, allow_over_cap=True)

    def _digests(self, committed: Sequence[_Version], since: datetime) -> set[str]:
        """What was committed since then, and what was there. Git counts seconds: copies of it may look newer."""
        digests = set()
        for version in committed:
            digests.add(digest_of(version.read()))
            if version.moment < since:
                break
        return digests

    def _path_of(self, name: str, session: Session) -> str:
        place = self._vault.relative(name)
        self._guard.require(session, "read", name if place is None else place, HISTORY)
        try:
            with self._guard.telling(session, HISTORY):
                path = self._find(name, session)
        except (NoSuchNote, BackendDown) as missing:
            known = (place for place in (place, f"{place}.md") if place and next(self._versions(place, session), None))
            path = next(known, "")
            if not path and isinstance(missing, NoSuchNote):
                path = self._gone(name, session)
            if not path:
                raise
        self._guard.require(session, "read", path, HISTORY)
        return path

    def _gone(self, note_id: str, session: Session) -> str:
        """Where the note was that had this id and is gone, as far as the session may read it; "" for none."""

        def is_gone(path: str) -> bool:
            return self._guard.may(session, "read", path) and self._vault.stamp(path) is None

        for copy in self._past.newest(_MOST_GONE):
            if is_gone(copy.path) and own_id(copy.read() or b"") == note_id:
                return copy.path
        taken = {path: oid for path, oid in taken_away(self._vault.root, _MOST_GONE).items() if is_gone(path)}
        held = blobs(self._vault.root, taken.values())
        return next((path for path, oid in taken.items() if own_id(held.get(oid, b"")) == note_id), "")

    def _before(self, path: str, now: bytes | None, session: Session, *, is_put_there: bool = False) -> bytes:
        """The text before this one. What it said in a channel is not for being put where others read it."""
        for version in self._versions(path, session):
            raw = version.read()
            if raw is None or raw == now:
                continue
            if is_put_there and opens(version.path, path):
                where = f"what it said before, at {version.path}, is not for all who may read it here"
                raise EditFailed(path, f"{where}; see: notebook-sync diff {path}")
            return raw
        raise EditFailed(path, "no earlier text of it is known, neither to git nor from an edit by a tool")

    def _version(self, path: str, rev: str, session: Session) -> bytes:
        found = [version for version in self._versions(path, session) if version.revision.rev.startswith(rev)]
        raw = found[0].read() if len(found) == 1 else None
        if raw is None:
            raise NoSuchNote(f"{path} has no version {rev!r}; see: notebook-sync history {path}")
        return raw

    def _versions(self, path: str, session: Session) -> Iterator[_Version]:
        """All that is known, the latest first."""
        return merge(
            self._copied(path),
            self._committed(path, session, _FARTHEST),
            key=lambda version: version.moment,
            reverse=True,
        )

    def _committed(self, path: str, session: Session, limit: int) -> Iterator[_Version]:
        """Git follows a note back through the names that the session may read; others are not told of either."""
        root = self._vault.root
        for found in revisions(root, path, limit, partial(self._guard.may, session, "read")):
            others = (each for each in paths_told_by(found.message) if not self._guard.may(session, "read", each))
            summary = found.summary if next(others, None) is None else edit_of(path)
            revision = Revision(found.commit, found.timestamp, found.changed_by, summary)
            yield _Version(found.path, found.timestamp, revision, partial(content_at, root, found.commit, found.path))

    def _copied(self, path: str) -> Iterator[_Version]:
        for copy in self._past.copies(path):
            summary = copy.summary or "as it was before an edit by a tool"
            yield _Version(path, copy.at, Revision(copy.rev, copy.at, copy.changed_by, summary), copy.read)

    def _now(self, path: str) -> bytes | None:
        try:
            return self._vault.read(path)[0]
        except FileNotFoundError:
            return None


@dataclass(frozen=True, slots=True)
class _Version:
    path: str
    moment: datetime
    revision: Revision
    read: Callable[[], bytes | None]
