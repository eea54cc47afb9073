"""The embedded content store."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from notebook_sync.mirror.sqlite import SqliteMirror
from tests.mirror.contract import Opener, WholeMirrorContract


class TestSqlite(WholeMirrorContract):
    @pytest.fixture
    def open_mirror(self, tmp_path: Path) -> Opener:
        return partial(SqliteMirror, tmp_path / ".notebook" / "mirror.db")
