"""A git repository as a person has one, around a notebook, and what `History` keeps in it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from notebook_sync.files.history import History, Kept
from notebook_sync.files.state import Place
from notebook_sync.sessions import Session
from notebook_sync.settings import GitTable
from tests.files.notebooks import tree_of, write

OWNER, SCRIBE = Session.owner(), Session.task("scribe")


def history_of(root: Path, **settings: object) -> History:
    return History(Place.open(root), tree_of(root), GitTable(**settings))


class Repository:
    """A real one; `git` answers with what it prints."""

    def __init__(self, root: Path, *options: str) -> None:
        self.root = root
        self._minutes = 0
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", *options)

    def git(self, *arguments: str, given: bytes = b"", check: bool = True) -> str:
        answer = subprocess.run(["git", "-C", self.root, *arguments], check=False, capture_output=True, input=given)
        assert answer.returncode == 0 or not check, answer.stderr
        return answer.stdout.decode(errors="surrogateescape").rstrip("\n")

    def commit(self, message: str, files: Mapping[str, str | None] | None = None) -> str:
        """A commit made by hand, years ago: these files, None for one that goes, and what is staged."""
        for path, text in (files or {}).items():
            if text is None:
                (self.root / path).unlink()
            else:
                write(self.root, {path: text})
        self.git("add", "--all", "--", ".", ":!.notebook")
        self._minutes += 1
        date = f"--date=@{1_600_000_000 + 60 * self._minutes}"
        self.git("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", date, "-m", message)
        return self.git("rev-parse", "HEAD")

    def edit(self, path: str, text: str, session: Session = OWNER, **settings: object) -> str | None:
        """What a tool does: the file, then its commit."""
        write(self.root, {path: text})
        return history_of(self.root, **settings).keep([Kept(path, text.encode(), "write")], session)

    def tree(self, revision: str = "HEAD") -> dict[str, str]:
        names = self.git("ls-tree", "-r", "-z", "--name-only", "--full-tree", revision).split("\0")
        return {name: self.git("cat-file", "blob", f"{revision}:{name}") for name in names if name}

    def status(self) -> list[str]:
        return self.git("status", "--porcelain", "--untracked-files=all").splitlines()
