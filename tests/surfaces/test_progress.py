"""A bar only where somebody sees it."""

from __future__ import annotations

import io

import pytest

from notebook_sync.surfaces.cli import progress as cli_progress
from notebook_sync.surfaces.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_none_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with progress("sync") as show:
        assert show is None


def test_none_for_work_that_is_soon_done(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress("sync") as show:
        assert show is not None
        show(1, 2)
    assert terminal.getvalue() == ""


def test_a_bar_for_work_that_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(cli_progress, "_PATIENCE_SECONDS", 0.0)
    with progress("sync") as show:
        assert show is not None
        show(1, 200)
        show(200, 200)
    assert "sync" in terminal.getvalue()
    assert "1/200" in terminal.getvalue() or "0/200" in terminal.getvalue()
