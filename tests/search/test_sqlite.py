"""Vectors in the embedded file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from notebook_sync.errors import BackendDown
from notebook_sync.mirror.base import Mirror
from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.search.base import Counts, Vectors
from notebook_sync.search.vectors_sqlite import SqliteVectors
from tests.search.contract import EAST, MODEL, NORTH, Stores, WholeVectorsContract, ids, page, vectored


class TestSqlite(WholeVectorsContract):
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return tmp_path / ".notebook" / "mirror.db"

    @pytest.fixture
    def stores(self, file: Path) -> Stores:
        return partial(SqliteMirror, file), partial(SqliteVectors, file)

    def test_vectors_may_be_opened_before_the_mirror_ever_was(self, stores: Stores) -> None:
        vectors, mirror = stores[1](), stores[0]()
        assert vectors.counts(MODEL) == Counts(0, 0)
        mirror.apply([page("pier")])
        assert vectors.behind(MODEL, 10) == ["pages/pier"]
        vectors.close()
        mirror.close()

    @pytest.mark.parametrize("first", ["mirror", "vectors"])
    def test_a_file_deleted_while_open_is_begun_anew(
        self, mirror: Mirror, vectors: Vectors, file: Path, first: str
    ) -> None:
        pier, ferry = page("pier"), page("ferry")
        mirror.apply([pier, ferry])
        vectors.put(MODEL, [vectored(pier, EAST), vectored(ferry, NORTH)])
        assert ids(vectors.nearest(MODEL, EAST, 10)) == ["pages/pier", "pages/ferry"]
        for each in file.parent.iterdir():
            each.unlink()
        if first == "vectors":
            assert vectors.nearest(MODEL, EAST, 10) == []
        mirror.apply([ferry])
        assert vectors.behind(MODEL, 10) == ["pages/ferry"]
        vectors.put(MODEL, [vectored(ferry, EAST)])
        assert ids(vectors.nearest(MODEL, EAST, 10)) == ["pages/ferry"]

    def test_a_process_that_was_killed_in_between_leaves_whole_vectors(
        self, stores: Stores, mirror: Mirror, vectors: Vectors, file: Path
    ) -> None:
        pier = page("pier")
        mirror.apply([pier])
        vectors.put(MODEL, [vectored(pier, EAST)])
        with closing(sqlite3.connect(file)) as other:
            other.execute("DELETE FROM vector_rest")  # not committed: as if it had been killed
        assert ids(vectors.nearest(MODEL, EAST, 10)) == ["pages/pier"]

    def test_after_close_it_is_down(self, vectors: Vectors) -> None:
        vectors.close()
        with pytest.raises(BackendDown):
            vectors.nearest(MODEL, EAST, 1)

    def test_a_file_of_something_else_is_down_and_told(self, file: Path) -> None:
        file.parent.mkdir()
        file.write_bytes(b"no database" * 1000)
        with pytest.raises(BackendDown, match="not a database"):
            SqliteVectors(file)

    def test_a_broken_put_keeps_nothing(self, mirror: Mirror, vectors: Vectors) -> None:
        pier = page("pier")
        mirror.apply([pier])
        wrong = vectored(pier, EAST, NORTH)
        with pytest.raises(ValueError, match="places"):
            vectors.put(MODEL, [vectored(pier, EAST), type(wrong)(wrong.note_id, wrong.digest, [], wrong.vectors)])
        assert vectors.behind(MODEL, 10) == ["pages/pier"]
