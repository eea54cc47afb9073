"""Reading ahead in another process: nothing waits for ever, and nothing of the folder it is started in is run."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from notebook_sync.files.vault import Vault
from notebook_sync.sync.diff import Look
from notebook_sync.sync.reading import looks

_NOTES = 1600


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


@pytest.mark.usefixtures("two_cores")
def test_orders_larger_than_a_pipe_are_carried_out(tmp_path: Path) -> None:
    folder = "/".join("f" * 40 for _ in range(4))
    paths = _notes(tmp_path, [f"{folder}/{number:04}.md" for number in range(_NOTES)])
    found: list[Look] = []
    reading = threading.Thread(target=lambda: found.extend(_all_looks(tmp_path, paths, batch=800)), daemon=True)
    reading.start()
    reading.join(timeout=60)
    assert [look.path for look in found] == paths
    assert all(look.note is not None for look in found)


@pytest.mark.usefixtures("two_cores")
def test_a_module_beside_the_notes_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = _notes(tmp_path, [f"{number}.md" for number in range(_NOTES)])
    (tmp_path / "pickle.py").write_text("open('was_run', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    assert [look.path for look in _all_looks(tmp_path, paths, batch=400)] == paths
    assert not (tmp_path / "was_run").exists()


@pytest.mark.usefixtures("two_cores")
def test_without_another_process_the_files_are_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = _notes(tmp_path, [f"{number}.md" for number in range(_NOTES)])
    monkeypatch.setattr("sys.executable", str(tmp_path / "no-python"))
    assert [look.path for look in _all_looks(tmp_path, paths, batch=400)] == paths


def _notes(root: Path, paths: list[str]) -> list[str]:
    (root / paths[0]).parent.mkdir(parents=True, exist_ok=True)
    for path in paths:
        (root / path).write_text(f"# {path}\n")
    return paths


def _all_looks(root: Path, paths: list[str], *, batch: int) -> list[Look]:
    vault = Vault(root)
    return [look for each in looks(vault, paths, {}, encoding="cl100k_base", batch=batch, force=False) for look in each]
