"""The demonstration plays to its end in any folder, and runs nothing that lies there."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from notebook_sync.surfaces.cli import demo
from tests import forked


def test_a_module_in_the_current_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "argparse.py").write_text("open('was_run', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MONGODB_URL", "mongodb://127.0.0.1:1")
    monkeypatch.setattr(demo, "_PROGRAM", (str(_real_at_first(tmp_path, demo._PROGRAM)),))
    assert demo.show(tmp_path / "notebook") == 0
    assert not (tmp_path / "was_run").exists()
    played = capfd.readouterr().out
    assert "The ferry leaves the harbour at nine." in played.partition("search 'boat departure' --limit 1")[2]
    assert "The notebook stays in" in played


def _real_at_first(folder: Path, program: tuple[str, ...]) -> Path:
    """The program as it is for the first command, and forked for the others, which are started in the same way."""
    path = folder / "program"
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = init ]; then exec {shlex.join(program)} "$@"; fi\n'
        f'PYTHONPATH={shlex.quote(str(forked.REPOSITORY))} exec {shlex.join(forked.command())} "$@"\n'
    )
    path.chmod(0o755)
    return path
