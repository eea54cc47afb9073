"""The dump: what only the index knows, out and in again."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from notebook_sync.store.index import Index
from notebook_sync.store.rows import Is, to_milliseconds
from tests.store.rows_for_tests import T0, document, entry, fact, private


@pytest.fixture
def index(index: Index) -> Index:
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


def test_a_lost_index_gets_back_what_only_it_knew(index: Index, tmp_path: Path) -> None:
    names = ("history", "stream", "longterm", "checkpoints", "events", "intents")
    before = {name: index.collections[name].find(heavy=True) for name in names}
    path = index.dump(tmp_path / "dump")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in (tmp_path / "dump").iterdir()] == [path.name]
    assert [text for text in ("first text", "secret text") if text in path.read_text()] == []
    (tmp_path / "index.db").unlink()
    restored = (index.needs_restore(), index.load_dump(tmp_path / "dump"), index.needs_restore())
    assert restored == (True, 0, False)
    for name, rows in before.items():
        found = index.collections[name].find(heavy=True)
        assert [{**row, "rev": 0} for row in found] == [{**row, "rev": 0} for row in rows]
    assert (index.documents.count(), index.cache.count()) == (0, 0)
    assert [change.collection for change in index.changes(0, 99)] == ["stream", "checkpoints"]
    assert [hit.id for hit in index.stream.search(["said"])] == ["s"]
    index.documents.put([document("a"), document("b"), document("new")])
    index.facts.put([fact()])
    rows = sorted(index.documents.tuples(("id", "access_count", "version")))
    assert rows == [("pages/a", 3, 1), ("pages/b", 0, 4), ("pages/new", 0, 1)]
    assert index.facts.tuples(("metadata", "source_history", "created_at")) == [({"a": [1]}, [T0.isoformat()], T0)]


def test_unreadable_lines_are_counted_and_the_others_loaded(index: Index, tmp_path: Path) -> None:
    path = index.dump(tmp_path / "dump")
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
    assert index.load_dump(tmp_path / "dump") == len(bad) + 1
    assert index.history.count() == index.stream.count() == 1
    assert index.load_dump(tmp_path / "no such folder") == 0


def test_a_dump_never_replaces_one_that_was_not_loaded(index: Index, tmp_path: Path) -> None:
    assert index.dumped_at() is None
    index.dump(tmp_path / "dump")
    assert index.dumped_at() is not None
    (tmp_path / "index.db").unlink()
    index.documents.put([document("a", "changed meanwhile")])
    index.dump(tmp_path / "dump")
    assert (index.stream.count(), index.documents.tuples(("access_count", "version"))) == (1, [(3, 1)])


def test_ended_rows_are_forgotten_after_a_year(index: Index, tmp_path: Path) -> None:
    index.documents.delete(["pages/a"])
    index.documents.rename({"channels/scribe/global/p": "channels/scribe/global/q"})
    long_ago = to_milliseconds(datetime.now(UTC) - timedelta(days=366))
    with index.write() as db:
        db.execute("UPDATE documents SET ended_at = ? WHERE id = 'pages/a'", (long_ago,))
        db.execute("UPDATE documents SET ended_at = ? WHERE ended_at < 0", (-long_ago,))
    assert ([row["id"] for row in index.gone()], index.history.count()) == (["pages/b"], 1)
    index.dump(tmp_path / "dump")
    assert index.history.count() == 0
    with index.write() as db:
        assert db.execute("SELECT id FROM documents WHERE ended_at IS NOT NULL").fetchall() == [("pages/b",)]
    index.documents.put([document("a")])
    assert index.documents.tuples(("access_count",), Is("id", "=", "pages/a")) == [(0,)]
