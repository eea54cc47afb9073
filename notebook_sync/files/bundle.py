"""A repository in one file, and made anew from it: every commit, branch, tag and other ref. Of the repository itself,
its settings, its remotes and its hooks, nothing is taken along and nothing is run.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from notebook_sync.errors import GitFailed
from notebook_sync.files.git import first_line, run_git

# A history of many years takes minutes to pack; git ends by itself.
_SECONDS = 3600.0
_FORMS = {"sha1": 40, "sha256": 64}
_BRANCH = re.compile(r"refs/heads/[^\0-\x20\x7f]+")


@dataclass(frozen=True, slots=True)
class History:
    """What a repository has checked out. `branch` is a whole ref, "" where a commit is checked out by itself; `head` is
    that commit, "" on a branch without one. `form` is git's object format."""

    form: str
    branch: str
    head: str
    commits: int

    def __post_init__(self) -> None:
        texts = (self.form, self.branch, self.head)
        if not all(isinstance(text, str) for text in texts) or type(self.commits) is not int or self.commits < 0:
            raise ValueError("not a history")
        if self.form not in _FORMS or not (self.branch or self.head):
            raise ValueError(f"git knows no object format {self.form!r}, or nothing is checked out")
        if self.branch and not _BRANCH.fullmatch(self.branch):
            raise ValueError(f"{self.branch!r} is no branch")
        if self.head and not re.fullmatch(f"[0-9a-f]{{{_FORMS[self.form]}}}", self.head):
            raise ValueError(f"{self.head!r} is no commit")

    def as_dict(self) -> dict[str, Any]:
        """The shape that a manifest has."""
        return asdict(self)


def history_of(root: Path) -> History | None:
    """What the repository has checked out whose top `root` is; None where there is no git or no such repository."""
    try:
        answer = run_git(root, "rev-parse", "--is-inside-work-tree", "--show-object-format", "--show-toplevel")
        if answer.returncode != 0:
            return None
        _, form, top = os.fsdecode(answer.stdout).split("\n")[:3]
        if Path(top).resolve() != root.resolve():
            return None
        branch = run_git(root, "symbolic-ref", "--quiet", "HEAD").stdout.decode(errors="replace").strip()
        head = run_git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").stdout.decode().strip()
        counted = run_git(root, "rev-list", "--count", "--all", *(["HEAD"] if head else []), seconds=_SECONDS)
    except FileNotFoundError:
        return None
    commits = counted.stdout.decode().strip()
    return History(form, branch, head, int(commits) if commits.isdigit() else 0) if branch or head else None


def is_shallow(root: Path) -> bool:
    """Whether git was told to leave the older commits where it was cloned from."""
    return run_git(root, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true"


def pack(root: Path, history: History, to: Path) -> None:
    """Write every ref, and all commits behind them, to the file `to`. Raises GitFailed."""
    head = ["HEAD"] if history.head else []
    # Several threads would give other bytes each time.
    asked = ("-c", "pack.threads=1", "bundle", "create", "--quiet", str(to), "--all", *head)
    _told(root, *asked)


def unpack(bundle: Path | None, history: History, root: Path) -> None:
    """Make `root`, which is none yet, a repository with these refs, and what was checked out checked out, leaving the
    files as they are. `bundle` is None where there was no commit. Raises GitFailed."""
    _told(root, "init", "--quiet", f"--object-format={history.form}")
    if bundle is not None:
        refs = _refs_in(_told(root, "bundle", "unbundle", str(bundle)))
        lines = "".join(f"create {name} {commit}\n" for name, commit in refs if name.startswith("refs/"))
        _told(root, "update-ref", "--stdin", given=os.fsencode(lines))
    if history.branch:
        _told(root, "check-ref-format", history.branch)
        _told(root, "symbolic-ref", "HEAD", history.branch)
    else:
        _told(root, "update-ref", "--no-deref", "HEAD", history.head)
    now = run_git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").stdout.decode().strip()
    if now != history.head:
        raise GitFailed(f"{history.branch or 'HEAD'} is not the commit that was checked out")
    if now:
        _told(root, "rev-list", "--objects", "--quiet", "--all", "HEAD")  # what is missing is found out now
        _told(root, "read-tree", "HEAD")
        run_git(root, "update-index", "-q", "--refresh", seconds=_SECONDS)  # what differs is what was not committed


def texts_of(root: Path, path: str) -> Iterator[tuple[str, bytes]]:
    """What the file at `path` said in each commit that changed it, by the commit."""
    commits = run_git(root, "rev-list", "--all", "--", path, seconds=_SECONDS).stdout.decode().split()
    for commit in commits:
        yield commit, run_git(root, "cat-file", "blob", f"{commit}:./{path}").stdout


def paths_of(root: Path) -> set[str]:
    """Every path that a commit ever had."""
    told = _told(root, "log", "--all", "HEAD", "-m", "--no-renames", "--name-only", "--format=", "-z")
    return {os.fsdecode(name.strip(b"\n")) for name in told.split(b"\0")}


def _refs_in(told: bytes) -> Iterator[tuple[str, str]]:
    for line in told.split(b"\n"):
        commit, _, name = os.fsdecode(line).partition(" ")
        yield name, commit


def _told(root: Path, *arguments: str, given: bytes = b"") -> bytes:
    with contextlib.suppress(FileNotFoundError):
        answer = run_git(root, *arguments, given=given, seconds=_SECONDS)
        if answer.returncode != 0:
            raise GitFailed(first_line(answer.stderr.decode(errors="replace")))
        return answer.stdout
    raise GitFailed("there is no git on this machine; install it")
