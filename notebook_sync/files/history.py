"""The history of notes, in git: the user's repository where a commit may be made, else a private one with the state;
and snapshots, what all notes said at one moment, in the private one alone, since they hold private notes too.

Reading follows a note through renames that are certain, never through likeness: to take one note for another's
past would give away what that other said.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from notebook_sync.errors import GitFailed
from notebook_sync.files.frontmatter import read_time
from notebook_sync.files.git import LONG_SECONDS, Commit, Repository, Texts
from notebook_sync.files.names import is_note_name, is_system_folder
from notebook_sync.files.private import read_private, write_private
from notebook_sync.files.state import Place
from notebook_sync.files.tree import Tree, is_at_or_below
from notebook_sync.model import HISTORY_LIMIT
from notebook_sync.registry import Result
from notebook_sync.sessions import OWNER, Session, maker_of
from notebook_sync.settings import GitTable

PRIVATE = "history.git"
_SUBJECT_LIMIT = 200
_REV = re.compile(r"[0-9a-f]{4,64}")
_SNAPSHOTS = "refs/notebook/checkpoints"
_LEFT_OUT = "Left-Out: "


@dataclass(frozen=True, slots=True)
class Kept:
    """What a change left at `path`, None for no file. `moved_from` is the path that the note had before. `apart`: the
    text waits for the owner's trust, and stays out of the user's repository."""

    path: str
    raw: bytes | None
    action: str = ""
    section: str = ""
    reason: str = ""
    moved_from: str = ""
    apart: bool = False


class Version(Result, frozen=True, kw_only=True):
    """One version of a note in its history. `rev` names it for `diff` and `undo`, "" where it waits for its commit.

    `path` is the note's path then; `session` and `reason` are "" for a commit made by hand. `summary` says what a call
    did, else it is the first line of the commit's message.
    """

    rev: str
    at: datetime
    changed_by: str
    session: str
    reason: str
    path: str
    summary: str
    provenance: str = ""

    def for_model(self) -> Version:
        """Without words of a note that others wrote."""
        return replace(self, summary="", path="") if self.provenance else self


class History:
    """The versions of one notebook's notes. Every method raises GitFailed where git is missing or fails."""

    def __init__(self, place: Place, tree: Tree, settings: GitTable) -> None:
        self._root = tree.root
        self._state = place.state
        self._settings = settings

    # Writing.

    def keep(
        self, changes: Sequence[Kept], session: Session, *, found: Sequence[Kept] = (), message: str = ""
    ) -> str | None:
        """Commit what the changes left, on top of a commit of what was found before them, where the last one does not
        have it: the id of the last commit, in the user's repository, else in the private one; None where nothing is
        new. Raises GitFailed, also where git is busy; keep the same changes again later then."""
        earlier = {each.path: each.raw for each in found}
        texts: dict[str, bytes | None] = {
            **dict.fromkeys(change.moved_from for change in changes if change.moved_from),
            **{change.path: change.raw for change in changes},
        }
        user = None if self._settings.commit == "off" else self._user_repository()
        branch = user.branch() if user else ""
        left_out = user.left_out({*earlier, *texts}) if user and branch else {*earlier, *texts}
        old, private_old = _parted(earlier, left_out | {each.path for each in found if each.apart})
        apart = {path for change in changes if change.apart for path in (change.path, change.moved_from)}
        new, private_new = _parted(texts, left_out | apart)
        # On no branch a commit could be part of a rebase, which is not to be missed.
        if user and (old or new or not branch) and (reason := user.why_wait()):
            raise GitFailed(reason)
        made, said, author, at = "", _message(changes, session, message), self._settings.author, datetime.now(UTC)
        if private_old or private_new:
            made = self._private_repository().commit(private_new, said, author, private_old, at=at)
        if user and (old or new):
            made = user.commit(new, said, author, old, at=at) or made
        return made or None

    def pack(self) -> None:
        """Let git tidy up the private repository, now and then."""
        if (self._state / PRIVATE).exists():
            self._private_repository().pack()

    # Reading.

    def versions(
        self, path: str, *, limit: int = HISTORY_LIMIT, may: Callable[[str], bool] = lambda _: True
    ) -> list[Version]:
        """The last `limit` commits that changed the note, the latest first. It is followed back through earlier names
        that `may` allows; the answer is as if there were no other files."""
        # Of two commits at one moment, the private one is later: it keeps what was found before it replaces it.
        pasts = (self._past(each, path, may) for each in reversed(self._repositories()))
        return [*islice(merge(*pasts, key=lambda version: version.at, reverse=True), limit)]

    def text(self, rev: str, path: str) -> bytes | None:
        """The note's bytes in a commit given by its id; None where it has none."""
        found = (_blob(each, rev, path) for each in self._repositories() if _REV.fullmatch(rev))
        return next((raw for raw in found if raw is not None), None)

    def head_text(self, path: str) -> bytes | None:
        """What the last commit of the user's repository holds at `path`; None for nothing."""
        user = self._user_repository()
        return _blob(user, "HEAD", path) if user else None

    def head_stamp(self) -> object:
        """A value that changes when another commit is checked out, from files alone; None without a repository."""
        user = self._user_repository()
        return user.head_stamp() if user else None

    def created_at(self, paths: Collection[str]) -> dict[str, datetime]:
        """When the first commit was made that has a file at each of these paths, in one pass over each log."""
        first: dict[str, datetime] = {}
        for repository in reversed(self._repositories()):
            for commit in repository.log():
                first |= dict.fromkeys(commit.entries, commit.at)
        return {path: first[path] for path in paths if path in first}

    # What the owner trusts.

    def accept(self, path: str, raw: bytes) -> None:
        """Remember that the owner accepted this text of the note, until the last commit holds another one."""
        write_private(self._accepted_file(path), raw)

    def accepted(self, path: str) -> bytes | None:
        """The text that the owner has accepted since the last commit that changed the note; None for none."""
        return read_private(self._accepted_file(path))

    def _accepted_file(self, path: str) -> Path:
        user = self._user_repository()
        held = user.entries(user.head(), [path]) if user else {}
        return self._state / "accepted" / f"{sha256(os.fsencode(path)).hexdigest()}-{held.get(path, ('', 'none'))[1]}"

    # Commits.

    def _past(
        self, repository: Repository, path: str, may: Callable[[str], bool], start: str = "HEAD"
    ) -> Iterator[Version]:
        """The versions that one repository has, the latest first, from `start` back to where the note began."""
        begun = ""
        for commit in repository.log(start=start, path=path):
            entry = commit.entries.get(path)
            if entry is None or commit.rev == start:
                continue
            if entry.status == "D" and begun not in ("", entry.old):
                return  # another note had this path before
            yield _version(commit, path)
            begun = entry.new if entry.status == "A" else ""
            if begun and (source := self._source(repository, commit, path, may)):
                yield from self._past(repository, source, may, commit.rev)
                return

    def _source(self, repository: Repository, commit: Commit, path: str, may: Callable[[str], bool]) -> str:
        """Where the note was before the commit that put it at `path`; "" where it began."""
        (whole,) = repository.log("--max-count=1", start=commit.rev)
        entries = {other: entry for other, entry in whole.entries.items() if may(other)}
        gone = {other: entry.old for other, entry in entries.items() if entry.status == "D"}
        if (said := _said(commit.message, path).get("Renamed-From", "")) in gone:
            return said
        blob = commit.entries[path].new
        found = [other for other, oid in gone.items() if oid == blob]
        copies = sum(entry.status == "A" and entry.new == blob for entry in entries.values())
        return found[0] if len(found) == 1 and copies <= 1 else ""

    # Repositories.

    def _user_repository(self) -> Repository | None:
        """The repository around the notebook."""
        mark = next((each / ".git" for each in (self._root, *self._root.parents) if (each / ".git").exists()), None)
        return None if mark is None else _repository_around(self._root, mark)

    def _repositories(self) -> list[Repository]:
        user = self._user_repository()
        private = [self._private_repository()] if (self._state / PRIVATE).exists() else []
        return [user, *private] if user else private

    def _private_repository(self) -> Repository:
        return Repository.private(self._state / PRIVATE)


class Snapshot(NamedTuple):
    """The notes of one commit: `blobs` are git's ids by path. Of `left_out`, files and folders, it says nothing: they
    could not be read."""

    commit: str
    blobs: Mapping[str, str]
    left_out: frozenset[str]

    def is_silent_about(self, path: str) -> bool:
        """Whether it cannot say that there was no note at `path`."""
        return is_at_or_below(path, self.left_out)


@dataclass
class Snapshots:
    """The snapshots of one notebook, by name. `folder` is that of the private repository. Every method raises GitFailed
    where git is missing or fails."""

    folder: Path

    def take(self, name: str, texts: Mapping[str, bytes], left_out: Collection[str], subject: str) -> str:
        """Keep texts by path, and return the commit."""
        lines = [" ".join(subject.split()), "", *(_LEFT_OUT + json.dumps(path) for path in sorted(left_out))]
        return Repository.private(self.folder).commit_apart(_ref(name), texts, "\n".join(lines))

    def read(self, name: str) -> Snapshot | None:
        """The snapshot of this name; None for none."""
        repository = Repository.private(self.folder)
        if not (rev := repository.head(_ref(name))):
            return None
        (commit,) = repository.log("--max-count=1", start=rev)
        lines = (line for line in commit.message.split("\n") if line.startswith(_LEFT_OUT))
        left_out = frozenset(json.loads(line.removeprefix(_LEFT_OUT)) for line in lines)
        return Snapshot(rev, {path: entry.new for path, entry in commit.entries.items()}, left_out)

    def differing(self, snapshot: Snapshot, now: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
        """What the snapshot has at those of the paths that hold something else now; None where it has no note."""
        repository, blobs = Repository.private(self.folder), snapshot.blobs
        other = [path for path, raw in now.items() if raw is None or repository.blob_id(raw) != blobs.get(path)]
        had = [path for path in other if path in blobs]
        texts = dict(zip(had, repository.blobs([blobs[path] for path in had], LONG_SECONDS), strict=True))
        if missing := [path for path, raw in texts.items() if raw is None]:
            raise GitFailed(f"the private history lacks what {missing[0]} said in {snapshot.commit[:12]}")
        return {path: texts.get(path) for path in other}

    def drop(self, names: Collection[str]) -> None:
        """Forget snapshots."""
        if names:
            Repository.private(self.folder).forget([_ref(name) for name in names])


def _ref(name: str) -> str:
    """The ref of a snapshot; a name may come from another program."""
    if not re.fullmatch(r"[0-9A-Za-z-]{1,64}", name):
        raise GitFailed(f"{name[:64]!r} cannot be the name of a snapshot")
    return f"{_SNAPSHOTS}/{name}"


def unseen_notes(root: Path, seen: Collection[str]) -> set[str]:
    """Files with a note's name that are no notes now, such as ignored ones: a snapshot says nothing of them."""
    found = set[str]()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not is_system_folder(name)]
        above = os.path.relpath(folder, root)
        found |= {posixpath.normpath(f"{above}/{name}") for name in names if is_note_name(name)}
    return found.difference(seen)


@lru_cache
def _repository_around(root: Path, mark: Path) -> Repository | None:
    """Asked for once, as long as `mark` is the nearest .git."""
    return Repository.around(root)


def _blob(repository: Repository, rev: str, path: str) -> bytes | None:
    return next(repository.blobs([f"{rev}:{repository.prefix}{path}"]))


def _parted(texts: Texts, apart: Collection[str]) -> tuple[Texts, Texts]:
    """The texts whose paths are not apart, and those whose paths are."""
    public = {path: raw for path, raw in texts.items() if path not in apart}
    return public, {path: raw for path, raw in texts.items() if path in apart}


def _message(changes: Sequence[Kept], session: Session, subject: str) -> str:
    """A subject, and a line for each field of each change; no value has a line end."""
    verb = "Rename" if changes[0].moved_from else "Delete" if changes[0].raw is None else "Edit"
    subject = subject or (f"{verb} {changes[0].path}" if len(changes) == 1 else f"Edit {len(changes)} notes")
    lines = [subject[:_SUBJECT_LIMIT], ""]
    for change in changes:
        fields = {"Path": change.path, "Action": change.action, "Section": change.section, "Reason": change.reason}
        lines += [f"{name}: {value}" for name, value in (fields | {"Renamed-From": change.moved_from}).items() if value]
    lines += [f"Session: {session.kind}", *([f"Agent: {session.agent}"] if session.agent else [])]
    return "".join(f"{' '.join(line.split())}\n" for line in lines)


def summary_of(action: str, section: str) -> str:
    """What a call did, in words; "" for a commit made by hand."""
    return f"{action.replace('_', ' ')} {section}".strip()


def _said(message: str, path: str) -> dict[str, str]:
    """The fields that a commit's message has for the note at `path`."""
    said: dict[str, str] = {}
    current = path
    for line in message.rstrip().rpartition("\n\n")[2].split("\n"):
        name, _, value = line.partition(": ")
        if name == "Path":
            current = value
        elif current == path or name in ("Session", "Agent", "Time"):
            said.setdefault(name, value.strip())
    return said


def _version(commit: Commit, path: str) -> Version:
    said, subject = _said(commit.message, path), commit.message.partition("\n")[0][:_SUBJECT_LIMIT]
    session, agent, moment = said.get("Session", ""), said.get("Agent", ""), read_time(said.get("Time", ""), UTC)
    return Version(
        rev=commit.rev,
        at=moment if isinstance(moment, datetime) else commit.at,
        changed_by="agent:unknown" if not agent and session not in ("", OWNER.kind) else maker_of(agent),
        session=session,
        reason=said.get("Reason", ""),
        path=path,
        summary=summary_of(said.get("Action", ""), said.get("Section", "")) or subject,
    )
