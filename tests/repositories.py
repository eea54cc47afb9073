"""A git repository with an owner, as tests need one."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(root: Path, *arguments: str) -> str:
    """What a command of git prints."""
    owner = ("-c", "user.name=Ines", "-c", "user.email=ines@ferry.example")
    answer = subprocess.run(["git", "-C", str(root), *owner, *arguments], capture_output=True, check=True)
    return answer.stdout.decode()


def commit_all(root: Path) -> None:
    """Commit every file as the owner does by hand; make the repository where there is none."""
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "By hand")
