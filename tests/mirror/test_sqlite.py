"""The embedded content store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from notebook_sync.mirror.base import Mirror
from notebook_sync.mirror.sqlite import SqliteMirror
from tests.mirror.contract import Opener, WholeMirrorContract


class TestSqlite(WholeMirrorContract):
    @pytest.fixture
    def open_mirror(self, tmp_path: Path) -> Opener:
        return partial(SqliteMirror, tmp_path / ".notebook" / "mirror.db")

    def test_its_id_can_be_told_while_another_process_writes(self, mirror: Mirror, tmp_path: Path) -> None:
        told = mirror.store_id()
        with closing(sqlite3.connect(tmp_path / ".notebook" / "mirror.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert mirror.store_id() == told
