"""What git knows of the notebook's files: how often each changed, since when, and why.

Only reads, in one pass over the log. Never runs a hook, pager, filter or other program that a repository names, and
never reaches a network. A folder without git, or one that git will not open, has no past, which is not an error.
"""

from __future__ import annotations

import subprocess
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from notebook_sync.errors import NotebookError
from notebook_sync.files.git import command, environment, first_line, run_git, why
from notebook_sync.files.note import HISTORY_LIMIT, Seed

SUMMARY_LIMIT = 200


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

        Renames are followed. A file that was deleted and made again goes on where it stopped.
        """
        changes = self._changes.get(path)
        if changes is None:
            return None
        recent = changes[-HISTORY_LIMIT:]
        first = len(changes) - len(recent) + 1
        crumbs = (self._commits[index].breadcrumb(version) for version, index in enumerate(recent, first))
        return Seed(len(changes), self._commits[changes[0]].timestamp, tuple(crumbs))


@dataclass(frozen=True, slots=True)
class _Commit:
    timestamp: datetime
    summary: str
    changed_by: str

    def breadcrumb(self, version: int) -> dict[str, Any]:
        return {
            "version": version,
            "timestamp": self.timestamp,
            "summary": self.summary,
            "changed_by": self.changed_by,
        }


def git_history(root: Path) -> GitHistory:
    """Read the log of the repository that `root` is in.

    A commit is the owner's, or `agent:NAME`'s when its message has a trailer `Agent: NAME`.
    """
    try:
        with tempfile.TemporaryFile() as complaints, _git_log(root, complaints) as log:
            try:
                history = _past_told_by(_tokens(log.stdout))
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
    asked = [path for path in paths if "\n" not in path]
    names = "".join(f"HEAD:./{path}\n" for path in asked)
    try:
        if run_git(root, "rev-parse", "--verify", "--quiet", "HEAD").returncode != 0:
            return None
        answer = run_git(root, "cat-file", "--batch", given=names.encode()).stdout
    except FileNotFoundError:
        return None
    held = {}
    for path in asked:
        head, _, answer = answer.partition(b"\n")
        kind, _, size = head.partition(b" ")[2].rpartition(b" ")  # of `OID blob SIZE`, or of `NAME missing`
        if not size.isdigit():
            continue
        if kind == b"blob":
            held[path] = answer[: int(size)]
        answer = answer[int(size) + 1 :]
    return held


# The repository may be anyone's: its settings could change what the log looks like, or name programs to run.
_LOG = (
    *("log", "-z", "--raw", "--no-abbrev", "-M", "-l300", "--reverse", "--topo-order"),
    *("--no-ext-diff", "--no-textconv", "--no-show-signature", "--no-notes", "--no-color"),
    *("--ignore-submodules=all", "--encoding=UTF-8"),
    "--format=%x00commit%x00%at%x00%(trailers:key=Agent,valueonly,unfold,separator=%x0A)%x00%s",
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


def _past_told_by(tokens: Iterator[bytes]) -> GitHistory:
    """Read the log's tokens, oldest commit first.

    A commit is `commit`, time, agent, subject; each of its changes is `:MODE MODE OID OID STATUS` and a path, for a
    rename two.
    """
    history = GitHistory()
    commits, changes = history._commits, history._changes
    moved: dict[str, str] = {}
    for token in tokens:
        if token == b"commit":
            commits.append(_commit(*(next(tokens, b"") for _ in range(3))))
        elif token.strip():
            _, mode, old, new, status = token.split()
            source = path = _name(next(tokens, b""))
            if status.startswith(b"R"):
                path = _name(next(tokens, b""))
            if path is None or not mode.startswith(b"100"):
                continue  # not UTF-8, or no longer a regular file: deleted, a symbolic link, a submodule
            if source in changes and source != path:
                changes[path] = changes.pop(source)
                moved[source] = path
            elif status == b"M" and path not in changes:
                path = moved.get(path, path)  # edited on one branch, renamed on the other
            if old != new or path not in changes:
                changes.setdefault(path, array("I")).append(len(commits) - 1)
    return history


_LATEST = int(datetime(9999, 12, 31, tzinfo=UTC).timestamp())


def _commit(time: bytes, agents: bytes, subject: bytes) -> _Commit:
    # Any program can write a commit: its time may be missing, or beyond what a datetime holds.
    seconds = min(int(time), _LATEST) if time.isdigit() else 0
    agent = agents.decode(errors="replace").partition("\n")[0].strip()[:SUMMARY_LIMIT]
    return _Commit(
        timestamp=datetime.fromtimestamp(seconds, UTC),
        summary=subject.decode(errors="replace")[:SUMMARY_LIMIT],
        changed_by=f"agent:{agent}" if agent else "owner",
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
