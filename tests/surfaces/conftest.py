"""The command as a process, in an environment that no setting of this machine reaches."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.cli.main import run
from tests import forked
from tests.scripted_llm import ScriptedServer
from tests.surfaces.doors import DOORS, Door

REPOSITORY = Path(__file__).parents[2]

Answer = Callable[..., Any]
Told = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shell_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which `notebook-sync` is the code under test."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "bin"
    folder.mkdir()
    forked.write_command(folder)
    return {
        "HOME": str(home),
        "PATH": f"{folder}:{os.environ['PATH']}",
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


@pytest.fixture
def notebook(root: Path) -> Iterator[Notebook]:
    with Notebook.open(root) as notebook:
        yield notebook


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest, root: Path) -> Iterator[Door]:
    with DOORS[request.param](root) as door:
        yield door


@pytest.fixture
def model(root: Path) -> Iterator[ScriptedServer]:
    """A language model that the notebook asks."""
    with ScriptedServer() as server:
        (root / "notebook.toml").write_text(f'[llm]\nbase_url = "{server.url}"\nmodel = "small"\n')
        yield server


@pytest.fixture
def told(root: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Runs a command on the notebook; its exit code, what it printed, and what it complained of."""

    def ask(*arguments: str) -> tuple[int, str, str]:
        code = run(["-C", str(root), *arguments])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return ask


@pytest.fixture
def answer(told: Told) -> Answer:
    """Runs a command with --json; its value, after a look at the exit code."""

    def ask(*arguments: str, code: int = 0) -> Any:
        found, printed, complaint = told(*arguments, "--json")
        assert found == code, complaint
        return json.loads(printed)

    return ask
