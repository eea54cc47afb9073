"""What is known of memories in the embedded file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from notebook_sync.mirror.base import Mirror, Remove
from notebook_sync.mirror.memories import MemoryRows, Sought
from notebook_sync.mirror.memories_sqlite import SqliteMemories
from notebook_sync.mirror.sqlite import SqliteMirror
from notebook_sync.refs.sqlite import SqliteRefs
from tests.memories.contract import BERTHS, MemoryRowsContract, Stores, ids, keep, link, memory
from tests.mirror.contract import T0, note, put


class TestSqlite(MemoryRowsContract):
    @pytest.fixture
    def file(self, tmp_path: Path) -> Path:
        return tmp_path / ".notebook" / "mirror.db"

    @pytest.fixture
    def stores(self, file: Path) -> Stores:
        return partial(SqliteMirror, file), partial(SqliteMemories, file)

    def test_memories_may_be_opened_before_the_mirror_ever_was(self, stores: Stores) -> None:
        rows, mirror = stores[1](), stores[0]()
        assert list(rows.all()) == []
        keep(mirror, memory("ferry"))
        assert ids(list(rows.all())) == ["ferry"]
        rows.close()
        mirror.close()

    def test_a_file_without_an_index_of_what_waits_for_a_review_gets_one(self, stores: Stores, file: Path) -> None:
        mirror = stores[0]()
        keep(mirror, memory("ferry", needs_review=True), memory("pier"))
        mirror.close()
        with closing(sqlite3.connect(file)) as earlier:
            earlier.execute("DROP INDEX memory_review")
        rows = stores[1]()
        assert ids(list(rows.for_review())) == ["ferry"]
        rows.close()

    def test_a_file_that_knew_nothing_of_parts_is_told_them_with_the_next_write(
        self, stores: Stores, file: Path
    ) -> None:
        mirror = stores[0]()
        (told,) = keep(mirror, memory("ferry", kind="decision", missing=["outcome"]))
        mirror.close()
        with closing(sqlite3.connect(file)) as earlier:
            earlier.execute("ALTER TABLE memory_note DROP COLUMN missing")
        mirror, rows = stores[0](), stores[1]()
        assert [each.missing for each in rows.all()] == [()]
        assert mirror.apply([put(told.note, told.note.digest)]) == []
        assert [each.missing for each in rows.all()] == [("outcome",)]
        mirror.close()
        rows.close()

    @pytest.mark.parametrize("is_first", [True, False])
    def test_hot_memory_lives_in_the_same_file(self, stores: Stores, file: Path, is_first: bool) -> None:
        opened = [SqliteRefs(file, ZoneInfo("UTC"))] if is_first else []
        mirror, rows = stores[0](), stores[1]()
        keep(mirror, memory("ferry"))
        opened.append(SqliteRefs(file, ZoneInfo("UTC")))
        assert ids(list(rows.all())) == ["ferry"]
        for refs in opened:
            refs.close()
        rows.close()
        mirror.close()

    def test_a_file_deleted_while_open_is_begun_anew(self, mirror: Mirror, rows: MemoryRows, file: Path) -> None:
        keep(mirror, memory("ferry"))
        rows.used(["ferry"], T0)
        for each in file.parent.iterdir():
            each.unlink()
        assert list(rows.all()) == []
        keep(mirror, memory("ferry"))
        assert [each.accesses for each in rows.all()] == [0]

    def test_a_file_of_an_earlier_version_tells_what_paths_do_until_they_are_read_anew(
        self, stores: Stores, file: Path
    ) -> None:
        mirror = stores[0]()
        decided = memory("ferry", path="memories/decision/a.md", tags=("tides",))
        gone = memory("gone", path="memories/problem/gone.md")
        odd = [memory("odd", path="memories/other/b.md"), memory("plain", path="memories/c.md")]
        keep(mirror, decided, gone, *odd, note("pages/plan.md"))
        mirror.apply([Remove("gone", gone.digest)])
        mirror.close()
        with closing(sqlite3.connect(file)) as earlier:
            earlier.executescript("DROP TABLE memory_note; DROP TABLE memory_mark; DROP TABLE memory_link")
            earlier.execute("DROP TABLE memory_use")
        rows = stores[1]()
        assert list(rows.for_review()) == []
        assert [(each.id, each.kind, each.priority, each.tags) for each in rows.all()] == [
            ("ferry", "decision", 7, ("tides",)),
            ("odd", "", 7, ()),
            ("plain", "", 7, ()),
        ]
        assert ids(rows.sought(Sought(tags=frozenset({"tides"})), 1)) == ["ferry"]
        assert rows.sought(Sought(without_tags=frozenset({"tides"}), kinds=frozenset({"decision"})), 1)[0].id == "odd"
        rows.close()

    def test_nothing_is_kept_beside_notes_that_are_no_memories(self, mirror: Mirror, file: Path) -> None:
        (ferry,) = keep(mirror, memory("ferry", tags=("tides",), relations=[link(BERTHS)]))
        keep(mirror, note("pages/plan.md", tags=("tides",)))
        asked = " UNION ALL ".join(map("SELECT count(*) FROM {}".format, ("memory_note", "memory_mark", "memory_link")))
        with closing(sqlite3.connect(file)) as other:
            assert other.execute(asked).fetchall() == [(1,), (1,), (1,)]
            mirror.apply([Remove(ferry.id, ferry.note.digest)])
            assert other.execute(asked).fetchall() == [(0,), (0,), (0,)]
