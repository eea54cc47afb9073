"""Syntheses in the embedded file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from notebook_sync.mirror.base import Mirror
from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.mirror.syntheses_sqlite import SqliteSyntheses
from tests.context.syntheses_contract import Opener, SynthesesContract, keep, synthesis
from tests.mirror.contract import note, put


class TestSqliteSyntheses(SynthesesContract):
    @pytest.fixture
    def open_syntheses(self, tmp_path: Path) -> Opener:
        return partial(SqliteSyntheses, tmp_path / "mirror.db")

    @pytest.fixture
    def mirror(self, tmp_path: Path) -> Iterator[Mirror]:
        mirror = SqliteMirror(tmp_path / "mirror.db")
        yield mirror
        mirror.close()

    def test_a_file_of_an_earlier_version_is_brought_up_to_it(self, tmp_path: Path) -> None:
        mirror = SqliteMirror(tmp_path / "mirror.db")
        assert mirror.apply([put(note())]) == []
        store = SqliteSyntheses(tmp_path / "mirror.db")
        before = store.state()
        assert mirror.apply([put(note("pages/other.md"))]) == []
        assert store.state() != before
        store.close()
        mirror.close()

    def test_a_file_that_was_deleted_while_it_is_open_is_made_anew(self, tmp_path: Path) -> None:
        store = SqliteSyntheses(tmp_path / "mirror.db")
        keep(store, synthesis())
        before = store.state()
        for file in tmp_path.glob("mirror.db*"):
            file.unlink()
        assert store.get("k1") is None
        assert store.state() != before
        keep(store, synthesis())
        assert store.get("k1") == synthesis()
        store.close()
