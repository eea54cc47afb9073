"""The demonstration plays to its end in any folder, and runs nothing that lies there."""

from __future__ import annotations

from pathlib import Path

import pytest

from notebook_sync.surfaces import demo


def test_a_module_in_the_current_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "argparse.py").write_text("open('was_run', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MONGODB_URL", "mongodb://127.0.0.1:1")
    assert demo.show(tmp_path / "notebook") == 0
    assert not (tmp_path / "was_run").exists()
    assert "The notebook stays in" in capfd.readouterr().out
