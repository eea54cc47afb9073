"""Of a change that no commit holds, the command line tells the one reason that is true."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from notebook_sync import Notebook
from notebook_sync.surfaces.cli.main import run
from tests.notes.whole_notebooks import git

OWNER = ("--session", "owner")


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    root = tmp_path / "office"
    Notebook.init(root)
    (root / "pages/ferry.md").write_text("# Ferry\n\nIt leaves at nine.\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "The ferry")
    return root


@pytest.fixture
def rolled_back(office: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The answer to a rollback that brings back what the last commit says."""
    with Notebook.open(office) as notebook:
        then = notebook.stream.checkpoint()
    (office / "pages/ferry.md").write_text("not committed")
    assert run(["-C", str(office), "rollback", then.id, "--files", *OWNER]) == 0
    return capsys.readouterr().out


def commit_told(office: Path, capsys: pytest.CaptureFixture[str]) -> str:
    edit = ["edit", "pages/ferry.md", "write", "--content", "It leaves at ten."]
    assert run(["-C", str(office), *edit, *OWNER]) == 0
    (told,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("commit ")]
    return told.removeprefix("commit").strip()


def test_what_the_last_commit_has_already(rolled_back: str) -> None:
    assert "commit   none: the last commit has it like this already\n" in rolled_back


def test_what_git_ignores(office: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(office, "rm", "--quiet", "--cached", "pages/ferry.md")
    git(office, "commit", "--quiet", "-m", "No ferry")
    (office / ".git/info/exclude").write_text("pages/\n")
    assert commit_told(office, capsys) == "none: git ignores it; see: git check-ignore -v PATH"


def test_what_lies_in_a_repository_of_its_own(office: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(office / "pages", "init", "--quiet")
    assert commit_told(office, capsys) == "none: it lies in a repository of its own, which is left to you"


def test_a_git_that_failed(office: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (office / ".git/HEAD.lock").touch()
    assert commit_told(office, capsys) == "none: the warning says why"


def test_what_would_go_with_a_merge(office: Path, capsys: pytest.CaptureFixture[str]) -> None:
    git(office, "update-ref", "MERGE_HEAD", "HEAD")
    assert run(["-C", str(office), "create", "pages", "--title", "Lamps", "--content", "Lit.", *OWNER]) == 0
    told = capsys.readouterr().out
    assert "commit   none: a merge stands open\n" in told
    assert "warning  saved, but not committed: a merge stands open; commit it when that is over\n" in told
