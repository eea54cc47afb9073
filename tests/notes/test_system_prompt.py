"""What `explain` says of the prompt holds for the very files that it looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.files.vault import Reading, Vault


def test_explain_reads_each_prompt_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "runtime" / "standing-orders.md"
    file.parent.mkdir()
    file.write_text("## Boundaries\n\n- oil the lamp\n")
    readings: list[str] = []
    read = Vault.read_closely

    def counting(vault: Vault, path: str) -> Reading:
        readings.append(path)
        return read(vault, path)

    monkeypatch.setattr(Vault, "read_closely", counting)
    with Notebook.open(tmp_path) as notebook:
        (found,) = notebook.explain("oil the lamp", Session.task())
    assert found.in_prompt
    assert readings.count("runtime/standing-orders.md") == 1
