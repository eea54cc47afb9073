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
from notebook_sync.refs.sqlite import SqliteRefs
from tests.refs.contract import Opener, RefsContract, ref
from tests.refs.contract_memory import Teller, found


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
