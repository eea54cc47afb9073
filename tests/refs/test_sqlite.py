"""The embedded hot memory."""

from __future__ import annotations

from datetime import UTC, tzinfo
from pathlib import Path

import pytest

from notebook_sync.refs.sqlite import SqliteRefs
from tests.refs.contract import Opener, RefsContract


class TestSqlite(RefsContract):
    @pytest.fixture
    def open_refs(self, tmp_path: Path) -> Opener:
        def opened(timezone: tzinfo = UTC) -> SqliteRefs:
            return SqliteRefs(tmp_path / ".notebook" / "mirror.db", timezone)

        return opened
