"""What git's commits hold of one note: which changed it, and its bytes in each. Only reads; a folder without git, or
one that git will not open, has no commits, which is not an error. Never takes another note's past for its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from notebook_sync.errors import GitFailed
from notebook_sync.files.git import run_git
from notebook_sync.files.moves import blobs, moves, own_id
from notebook_sync.sessions import maker_of

_ID = re.compile(r"[0-9a-f]{4,64}")
_LATEST = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())
# Of a note that was moved more often, the earliest names are not looked for: each costs a question to git.
_MOST_NAMES = 20
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "-z", "--raw", "--no-abbrev")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=all", "-z", "--raw", "--no-abbrev")
_LOG = (
    *("log", "--no-follow", "--no-renames", "--full-history", "--no-merges", "--relative", *_PLAIN),
    *("--no-show-signature", "--no-notes", "--encoding=UTF-8"),
)
_FIELDS = "--format=%x00commit%x00%H%x00%at%x00%an%x00%(trailers:key=Agent,valueonly,unfold,separator=%x0A)%x00%s%x00%B"
_TREE = ("diff-tree", "-r", "--no-commit-id", "--no-renames", "--relative", "--diff-filter=AD", *_PLAIN)


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit that changed a file. `path` is the file's path then, relative to the notebook; `changed_by` is `owner`,
    or `agent:NAME` where the message has a trailer `Agent: NAME`; `summary` is the first line of `message`."""

    commit: str
    timestamp: datetime
    author: str
    changed_by: str
    summary: str
    message: str
    path: str


def revisions(root: Path, path: str, limit: int, may: Callable[[str], bool]) -> list[Revision]:
    """The latest `limit` commits that changed the note at `path`, the latest first, from where it began.

    It is followed back through another name where it is surely the same note, as `moves` says, and only through names
    that one `may` know of: the answer is as if no others were there.
    """
    found: list[Revision] = []
    start = "HEAD"
    for _ in range(_MOST_NAMES):
        source = ""
        begun: _Change | None = None
        for change in _changes(root, start, path, limit - len(found)):
            if change.entry.status == "D" and begun and not _goes_on(root, change, begun, may):
                break
            found.append(change.revision)
            if change.entry.status == "A":
                begun = change
                source = _source(root, change, may) if len(found) < limit else ""
                if source:
                    break
        if not begun or not source:
            break
        start, path = f"{begun.revision.commit}^@", source
    return found


def taken_away(root: Path, limit: int) -> dict[str, str]:
    """What the latest `limit` commits that took files away took: by path, the object id of the last bytes there, the
    latest first."""
    tokens = _told(root, *_LOG, "--diff-filter=D", "--format=", f"--max-count={limit}", "--", ".")
    found: dict[str, str] = {}
    for path, entry in _entries(tokens):
        found.setdefault(path, entry.old)
    return found


def content_at(root: Path, commit: str, path: str) -> bytes | None:
    """The bytes of the file at `path`, relative to `root`, in a commit given by its id; None where it has none."""
    if not _ID.fullmatch(commit) or "\n" in path or "\0" in path:
        return None
    try:
        answer = run_git(root, "cat-file", "blob", f"{commit}:./{path}")
    except (FileNotFoundError, GitFailed):
        return None
    return answer.stdout if answer.returncode == 0 else None


@dataclass(frozen=True, slots=True)
class _Entry:
    """What happened to a file: `old` and `new` are the object ids of its bytes, `status` is git's letter."""

    old: str
    new: str
    status: str


@dataclass(frozen=True, slots=True)
class _Change:
    revision: Revision
    entry: _Entry


def _changes(root: Path, start: str, path: str, limit: int) -> Iterator[_Change]:
    """A commit is `commit`, six fields, and what happened in it."""
    if limit <= 0:
        return
    tokens = _told(root, "--literal-pathspecs", *_LOG, _FIELDS, f"--max-count={limit}", start, "--", path)
    for token in tokens:
        if token != b"commit":
            continue
        commit, time, author, agents, summary, message = (next(tokens, b"").decode(errors="replace") for _ in range(6))
        entry = dict(_entries(tokens, once=True)).get(path)
        if entry is None:  # it is a folder's
            continue
        agent = agents.partition("\n")[0].strip()
        # Any program can write a commit: its time may be missing, or beyond what a datetime holds.
        seconds = min(int(time), _LATEST) if time.isdigit() else 0
        revision = Revision(
            commit,
            datetime.fromtimestamp(seconds, UTC),
            author,
            maker_of(agent),
            summary,
            message.rstrip("\n"),
            path,
        )
        yield _Change(revision, entry)


def _source(root: Path, begun: _Change, may: Callable[[str], bool]) -> str:
    """Where the note was before the commit that put it there, "" where it began."""
    gone, new = _gone_and_new(root, begun.revision.commit, may)
    path = begun.revision.path
    new = {one: oid for one, oid in new.items() if one == path or oid == begun.entry.new}
    return moves(gone, new, begun.revision.message, partial(blobs, root)).get(path, "")


def _goes_on(root: Path, ended: _Change, begun: _Change, may: Callable[[str], bool]) -> bool:
    """Whether the note that was put at a path is the one that was there before, and not gone from there elsewhere."""
    if ended.entry.old == begun.entry.new:
        return True
    held = blobs(root, (ended.entry.old, begun.entry.new))
    ids = [own_id(held[oid]) for oid in (ended.entry.old, begun.entry.new) if oid in held]
    if len(ids) < 2 or ids[0] != ids[1]:
        return False
    if ids[0]:
        return True
    gone, new = _gone_and_new(root, ended.revision.commit, may)
    return ended.revision.path not in moves(gone, new, ended.revision.message, partial(blobs, root)).values()


def _gone_and_new(root: Path, commit: str, may: Callable[[str], bool]) -> tuple[dict[str, str], dict[str, str]]:
    gone, new = {}, {}
    for path, entry in _entries(_told(root, *_TREE, commit)):
        if not may(path):
            continue
        if entry.status == "D":
            gone[path] = entry.old
        else:
            new[path] = entry.new
    return gone, new


def _entries(tokens: Iterator[bytes], *, once: bool = False) -> Iterator[tuple[str, _Entry]]:
    """Each is `:MODE MODE OID OID STATUS` and a path."""
    for token in tokens:
        if token.strip():
            _, _, old, new, status = token.decode().split()
            yield next(tokens, b"").decode(errors="surrogateescape"), _Entry(old, new, status)
            if once:
                return


def _told(root: Path, *arguments: str) -> Iterator[bytes]:
    try:
        answer = run_git(root, *arguments)
    except (FileNotFoundError, GitFailed):
        return iter(())
    return iter(answer.stdout.split(b"\0") if answer.returncode == 0 else ())
