"""Hard links: a note that is a hard link to a file in `.notebook` or `.git`, at any depth, is not read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from notebook_sync import Notebook, Session
from notebook_sync.errors import UnreadableFile


@pytest.mark.parametrize("secret", [".notebook/a.md", ".notebook/past/x/y.md", ".git/b", ".git/objects/ab/cd/ef"])
def test_a_second_name_of_a_hidden_file_is_not_read(tmp_path: Path, secret: str) -> None:
    root = tmp_path / "notebook"
    Notebook.init(root)
    (root / secret).parent.mkdir(parents=True, exist_ok=True)
    (root / secret).write_text("# Canary\n")
    os.link(root / secret, root / "hard.md")
    with Notebook.open(root) as notebook:
        assert "hard link" in notebook.sync().failed[0].error
        with pytest.raises(UnreadableFile, match="hard link"):
            notebook.file("hard.md", Session.task("scribe"))
        assert ("hard.md", "error") in [(one.path, one.severity) for one in notebook.prompts.check().results]
        assert notebook.search("Canary") == []
