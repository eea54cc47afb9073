"""The command as a process, in an environment that no setting of this machine reaches."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from notebook_sync.notebook import Notebook

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def shell_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which `notebook-sync` is the code under test."""
    home = tmp_path_factory.mktemp("home")
    command = home / "bin" / "notebook-sync"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m notebook_sync "$@"\n')
    command.chmod(0o755)
    return {
        "HOME": str(home),
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "100",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """For commands that run in this process."""
    for name in ("MONGODB_URL", "REDIS_URL", "NOTEBOOK_SESSION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A notebook as `init` makes it, without git, and with one page."""
    root = tmp_path / "notebook"
    Notebook.init(root, git=False)
    (root / "pages/plan.md").write_text("# Plan\n\nStart small.\n\n## Budget\n\n100\n")
    return root
