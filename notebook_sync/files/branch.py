"""What git has checked out, and whether somebody is in the middle of changing that. Never writes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import new
from pathlib import Path
from stat import S_ISREG

from notebook_sync.errors import GitFailed
from notebook_sync.files.git import first_line, run_git, why

# By what git keeps of each in its folder while it stands open. A rebase picks: it comes before that.
_UNDER_WAY = {
    "rebase-merge": "a rebase stands open",
    "rebase-apply": "a rebase stands open",
    "MERGE_HEAD": "a merge stands open",
    "CHERRY_PICK_HEAD": "a cherry-pick stands open",
    "REVERT_HEAD": "a revert stands open",
    "BISECT_LOG": "a bisection stands open",
}
NO_BRANCH = "no branch is checked out"
# What a checkout has while it changes files.
_LOCK = "index.lock"
# What the file says where git keeps its refs in tables.
_ELSEWHERE = b"ref: refs/heads/.invalid"
_LEFT_BEHIND_SECONDS = 600.0  # of a git that was killed
_PATHS = 500


@dataclass(frozen=True, slots=True)
class Branch:
    """A work tree around `root`; `head` is the commit that was checked out when it was asked, "" for none."""

    root: Path
    folder: Path
    form: str
    head: str

    def stands_open(self) -> str:
        """As `what_stands_open`."""
        return what_stands_open(self.root, self.folder)

    def is_changing(self) -> bool:
        """Whether git changes files right now."""
        try:
            return time.time() - (self.folder / _LOCK).stat().st_mtime < _LEFT_BEHIND_SECONDS
        except OSError:
            return False

    def uncommitted(self, texts: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
        """Those of the texts, by path, None for no file, that `head` does not hold. Raises GitFailed."""
        held = self._held(list(texts)) if self.head else {}
        return {path: raw for path, raw in texts.items() if held.get(path) != self._id_of(raw)}

    def _held(self, paths: list[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for start in range(0, len(paths), _PATHS):
            asked = ("ls-tree", "-z", self.head, "--", *paths[start : start + _PATHS])
            answer = run_git(self.root, "--literal-pathspecs", *asked)
            if answer.returncode != 0:
                raise GitFailed(first_line(answer.stderr.decode(errors="replace")))
            for line in filter(None, answer.stdout.split(b"\0")):
                entry, _, path = line.partition(b"\t")
                found[os.fsdecode(path)] = entry.split()[2].decode()
        return found

    def _id_of(self, raw: bytes | None) -> str | None:
        return None if raw is None else new(self.form, b"blob %d\0" % len(raw) + raw, usedforsecurity=False).hexdigest()


def what_stands_open(root: Path, folder: Path) -> str:
    """Why a commit made now would go with what git has not finished, or be on no branch; "" where it would stay.
    `folder` is the work tree's own of git. Raises GitFailed."""
    for name, told in _UNDER_WAY.items():
        if (folder / name).exists():
            return told
    try:
        head = (folder / "HEAD").read_bytes()
    except OSError:
        head = b""
    if head.startswith(b"ref: ") and head.strip() != _ELSEWHERE:
        return ""
    return "" if run_git(root, "symbolic-ref", "--quiet", "HEAD").returncode == 0 else NO_BRANCH


def branch_of(root: Path) -> Branch | None:
    """The work tree that `root` stands in; None where there is none, or no git. Raises GitFailed."""
    try:
        asked = ("--is-inside-work-tree", "--show-object-format", "--absolute-git-dir")
        answer = run_git(root, "rev-parse", *asked)
        if answer.returncode == 0:
            _, form, folder = os.fsdecode(answer.stdout).split("\n")[:3]
            head = run_git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").stdout.decode().strip()
            return Branch(root, Path(folder), form, head)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GitFailed(f"git could not be asked: {error.strerror}") from None
    complaint = answer.stderr.decode(errors="replace")
    if "must be run in a work tree" in complaint or not why(complaint):
        return None
    raise GitFailed(why(complaint))


def head_stamp(root: Path) -> object:
    """A value that changes when another commit is checked out around `root`, from files alone; None without git."""
    for folder in (str(root), *map(str, root.parents)):  # no Path is made of it: each prompt asks this
        own = shared = f"{folder}/.git"
        try:
            if S_ISREG(os.stat(own).st_mode):  # noqa: PTH116 - of a linked work tree or a submodule
                own = os.path.join(folder, Path(own).read_text().removeprefix("gitdir:").strip())  # noqa: PTH118
                common = Path(own, "commondir")
                shared = os.path.join(own, common.read_text().strip()) if common.exists() else own  # noqa: PTH118
            with open(f"{own}/HEAD", "rb") as file:  # noqa: PTH123
                head = file.read()
        except OSError:
            continue
        ref = os.fsdecode(head.removeprefix(b"ref:").strip())
        return head, *(stamp_of(f"{shared}/{name}") for name in (ref, "packed-refs", "reftable/tables.list"))
    return None


def stamp_of(file: str) -> tuple[int, int, int] | None:
    """A value that changes when the file is replaced; None where there is none."""
    try:
        found = os.stat(file)  # noqa: PTH116
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
