"""What git's commits hold of one file: which changed it, and its bytes in each. Only reads; a folder without git, or
one that git will not open, has no commits, which is not an error."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from notebook_sync.errors import GitFailed
from notebook_sync.files.git import run_git

_ID = re.compile(r"[0-9a-f]{4,64}")
_LATEST = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())
_LOG = (
    *("log", "--follow", "-z", "--raw", "--no-abbrev", "-M", "-l300", "--no-ext-diff", "--no-textconv"),
    *("--no-show-signature", "--no-notes", "--no-color", "--encoding=UTF-8", "--ignore-submodules=all"),
    "--format=%x00commit%x00%H%x00%at%x00%an%x00%(trailers:key=Agent,valueonly,unfold,separator=%x0A)%x00%s%x00%B",
)


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


def revisions(root: Path, path: str, limit: int) -> list[Revision]:
    """The latest `limit` commits that changed the file at `path`, the latest first. Renames are followed."""
    try:
        above = run_git(root, "rev-parse", "--show-prefix")
        answer = run_git(root, "--literal-pathspecs", *_LOG, f"--max-count={max(limit, 0)}", "--", path)
    except (FileNotFoundError, GitFailed):
        return []
    if above.returncode != 0 or answer.returncode != 0:
        return []
    prefix = above.stdout.decode(errors="surrogateescape").rstrip("\n")
    return list(_told_by(iter(answer.stdout.split(b"\0")), prefix))


def content_at(root: Path, commit: str, path: str) -> bytes | None:
    """The bytes of the file at `path`, relative to `root`, in a commit given by its id; None where it has none."""
    if not _ID.fullmatch(commit) or "\n" in path or "\0" in path:
        return None
    try:
        answer = run_git(root, "cat-file", "blob", f"{commit}:./{path}")
    except (FileNotFoundError, GitFailed):
        return None
    return answer.stdout if answer.returncode == 0 else None


def _told_by(tokens: Iterator[bytes], prefix: str) -> Iterator[Revision]:
    """A commit is `commit`, six fields, and the one change of the file: `:MODE MODE OID OID STATUS` and a path, for a
    rename two."""
    for token in tokens:
        if token != b"commit":
            continue
        commit, time, author, agents, summary, message = (next(tokens, b"").decode(errors="replace") for _ in range(6))
        change = next((one for one in tokens if one.strip()), b"")
        path = next(tokens, b"")
        if change.split()[-1:] and change.split()[-1][:1] in {b"R", b"C"}:
            path = next(tokens, b"")
        agent = agents.partition("\n")[0].strip()
        # Any program can write a commit: its time may be missing, or beyond what a datetime holds.
        seconds = min(int(time), _LATEST) if time.isdigit() else 0
        yield Revision(
            commit,
            datetime.fromtimestamp(seconds, UTC),
            author,
            f"agent:{agent}" if agent else "owner",
            summary,
            message.rstrip("\n"),
            posixpath.relpath(path.decode(errors="surrogateescape"), prefix or "."),
        )
