"""The embedded hot memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import UTC, tzinfo
from pathlib import Path

import pytest

from notebook_sync.embedded import Embedded
from notebook_sync.refs import sqlite_vectors
from notebook_sync.refs.sqlite import SqliteRefs
from tests.refs.contract import Opener, RefsContract, gone, ref
from tests.refs.contract_memory import NOW, Teller, entry, found
from tests.refs.meanings import AXES, Axes


class TestSqlite(RefsContract):
    looks_through_all = True

    @pytest.fixture
    def tell(self, tmp_path: Path) -> Teller:
        def told(day: str, line: str) -> list[str]:
            with closing(sqlite3.connect(tmp_path / ".notebook" / "mirror.db")) as connection, connection:
                connection.execute("INSERT INTO daily (day, entry) VALUES (?, ?)", (day, line))
                return [entry for (entry,) in connection.execute("SELECT entry FROM daily ORDER BY n")]

        return told

    @pytest.fixture
    def open_refs(self, tmp_path: Path) -> Opener:
        def opened(timezone: tzinfo = UTC) -> SqliteRefs:
            return SqliteRefs(tmp_path / ".notebook" / "mirror.db", timezone)

        return opened

    def test_words_of_what_was_written_again_and_again_do_not_pile_up(self, open_refs: Opener, tmp_path: Path) -> None:
        refs = open_refs()
        for turn in range(12):
            refs.write([ref(f"pages/{n}", title=f"Boat {n} turn{turn + 100}") for n in range(1000)], announce=False)
            assert len(found(refs, f"turn{turn + 100}", limit=10)) == 10
            assert found(refs, f"turn{turn + 99}") == []
        refs.close()
        with sqlite3.connect(tmp_path / ".notebook" / "mirror.db") as connection:
            indexed = connection.execute("SELECT count(*) FROM ref_words").fetchone()[0]
        connection.close()
        assert indexed < 9000

    def test_vectors_of_what_was_written_again_and_again_do_not_pile_up(
        self, open_refs: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_vectors, "_FEW", 10)
        refs, axes = open_refs(), Axes()
        for turn in range(9):
            refs.write([ref(f"pages/{n}", title="Boat" if turn % 2 else "Key") for n in range(20)], announce=False)
            assert len(found(refs, "vessel", meaning=axes.meaning("vessel"), limit=50)) == 20 * (turn % 2)
        refs.close()
        with closing(sqlite3.connect(tmp_path / ".notebook" / "mirror.db")) as connection:
            assert connection.execute("SELECT count(*) FROM ref_vector").fetchone()[0] <= 70

    def test_one_process_finds_what_another_embedded(self, open_refs: Opener) -> None:
        one, other, axes = open_refs(), open_refs(), Axes()
        for n in range(5):
            other.log(entry(f"{n}", "A boat."))
            other.embed(axes.model, axes.embed, 10)
            by_server = axes.meaning("vessel", is_local=False)
            assert len(found(one, "vessel", meaning=by_server)) == n + 1
        assert len(axes.made) == 5
        one.close()
        other.close()

    def test_a_number_that_had_a_vector_is_not_given_again(self, open_refs: Opener) -> None:
        refs, axes = open_refs(), Axes()
        refs.write([ref("pages/a", title="Boat")], announce=False)
        refs.embed(axes.model, axes.embed, 10)
        refs.write([gone("pages/a")], announce=False)
        refs.write([ref("pages/b", title="Gale")], announce=False)
        assert found(refs, "vessel", meaning=axes.meaning("vessel")) == []
        assert found(refs, "storm", meaning=axes.meaning("storm")) == ["pages/b"]
        refs.close()

    def test_where_there_are_more_vectors_than_are_held_the_newest_are_looked_through(
        self, open_refs: Opener, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_vectors, "_MOST_NUMBERS", 3 * len(AXES))
        refs, axes = open_refs(), Axes()
        for n in range(5):
            refs.log(entry(f"{n}", f"Boat {n}."))
            assert len(found(refs, "vessel", meaning=axes.meaning("vessel"))) == min(n + 1, 3)
        recalled = refs.recall("boat", now=NOW, meaning=axes.meaning("boat")).results
        assert {one["relevance"] for one in recalled} == {1.0}
        assert len(recalled) == 5
        refs.close()

    def test_a_file_that_is_made_anew_has_vectors_of_its_own(self, open_refs: Opener, tmp_path: Path) -> None:
        refs, axes = open_refs(), Axes()
        refs.log(entry("a", "A boat."))
        assert found(refs, "vessel", meaning=axes.meaning("vessel")) == ["a"]
        for file in (tmp_path / ".notebook").iterdir():
            file.unlink()
        refs.log(entry("b", "A key."))
        assert found(refs, "vessel", meaning=axes.meaning("vessel")) == []
        assert found(refs, "lock", meaning=axes.meaning("lock")) == ["b"]
        refs.close()

    def test_who_recalls_at_once_with_others_finds_what_they_find(self, open_refs: Opener) -> None:
        several = [open_refs() for _ in range(4)]
        for turn in range(10):
            several[0].write([ref(f"pages/{turn}-{n}", title=f"turn{turn}") for n in range(50)], announce=False)
            with ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(lambda refs, turn=turn: len(found(refs, f"turn{turn}", limit=60)), several))
            assert answers == [50] * 4
        for refs in several:
            refs.close()

    def test_each_word_is_indexed_once_however_many_recall(self, open_refs: Opener, tmp_path: Path) -> None:
        several = [open_refs() for _ in range(4)]
        for turn in range(30):
            several[0].write([ref(f"pages/{turn}", title="Boat")], announce=False)
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda refs: found(refs, "boat"), several))
        with sqlite3.connect(tmp_path / ".notebook" / "mirror.db") as connection:
            marks = dict(connection.execute("SELECT name, value FROM meta WHERE name LIKE 'ref_words%'"))
        connection.close()
        assert marks == {"ref_words_upto": "30", "ref_words_held": "30"}
        for refs in several:
            refs.close()

    def test_who_writes_waits_for_a_piece_of_what_is_indexed_not_for_all(
        self, open_refs: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refs = open_refs()
        refs.write([ref(f"pages/{n}", title="Boat") for n in range(2500)], announce=False)
        writing = Embedded.writing
        free: list[int] = []

        @contextmanager
        def noted(db: Embedded) -> Iterator[sqlite3.Connection]:
            with writing(db) as connection:
                yield connection
            with closing(sqlite3.connect(tmp_path / ".notebook" / "mirror.db", timeout=0)) as other, other:
                other.execute("BEGIN IMMEDIATE")
                (indexed,) = other.execute("SELECT value FROM meta WHERE name = 'ref_words_upto'").fetchone()
                free.append(int(indexed))

        monkeypatch.setattr(Embedded, "writing", noted)
        assert len(found(refs, "boat")) == 10
        assert free == [1000, 2000, 2500]
        refs.close()
