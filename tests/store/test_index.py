"""The file: created, shared, replaced, damaged, upgraded, and always usable by the next process."""

import gc
import json
import os
import signal
import sqlite3
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.errors import Busy, IndexDamaged, IndexOutdated, NotebookError, ReadOnly
from notebook_sync.store import index as index_module
from notebook_sync.store import sqlite as sqlite_module
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is, to_milliseconds
from tests.processes import start_process
from tests.store.rows_for_tests import T0, document, entry, fact, open_index, private
from tests.waiting import eventually

Opening = Callable[..., Index]


def setting(index: Index, name: str) -> Any:
    with index._db.read() as db:
        return db.execute(f"PRAGMA {name}").fetchone()[0]


def test_the_file_is_for_its_owner_only(index: Index, tmp_path: Path) -> None:
    index.documents.put([document()])
    files = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob("index.db*")}
    assert files == {"index.db": 0o600, "index.db-wal": 0o600, "index.db-shm": 0o600}
    names = ("page_size", "auto_vacuum", "secure_delete", "journal_mode")
    assert [setting(index, name) for name in names] == [8192, 2, 1, "wal"]


def test_a_transaction_is_whole_or_nothing(index: Index) -> None:
    with pytest.raises(ZeroDivisionError), index.write(), index.write():  # noqa: PT012 - what came before is undone
        index.documents.put([document()])
        index.facts.put([fact()])
        assert index.documents.count() == index.facts.count() == 1
        raise ZeroDivisionError
    assert (index.documents.count(), index.facts.count(), index.rev()) == (0, 0, 0)


def test_a_durable_commit_waits_for_the_disk(index: Index) -> None:
    with index.write(durable=True), index.write(durable=True):
        assert setting(index, "synchronous") == 2
    with index.write():
        assert setting(index, "synchronous") == 1
        with pytest.raises(ValueError, match="outermost"), index.write(durable=True):
            pass


def test_another_thread_reads_what_is_committed(index: Index) -> None:
    index.documents.put([document("a")])
    with ThreadPoolExecutor(1) as thread, index.write():
        index.documents.put([document("b")])
        seen = thread.submit(index.documents.count).result()
    assert (seen, index.documents.count()) == (1, 2)


def test_every_commit_of_any_process_has_another_version(index: Index, opening: Opening, tmp_path: Path) -> None:
    seen = [index.version()]
    assert index.version() == seen[0]
    for writer in (index, opening()):
        writer.cache.put([{"id": "a"}])
        seen.append(index.version())
    (tmp_path / "index.db").unlink()
    assert len({*seen, index.version()}) == 4


def test_a_writer_waits_for_another_and_gives_up(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_module, "_BUSY_SECONDS", 0.05)
    index, other = opening(), opening()
    with index.write(), pytest.raises(Busy):
        other.documents.put([document()])
    other.documents.put([document()])
    assert index.documents.count() == 1


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_that_is_deleted_or_replaced_is_noticed(opening: Opening, tmp_path: Path, replaced: bool) -> None:
    index, other = opening(), tmp_path / "other"
    index.documents.put([document("a"), document("b")])
    for path in tmp_path.glob("index.db*" if replaced else "index.db"):
        path.unlink()
    if replaced:
        other.mkdir()
        opening(other).documents.put([document("c")])
        (other / "index.db").rename(tmp_path / "index.db")
        (other / "index.db-wal").rename(tmp_path / "index.db-wal")
    assert index.documents.count() == replaced
    index.documents.put([document("d")])
    assert index.needs_restore()
    assert opening().documents.count() == 1 + replaced


def test_revision_order_is_commit_order(opening: Opening, tmp_path: Path) -> None:
    """Processes create the file at once and write to it. Who follows the feed never misses what is committed later."""
    writers = [start_process(_put_some, tmp_path, name) for name in "abc"]
    index, seen, cursor = opening(), dict[str, int](), 0

    def follow() -> bool:
        nonlocal cursor
        for change in index.changes(cursor, 7):
            assert change.rev > cursor
            cursor = seen[change.id] = change.rev
        return len(seen) == 120

    eventually(follow, "all rows seen in the feed")
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    assert seen == dict(index.documents.tuples(("id", "rev")))


def _put_some(folder: Path, name: str) -> None:
    index = open_index(folder)
    for n in range(40):
        index.documents.put([document(f"{name}{n}")])
    index.close()


@pytest.mark.parametrize("nth", [1, 3, 8, 20, 60, 120, 190, 230, 238, 245, 252, 260, 270, 280, 290])
def test_a_process_that_is_killed_leaves_a_usable_file(opening: Opening, tmp_path: Path, nth: int) -> None:
    """At statement `nth` of its life. All of a batch is there, or nothing."""
    process = start_process(_put_until_killed, tmp_path, nth)
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    index = opening()
    count = index.documents.count()
    assert count in (0, 5)
    assert index.facts.count() == len(index.documents.search(["text"])) == count
    index.documents.put([document(f"n{n}", "more words") for n in range(7)])
    assert (len(index.documents.search(["words"])), setting(index, "integrity_check")) == (7, "ok")


def _put_until_killed(folder: Path, nth: int) -> None:
    count, connect = 0, sqlite3.connect

    def counted(_: str) -> None:
        nonlocal count
        count += 1
        if count == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(counted)
        return connection

    sqlite3.connect = traced  # type: ignore[assignment]
    index = open_index(folder)
    while True:
        with index.write():
            index.documents.put([document(f"n{n}", f"text {count}") for n in range(5)])
            index.facts.put([fact(f"f{n}") for n in range(5)])


def test_a_file_of_nonsense_is_set_aside(opening: Opening, tmp_path: Path) -> None:
    nonsense = b"not a database, but long enough to be looked at" * 100
    (tmp_path / "index.db").write_bytes(nonsense)
    with pytest.raises(IndexDamaged, match="rebuild"):
        opening(read_only=True)
    index = opening()
    assert [each.read_bytes() for each in tmp_path.glob("*.damaged-*")][:1] == [nonsense]
    index.documents.put([document()])
    assert index.needs_restore()


def test_damage_is_recovered_once(opening: Opening, tmp_path: Path) -> None:
    index = opening()
    index.documents.put([document(f"n{n}", " ".join(f"{n}x{m}" for m in range(900))) for n in range(200)])
    index.optimize()
    index.close()
    with (tmp_path / "index.db").open("r+b") as file:
        file.seek(8192 * 150)  # beyond the schema
        file.write(os.urandom((tmp_path / "index.db").stat().st_size - 8192 * 150))
    other = opening()
    for each in (index, other):
        with pytest.raises(IndexDamaged):
            assert each.documents.find(heavy=True) == each.vectors.put([{"id": "v"}])
    assert (index.recover() or tmp_path / "none").exists()
    index.documents.put([document("after")])
    assert (other.recover(), other.documents.tuples(("id",))) == (None, [("pages/after",)])


def test_an_index_for_reading_only_creates_and_changes_nothing(opening: Opening, tmp_path: Path) -> None:
    with pytest.raises(ReadOnly):
        opening(read_only=True)
    gc.collect()  # a connection that nobody closed would be a warning, which is an error
    assert list(tmp_path.glob("index.db*")) == []
    opening().documents.put([document()])
    index = opening(read_only=True)
    assert index.documents.count() == 1
    with pytest.raises(ReadOnly):
        index.documents.put([document()])


def test_other_trouble_of_sqlite_is_an_error_of_the_project(index: Index) -> None:
    with pytest.raises(NotebookError, match=r"index\.db cannot be used: no such table"), index.write() as db:
        db.execute("SELECT * FROM missing")


@pytest.mark.parametrize("what", ["schema", "analyzer"])
def test_a_newer_version_upgrades_the_file_and_stops_the_older(
    opening: Opening, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    older = opening()
    older.documents.put([document(access_count=4), document("ended", version=7)])
    older.history.put([{"id": "pages/plan@1", "note": "pages/plan", "version": 1}])
    older.documents.delete(["pages/ended"])
    older.stream.put([entry("s", "Said something")])
    with older.write() as db:
        db.execute("ALTER TABLE facts DROP COLUMN metadata")
        db.execute("DROP TABLE longterm")
    if what == "schema":
        monkeypatch.setattr(index_module, "SCHEMA", index_module.SCHEMA + 1)
    newer = opening(version=1 + (what == "analyzer"))
    assert [*(each.id for each in newer.changes(0, 9)), *newer.stream.search(["said"])] == ["s", "s"]
    assert (newer.documents.count(), newer.history.count()) == (0, 1)
    newer.documents.put([document()])
    newer.facts.put([fact(metadata={"a": 1})])
    assert newer.documents.tuples(("access_count", "version")) == [(4, 1)]
    assert [row["version"] for row in newer.documents.ended(Is("id", "=", "pages/ended"))] == [7]
    with pytest.raises(IndexOutdated, match="restart"):
        older.documents.put([document("late")])
    monkeypatch.undo()
    with pytest.raises(IndexOutdated, match="restart"):
        opening()


def test_the_number_of_the_schema_is_raised_when_tables_change() -> None:
    """Where this fails: raise SCHEMA, so that older files are filled again, and set the checksum here."""
    checksum = zlib.crc32("".join(index_module.schema_statements()).encode())
    assert (index_module.SCHEMA, checksum) == (5, 1345481428)


def test_what_is_deleted_leaves_the_file(index: Index, tmp_path: Path) -> None:
    index.documents.put([document("a", "zanzibar word", title="Zanzibar"), document("b", "word")])
    index.documents.delete(["pages/a"])
    index.optimize()
    assert all(b"zanzibar" not in path.read_bytes().lower() for path in tmp_path.glob("index.db*"))
    assert list(index.documents.search(["word"])) == ["pages/b"]


# The dump: what only the index knows, out and in again.


@pytest.fixture
def full(index: Index) -> Index:
    """An index that holds what no file does."""
    index.documents.put([document("a", access_count=3), document("b", version=4), private("p", "secret text")])
    index.documents.delete(["pages/b"])
    index.history.put(
        [{"id": "pages/a@1", "note": "pages/a", "version": 1, "at": T0, "summary": "s", "changed_by": "x"}]
    )
    index.facts.put([fact(metadata={"a": [1]}, source_history=[T0.isoformat()], created_at=T0)])
    index.stream.put([entry("s", "Said it")])
    index.checkpoints.put([{"id": "c", "name": "n", "at": T0, "body": {"days": [1, 2]}}])
    index.events.put([{"id": "e", "key": "k", "at": T0, "kind": "sync", "fields": {}}])
    index.intents.put([{"id": "i", "path": "pages/a.md", "new": b"bytes", "at": T0, "digest": "d"}])
    index.cache.put([{"id": "not dumped"}])
    return index


def test_a_lost_index_gets_back_what_only_it_knew(full: Index, tmp_path: Path) -> None:
    names = ("history", "stream", "longterm", "checkpoints", "events", "intents")
    before = {name: full.collections[name].find(heavy=True) for name in names}
    path = full.dump(tmp_path / "dump")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in (tmp_path / "dump").iterdir()] == [path.name]
    assert [text for text in ("first text", "secret text") if text in path.read_text()] == []
    (tmp_path / "index.db").unlink()
    assert full.needs_restore()
    full.load_dump(tmp_path / "dump")
    assert not full.needs_restore()
    for name, rows in before.items():
        found = full.collections[name].find(heavy=True)
        assert [{**row, "rev": 0} for row in found] == [{**row, "rev": 0} for row in rows]
    assert (full.documents.count(), full.cache.count()) == (0, 0)
    assert [change.collection for change in full.changes(0, 99)] == ["stream", "checkpoints"]
    assert list(full.stream.search(["said"])) == ["s"]
    full.documents.put([document("a"), document("b"), document("new")])
    full.facts.put([fact()])
    rows = sorted(full.documents.tuples(("id", "access_count", "version")))
    assert rows == [("pages/a", 3, 1), ("pages/b", 0, 4), ("pages/new", 0, 1)]
    assert full.facts.tuples(("metadata", "source_history", "created_at")) == [({"a": [1]}, [T0.isoformat()], T0)]


def test_unreadable_lines_are_left_out_and_the_others_loaded(full: Index, tmp_path: Path) -> None:
    path = full.dump(tmp_path / "dump")
    good = path.read_bytes()
    bad = [
        b"{",
        b"[]",
        b"\xff",
        b"null",
        *(
            json.dumps(each).encode()
            for each in (
                {"in": "nowhere", "row": {"id": "x"}},
                {"in": "documents"},
                {"in": "documents", "row": {"version": 1}},
                {"in": "documents", "row": {"id": "x", "created_at": "soon"}},
                {"in": "documents", "row": {"id": "x", "version": "many"}},
                {"in": "stream", "row": {"id": "x", "tags": [1]}},
            )
        ),
    ]
    path.write_bytes(b"\n".join(bad) + b"\n" + good + good[: len(good) // 2].rpartition(b"\n")[2] + b'{"in": "str')
    (tmp_path / "index.db").unlink()
    full.load_dump(tmp_path / "dump")
    assert full.history.count() == full.stream.count() == 1
    full.load_dump(tmp_path / "no such folder")


def test_a_dump_never_replaces_one_that_was_not_loaded(full: Index, tmp_path: Path) -> None:
    assert full.dumped_at() is None
    full.dump(tmp_path / "dump")
    assert full.dumped_at() is not None
    (tmp_path / "index.db").unlink()
    full.documents.put([document("a", "changed meanwhile")])
    full.dump(tmp_path / "dump")
    assert (full.stream.count(), full.documents.tuples(("access_count", "version"))) == (1, [(3, 1)])


def test_ended_rows_are_forgotten_after_a_year(full: Index, tmp_path: Path) -> None:
    full.documents.delete(["pages/a"])
    full.documents.rename({"channels/scribe/global/p": "channels/scribe/global/q"})
    long_ago = to_milliseconds(datetime.now(UTC) - timedelta(days=366))
    with full.write() as db:
        db.execute("UPDATE documents SET ended_at = ? WHERE id = 'pages/a'", (long_ago,))
        db.execute("UPDATE documents SET ended_at = ? WHERE ended_at < 0", (-long_ago,))
    assert ([row["id"] for row in full.documents.ended()], full.history.count()) == (["pages/b"], 1)
    full.dump(tmp_path / "dump")
    assert full.history.count() == 0
    with full.write() as db:
        assert db.execute("SELECT id FROM documents WHERE ended_at IS NOT NULL").fetchall() == [("pages/b",)]
    full.documents.put([document("a")])
    assert full.documents.tuples(("access_count",), Is("id", "=", "pages/a")) == [(0,)]
