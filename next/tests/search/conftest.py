"""Fixtures of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from notebook_sync.store.index import Index
from tests.search.notes import ANALYZER


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An empty index."""
    made = Index(tmp_path / "index.db", ANALYZER)
    yield made
    made.close()
