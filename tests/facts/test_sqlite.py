"""Rows of facts in the embedded file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from notebook_sync.mirror.facts import FactRows
from notebook_sync.mirror.facts_sqlite import SqliteFacts
from tests.facts.contract import FERRY, NOTES, FactRowsContract, Opener, put
from tests.facts.users import open_sqlite


class TestSqliteFacts(FactRowsContract):
    @pytest.fixture
    def open_facts(self, tmp_path: Path) -> Opener:
        return partial(open_sqlite, tmp_path / ".notebook" / "mirror.db")

    def test_a_file_that_is_deleted_is_made_anew(self, rows: FactRows, tmp_path: Path) -> None:
        put(rows, NOTES, FERRY)
        (tmp_path / ".notebook" / "mirror.db").unlink()
        assert (rows.all("all"), rows.sources()) == ([], {})
        put(rows, NOTES, FERRY)
        assert len(rows.all()) == 1

    def test_the_rate_of_the_notebook_holds_for_facts_without_one_of_their_own(self, tmp_path: Path) -> None:
        path = tmp_path / ".notebook" / "mirror.db"
        first = SqliteFacts(path, decay_rate=0.01)
        put(first, NOTES, FERRY)
        first.close()
        later = SqliteFacts(path, decay_rate=0.5)
        assert [fact.decay_rate for fact in later.all()] == [0.5]
        later.close()
