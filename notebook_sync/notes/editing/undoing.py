"""What a note said before: its history, the difference to now, and taking an edit back by a new one.

Git is asked first, which knows what people did by hand; then the copies that tools' edits leave. Neither needs a store.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from heapq import merge
from itertools import takewhile
from pathlib import Path
from typing import Any

from notebook_sync.errors import BackendDown, Conflict, EditFailed, NoSuchNote, NothingEarlier
from notebook_sync.files.moves import blobs, edit_of, opens, own_id, paths_told_by
from notebook_sync.files.provenance import is_external
from notebook_sync.files.revisions import content_at, revisions, taken_away
from notebook_sync.files.vault import Vault
from notebook_sync.notes.editing.difference import difference
from notebook_sync.notes.editing.door import KEEPS_PROVENANCE, Text, digest_of, lowers_provenance
from notebook_sync.notes.editing.editing import Editing
from notebook_sync.notes.editing.effects import Edited
from notebook_sync.notes.editing.filing import File
from notebook_sync.notes.editing.past import KEPT, Past, Together
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.showing import sees_all
from notebook_sync.permissions import Verb
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

UNDO, HISTORY, DIFF = "undo", "history", "diff"
LIMIT = 50
# How far back an earlier text is looked for: many commits in a row may leave a note as it is.
_FARTHEST = 200
# Among how many notes that are gone one is looked for by its id.
_MOST_GONE = 1000
_TICK = timedelta(microseconds=1)
_SECOND = timedelta(seconds=1)
_FOUND = "changed by hand, as the next edit found it"


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
    """The past of one notebook's notes. `find` is `Lookup.find_path`.

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
        find: Callable[[str, Session, Verb, str], str],
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._past = Past(folder)
        self._editing = editing
        self._find = find

    def history(self, name: str, session: Session, limit: int = LIMIT) -> list[Revision]:
        """The versions of a note, the latest first: those that git has, and the copies of what it has not."""
        path = self._path_of(name, session)
        # Beyond the limit: a copy that no commit that is shown holds may be in the one before.
        committed = sorted(self._committed(path, session, limit + KEPT), key=_second_of, reverse=True)
        copies = list(self._copied(path, session))
        known = self._digests(committed, copies[-1].moment - _SECOND) if copies else []
        told = _among(committed, known, copies)
        return [version.revision for version in told[:limit]]

    def diff(self, name: str, rev: str, session: Session) -> str:
        """What changed from the version `rev`, "" for the one before, to what the note says now; unified.

        Of a file that the session is shown a part of, also what was taken out would be told: that needs `write`.
        """
        path = self._path_of(name, session)
        if not sees_all(session, path, self._settings.prompt):
            self._guard.require(session, "write", path, DIFF)
        now = self._now(path)
        before = self._version(path, rev, session)[1] if rev else self._before(path, now, session)
        return difference(path, before, now)

    def version(self, name: str, rev: str, session: Session) -> File:
        """What the note said in the version `rev`, to the character. Of a file that the session is shown a part of, as
        `diff`."""
        path = self._path_of(name, session)
        if not sees_all(session, path, self._settings.prompt):
            self._guard.require(session, "write", path, HISTORY)
        raw = self._version(path, rev, session)[1]
        text = raw.decode(errors="replace")
        return File(path, text, digest_of(raw), text, is_external(raw))

    def undo(self, name: str, session: Session, expected_digest: str | None = None, rev: str = "") -> Edited:
        """Give the note the text it had before the one it has now, or that of the version `rev`; a second undo takes
        back the first, unless the one that it has now is not the one expected.

        Raises EditFailed where no earlier text is known, Conflict, and as `Vault.write`.
        """
        path = self._path_of(name, session)
        changed: dict[str, _Was] = {}

        def find() -> list[str]:
            changed.clear()
            changed.update({} if rev else self._together(path, session))
            paths = [path, *(other for other in changed if other != path)]
            for each in paths:
                self._guard.require(session, "write", each, UNDO)
            return paths

        def earlier(now: Mapping[str, bytes | None]) -> list[Text]:
            if not changed:
                return [self._earlier(path, rev, now[path], session)]
            for each, raw in now.items():
                if raw != changed[each].now:
                    raise Conflict(each, digest_of(changed[each].now), digest_of(raw))
            return [Text(each, raw, changed[each].was, UNDO, as_one=True) for each, raw in now.items()]

        edited = self._editing.put_together(
            find, earlier, session, UNDO, expected_digest=expected_digest, allow_over_cap=True
        )
        return replace(edited[0], with_others=len(edited) > 1)

    def _earlier(self, path: str, rev: str, now: bytes | None, session: Session) -> Text:
        if not rev:
            return Text(path, now, self._before(path, now, session, is_put_there=True), UNDO)
        was_at, raw = self._version(path, rev, session)
        _must_not_open(was_at, path)
        newer = takewhile(lambda known: known != raw, (version.read() for version in self._versions(path, session)))
        if session.kind != "owner" and any(lowers_provenance(known, raw) for known in newer):
            self._guard.refuse(session, UNDO, KEEPS_PROVENANCE, path)
        return Text(path, now, raw, UNDO)

    def _together(self, path: str, session: Session) -> _Changed:
        """The notes that the last edit of this one changed as one with it, where none of them was changed since, and as
        far as what they said before is known; else nothing. Of a note that this edit took away, the others tell."""
        own = self._last_together(path)
        for change in (own, *(self._last_together(other) for other in own if other != path)):
            now = {each: self._now(each) for each in change}
            if path not in change or any(digest_of(now[each]) != after for each, (_, after) in change.items()):
                continue
            was = {each: self._of_digest(each, before, session) for each, (before, _) in change.items()}
            if all((was[each] is None) == (before == "") for each, (before, _) in change.items()):
                return {each: _Was(was[each], now[each]) for each in change}
        return {}

    def _last_together(self, path: str) -> Together:
        last = next(self._past.copies(path), None)
        return last.together if last else {}

    def _of_digest(self, path: str, digest: str, session: Session) -> bytes | None:
        """What the note said that has this digest; None where no version is known that has it."""
        texts = (version.read() for version in self._versions(path, session)) if digest else ()
        return next((raw for raw in texts if digest_of(raw) == digest), None)

    def _digests(self, committed: Sequence[_Version], since: datetime) -> list[str]:
        """What was committed since then, and what was there. Git counts seconds: copies of it may look newer."""
        digests = []
        for version in committed:
            digests.append(digest_of(version.read()))
            if version.moment < since:
                break
        return digests

    def _path_of(self, name: str, session: Session) -> str:
        place = self._guard.place(session, name, "read", HISTORY)
        if place and self._was_at(place, session):  # no store has to answer for that
            return place
        try:
            path = self._find(place, session, "read", HISTORY)
        except (NoSuchNote, BackendDown) as missing:
            known = (path for path in (place, f"{place}.md") if place and self._guard.may(session, "read", path))
            path = next((path for path in known if next(self._versions(path, session), None)), "")
            if not path and isinstance(missing, NoSuchNote):
                path = self._gone(name, session)
            if not path:
                raise
        return path

    def _was_at(self, place: str, session: Session) -> bool:
        """Whether this is the whole path that a note had which is gone; a file's name alone may be that of another."""
        is_whole = "/" in place and place.endswith(".md")
        return is_whole and self._vault.stamp(place) is None and next(self._versions(place, session), None) is not None

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
        was_at = ""
        for version in self._versions(path, session):
            raw = version.read()
            if raw is None or raw == now:
                was_at = was_at or (version.path if version.path != path else "")
                continue
            if is_put_there:
                _must_not_open(version.path, path)
            return raw
        raise NothingEarlier(path, was_at, is_first=self._begins_with(path, now, session))

    def _begins_with(self, path: str, now: bytes | None, session: Session) -> bool:
        """Whether a tool made the note with this text. One that people made may have said something else before."""
        copies = list(self._past.copies(path))
        begins = bool(copies) and copies[-1].begins and self._guard.may(session, "read", copies[-1].path)
        return begins and now is not None and copies[-1].read() == now

    def _version(self, path: str, rev: str, session: Session) -> tuple[str, bytes]:
        """Where the note was then, and what it said."""
        found = [version for version in self._versions(path, session) if version.revision.rev.startswith(rev)]
        raw = found[0].read() if len(found) == 1 else None
        if raw is None:
            raise NoSuchNote(f"{path} has no version {rev!r}", see=f"notebook-sync history {shlex.quote(path)}")
        return found[0].path, raw

    def _versions(self, path: str, session: Session) -> Iterator[_Version]:
        """All that is known, the latest first."""
        copies = list(self._copied(path, session))
        committed = self._committed(path, session, _FARTHEST)
        if copies and copies[0].moment > datetime.now(UTC):
            copies, committed = _ordered_by_git(copies, committed)
        return merge(copies, committed, key=lambda version: version.moment, reverse=True)

    def _committed(self, path: str, session: Session, limit: int) -> Iterator[_Version]:
        """Git follows a note back through the names that the session may read; others are not told of either."""
        root = self._vault.root
        for found in revisions(root, path, limit, partial(self._guard.may, session, "read")):
            others = (each for each in paths_told_by(found.message) if not self._guard.may(session, "read", each))
            summary = found.summary if next(others, None) is None else edit_of(path)
            revision = Revision(found.commit, found.timestamp, found.changed_by, summary)
            yield _Version(found.path, found.timestamp, revision, partial(content_at, root, found.commit, found.path))

    def _copied(self, path: str, session: Session) -> Iterator[_Version]:
        """Through the names that the session may read, as git's."""
        for copy in self._past.copies(path):
            if not self._guard.may(session, "read", copy.path):
                return
            summary = copy.summary or _FOUND
            yield _Version(copy.path, copy.at, Revision(copy.rev, copy.at, copy.changed_by, summary), copy.read)

    def _now(self, path: str) -> bytes | None:
        try:
            return self._vault.read(path)[0]
        except FileNotFoundError:
            return None


def _among(committed: Sequence[_Version], known: Sequence[str], copies: Sequence[_Version]) -> list[_Version]:
    """The commits, and the copies of what no commit has, the latest first; `known` are digests of the first commits.

    Git counts seconds, so a copy of the same one may be newer than a commit. It is not where an edit's own copy comes
    after it, whose text a commit has: that commit is then newer, too.
    """
    told: list[_Version] = []
    newer = 0
    for copy in copies:
        digest = digest_of(copy.read())
        if digest in known:
            if copy.revision.summary != _FOUND:
                same = (n for n in range(newer, len(known)) if known[n] == digest)
                own = next((n for n in same if _second_of(committed[n]) >= _second_of(copy)), newer - 1)
                told += committed[newer : own + 1]
                newer = own + 1
            continue
        while newer < len(committed) and _second_of(committed[newer]) > _second_of(copy):
            told.append(committed[newer])
            newer += 1
        told.append(copy)
    return [*told, *committed[newer:]]


def _second_of(version: _Version) -> datetime:
    return version.moment.replace(microsecond=0)


def _ordered_by_git(
    copies: Sequence[_Version], committed: Iterable[_Version]
) -> tuple[list[_Version], Iterator[_Version]]:
    """The versions with moments that tell their order, where a clock that went back since dates copies in the time to
    come. Such a copy stands where git has the same text, or before the last one that does: each edit keeps what it
    found, so they follow each other."""
    now = latest = datetime.now(UTC)
    commits: list[_Version] = []
    moments: dict[str, datetime] = {}
    for version in committed:
        latest = min(version.moment, latest - _TICK)
        commits.append(replace(version, moment=latest))
        moments.setdefault(digest_of(version.read()), latest)
    placed: list[_Version] = []
    for copy in reversed(copies):
        behind = placed[-1].moment if placed else copy.moment
        moment = moments.get(digest_of(copy.read()), behind) if copy.moment > now else copy.moment
        placed.append(replace(copy, moment=moment))
    return placed[::-1], iter(commits)


def _must_not_open(was_at: str, path: str) -> None:
    if opens(was_at, path):
        where = f"what it said before, at {was_at}, is not for all who may read it here"
        raise EditFailed(path, f"{where}; see: notebook-sync diff {shlex.quote(path)}")


@dataclass(frozen=True, slots=True)
class _Was:
    """What a note said before an edit, and what it says now; None where it was, or is, not there."""

    was: bytes | None
    now: bytes | None


_Changed = Mapping[str, _Was]


@dataclass(frozen=True, slots=True)
class _Version:
    path: str
    moment: datetime
    revision: Revision
    read: Callable[[], bytes | None]
