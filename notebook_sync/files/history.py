"""What git knows of the notebook's files: how often each changed, since when, and why.

Only reads, in one pass over the log. Never runs a hook, pager, filter or other program that a repository names, and
never reaches a network. A folder without git, or one that git will not open, has no past, which is not an error.
"""

from __future__ import annotations

import subprocess
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from notebook_sync.errors import NotebookError
from notebook_sync.files.git import blobs_of, command, environment, first_line, run_git, why
from notebook_sync.files.moves import Blobs, Read, blobs, edit_of, moves, opens, own_id, paths_told_by
from notebook_sync.files.note import HISTORY_LIMIT, Seed
from notebook_sync.permissions import channel_of
from notebook_sync.sessions import maker_of

SUMMARY_LIMIT = 200
# How many commits are looked into for ids: each is a question to git. What moved and changed at once later begins anew.
_MOST_ASKED = 1000


@dataclass(frozen=True, slots=True)
class GitHistory:
    """The past of every path the log names. Kept at four bytes a change, so that long histories fit in memory.

    `reason` tells a person why git would not answer; "" when it did, or when there is no repository to ask.
    """

    reason: str = ""
    _commits: list[_Commit] = field(default_factory=list)
    _changes: dict[str, array[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._changes)

    def seed_of(self, path: str) -> Seed | None:
        """The past of the file at `path`, relative to the notebook's root; None when no commit holds it.

        A note is followed through the names that it surely had, as `moves` says, and not out of a channel. One that was
        deleted and made again goes on where it stopped, unless the new one has another id.
        """
        changes = self._changes.get(path)
        if changes is None:
            return None
        recent = changes[-HISTORY_LIMIT:]
        first = len(changes) - len(recent) + 1
        crumbs = (self._commits[index].breadcrumb(version, path) for version, index in enumerate(recent, first))
        return Seed(len(changes), self._commits[changes[0]].timestamp, tuple(crumbs))


@dataclass(frozen=True, slots=True)
class _Commit:
    """`told` are the trailers that say what tools did; `private` the paths among them that are in channels."""

    timestamp: datetime
    summary: str
    changed_by: str
    told: str
    private: tuple[str, ...]

    def breadcrumb(self, version: int, path: str) -> dict[str, Any]:
        names_others = any(opens(each, path) for each in self.private)
        return {
            "version": version,
            "timestamp": self.timestamp,
            "summary": edit_of(path) if names_others else self.summary,
            "changed_by": self.changed_by,
        }


def git_history(root: Path) -> GitHistory:
    """Read the log of the repository that `root` is in.

    A commit is the owner's, or `agent:NAME`'s when its message has a trailer `Agent: NAME`.
    """
    try:
        with tempfile.TemporaryFile() as complaints, _git_log(root, complaints) as log:
            try:
                history = _past_told_by(_tokens(log.stdout), partial(blobs, root))
            except BaseException:
                log.kill()
                raise
            if log.wait() == 0:
                return history
            # A log that broke off half way would count too few versions: no past is better than a wrong one.
            complaints.seek(0)
            return GitHistory(why(complaints.read(1 << 16).decode(errors="replace")))
    except FileNotFoundError:
        return GitHistory()


def is_tracked_by_git(root: Path) -> bool:
    """Whether `root` lies in the work tree of a repository: its own, or one around it."""
    try:
        return run_git(root, "rev-parse", "--is-inside-work-tree").stdout.strip() == b"true"
    except FileNotFoundError:
        return False


def init_repository(root: Path) -> bool:
    """Make `root` a repository, without a commit. False when there is no git; NotebookError when git refuses."""
    try:
        answer = run_git(root, "init", "--quiet")
    except FileNotFoundError:
        return False
    if answer.returncode != 0:
        complaint = first_line(answer.stderr.decode(errors="replace"))
        raise NotebookError(f"git made no repository in {root}: {complaint}")
    return True


def committed(root: Path, paths: Sequence[str]) -> dict[str, bytes] | None:
    """What the last commit holds of the files at `paths`, relative to `root`; None where there is no commit to ask."""
    asked = {f"HEAD:./{path}": path for path in paths if "\n" not in path}
    try:
        if run_git(root, "rev-parse", "--verify", "--quiet", "HEAD").returncode != 0:
            return None
        return {asked[name]: raw for name, raw in blobs_of(root, asked).items()}
    except FileNotFoundError:
        return None


# The repository may be anyone's: its settings could change what the log looks like, or name programs to run.
_LOG = (
    *("log", "-z", "--raw", "--no-abbrev", "--no-renames", "--reverse", "--topo-order"),
    *("--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-notes", "--no-color"),
    *("--ignore-submodules=all", "--encoding=UTF-8"),
    "--format=%x00commit%x00%at%x00%(trailers:key=Agent,valueonly,unfold,separator=%x0A)%x00"
    "%(trailers:key=Path,key=Action,key=Reason,unfold,separator=%x0A)%x00%s",
    *("--relative", "--", "."),
)


def _git_log(root: Path, complaints: IO[bytes]) -> subprocess.Popen[bytes]:
    # Complaints go to a file: a pipe that nobody empties would stop git.
    return subprocess.Popen(
        command(root, *_LOG),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=complaints,
    )


# What `--raw` tells of a file: git's letter, whether it is a regular one now, its object id before and after.
_Entry = tuple[str, bool, str, str]


def _past_told_by(tokens: Iterator[bytes], read: Read) -> GitHistory:
    """Read the log's tokens, oldest commit first.

    A commit is `commit`, time, agent, other trailers, subject; each of its changes is `:MODE MODE OID OID STATUS` and a
    path.
    """
    pasts = _Pasts(read)
    entries: dict[str, _Entry] = {}
    for token in tokens:
        if token == b"commit":
            pasts.add(entries)
            entries = {}
            pasts.history._commits.append(_commit(*(next(tokens, b"") for _ in range(4))))
        elif token.strip():
            was, mode, old, new, status = token.decode().split()
            path = _name(next(tokens, b""))
            if path is not None:
                is_file = (was[1:] if status == "D" else mode).startswith("100")
                entries[path] = (status, is_file, old, new)
    pasts.add(entries)
    return pasts.history


class _Pasts:
    """The past of every path while the log is read. `read` gives bytes by object id."""

    def __init__(self, read: Read) -> None:
        self.history = GitHistory()
        self._read = read
        self._asked = 0
        self._moved: dict[str, str] = {}
        self._ended: dict[str, str] = {}

    def add(self, entries: Mapping[str, _Entry]) -> None:
        """Count what the last commit did."""
        changes = self.history._changes
        gone = {path: old for path, (status, is_file, old, _) in entries.items() if status == "D" and is_file}
        new = {path: oid for path, (status, is_file, _, oid) in entries.items() if status == "A" and is_file}
        sources = self._follow(gone, new)
        self._ended |= gone
        for path, (status, is_file, old, oid) in entries.items():
            if status == "D" or not is_file:
                continue  # gone, or no longer a regular file: a symbolic link, a submodule
            name = path
            if path in sources:
                old = gone[sources[path]]
            elif status == "A" and path in changes and not self._goes_on(path, oid):
                del changes[path]
            elif status == "M" and path not in changes:
                name = self._moved.get(path, path)  # edited on one branch, renamed on the other
            if old != oid or name not in changes:
                changes.setdefault(name, array("I")).append(len(self.history._commits) - 1)

    def _follow(self, gone: Blobs, new: Blobs) -> dict[str, str]:
        """Give what moved its past. What a channel's note said must not tell in what its readers alone may see: of a
        note elsewhere the answer is as if there were no channel."""
        if not gone or not new:
            return {}
        changes = self.history._changes
        told = self.history._commits[-1].told
        sources: dict[str, str] = {}
        for channel in sorted({channel_of(path) or "" for path in new}):
            there = {path: oid for path, oid in new.items() if (channel_of(path) or "") == channel}
            known = {path: oid for path, oid in gone.items() if (channel_of(path) or channel) == channel}
            for path, old in moves(known, there, told, self._bytes).items():
                if old in changes:
                    sources[path] = old
                    changes[path] = changes.pop(old)
                    self._moved[old] = path
        return sources

    def _goes_on(self, path: str, oid: str) -> bool:
        """Whether what was made where a note was deleted is that note."""
        ended = self._ended.pop(path, oid)
        if ended == oid:
            return True
        held = self._bytes((ended, oid))
        return len(held) < len((ended, oid)) or own_id(held[ended]) == own_id(held[oid])

    def _bytes(self, ids: Iterable[str]) -> Mapping[str, bytes]:
        self._asked += 1
        return self._read(ids) if self._asked <= _MOST_ASKED else {}


_LATEST = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())


def _commit(time: bytes, agents: bytes, trailers: bytes, subject: bytes) -> _Commit:
    # Any program can write a commit: its time may be missing, or beyond what a datetime holds.
    seconds = min(int(time), _LATEST) if time.isdigit() else 0
    agent = agents.decode(errors="replace").partition("\n")[0].strip()[:SUMMARY_LIMIT]
    told = trailers.decode(errors="replace")
    return _Commit(
        timestamp=datetime.fromtimestamp(seconds, UTC),
        summary=subject.decode(errors="replace")[:SUMMARY_LIMIT],
        changed_by=maker_of(agent),
        told=told,
        private=tuple(path for path in paths_told_by(told) if channel_of(path)),
    )


def _name(path: bytes) -> str | None:
    try:
        return path.decode()
    except UnicodeDecodeError:
        return None


def _tokens(stream: IO[bytes] | None) -> Iterator[bytes]:
    rest = b""
    while stream and (chunk := stream.read(1 << 16)):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from whole
