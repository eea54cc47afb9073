"""The notebook that decay and duplicates are tried in: each module says what is in its facts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync import Notebook


@pytest.fixture
def harbour(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Notebook]:
    (tmp_path / "notebook.toml").write_text("")
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts/notes.md").write_text(request.module.TEXT)
    with Notebook.open(tmp_path) as notebook:
        yield notebook
