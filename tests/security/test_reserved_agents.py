"""Reserved names: no session can use a name that breadcrumbs, commits and events use for the program, the owner or an
unnamed agent."""

from __future__ import annotations

from pathlib import Path

import pytest

from notebook_sync import Session
from notebook_sync.errors import UsageError
from notebook_sync.sessions import KINDS, PROGRAM
from notebook_sync.surfaces.cli.main import run
from notebook_sync.tokens import Tokens

RESERVED = ("notebook-sync", "Notebook-Sync", "owner", "OWNER", "unknown", "ｏｗｎｅｒ")


@pytest.mark.parametrize("name", RESERVED)
def test_no_session_takes_a_name_of_the_program(name: str) -> None:
    for kind in KINDS:
        for make in (Session, Session.named):
            with pytest.raises(UsageError, match="uses itself"):
                make(kind, name)


@pytest.mark.parametrize("name", RESERVED)
def test_no_token_is_for_such_a_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        Tokens(tmp_path / ".notebook").add(name, "task")


def test_no_command_runs_under_such_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["init", str(tmp_path / "notebook")])
    assert (
        run(["-C", str(tmp_path / "notebook"), "stream", "log", "x", "--session", "task", "--agent", "notebook-sync"])
        == 2
    )
    assert "uses itself" in capsys.readouterr().err


def test_the_program_is_nobody_else() -> None:
    assert PROGRAM.changed_by == "notebook-sync"
    assert Session.owner() != PROGRAM
    assert Session.task("scribe").changed_by == "agent:scribe"
