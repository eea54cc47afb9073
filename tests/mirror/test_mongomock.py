"""The MongoDB store on mongomock, as far as it follows; never the only proof.

Left out, with the reason:

SearchContract   mongomock has no `$text`
RaceContract     its operations are not atomic, and its store is not shared between processes
the schema       it knows neither validators nor partial indexes, so `path` is not unique here
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any

import mongomock
import pytest
from mongomock.collection import BulkOperationBuilder
from pymongo.errors import BulkWriteError

from notebook_sync.errors import BackendDown, UnreadableFile
from notebook_sync.files.note import COLLECTIONS
from notebook_sync.mirror import mongo_connection
from notebook_sync.mirror.base import MarkStale, Mirror, Remove, Touch, Write
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.mirror.mongo_connection import Condition, Connection
from tests.mirror.contract import (
    DocumentContract,
    KnownContract,
    Opener,
    PendingContract,
    TombstoneContract,
    WriteContract,
    note,
    put,
    stamp,
)


class TestMongomock(DocumentContract, WriteContract, PendingContract, KnownContract, TombstoneContract):
    @pytest.fixture
    def open_mirror(self, monkeypatch: pytest.MonkeyPatch) -> Opener:
        monkeypatch.setattr(mongo_connection, "make_schema", lambda database: None)
        monkeypatch.setattr(Connection, "found", found_one_by_one)
        monkeypatch.setattr(Connection, "first", first_one_by_one)
        for method in ("add_update", "add_replace"):
            monkeypatch.setattr(BulkOperationBuilder, method, without_sort(getattr(BulkOperationBuilder, method)))
        client: Any = mongomock.MongoClient(tz_aware=True)
        return partial(MongoMirror, "mongodb://mock", f"test_{uuid.uuid4().hex}", client=client)

    @pytest.mark.parametrize(
        ("code", "error"), [(121, UnreadableFile), (10334, UnreadableFile), (14031, BackendDown), (8000, BackendDown)]
    )
    def test_only_what_is_wrong_with_a_note_is_said_of_the_note(
        self, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception]
    ) -> None:
        monkeypatch.setattr(mongomock.collection.Collection, "bulk_write", refusing(code))
        with pytest.raises(error, match="no, said the server"):
            mirror.apply([put(note())])

    @pytest.mark.parametrize("write", [Remove, partial(MarkStale, reason="late"), partial(Touch, stamp=stamp(1))])
    def test_a_refused_change_without_a_note_is_the_stores_trouble(
        self, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, write: Callable[..., Write]
    ) -> None:
        mirror.apply([put(note())])
        monkeypatch.setattr(mongomock.collection.Collection, "bulk_write", refusing(121))
        with pytest.raises(BackendDown, match=r"pages/plan: .*no, said the server"):
            mirror.apply([write("pages/plan", base=note().digest)])

    def test_a_write_that_the_replicas_did_not_take_is_the_stores_trouble(
        self, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(mongomock.collection.Collection, "bulk_write", refusing(64, "writeConcernErrors"))
        with pytest.raises(BackendDown, match="no, said the server"):
            mirror.apply([put(note())])


def found_one_by_one(
    connection: Connection, condition: Condition, fields: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """mongomock knows no `$unionWith`."""
    with connection.asking() as database:
        return [row for name in COLLECTIONS for row in database[name].find(condition, fields)]


def first_one_by_one(
    connection: Connection, asked: Mapping[str, Sequence[Condition]], order: Mapping[str, int], limit: int
) -> list[dict[str, Any]]:
    """As `found_one_by_one`. Of the orders there are, without `$text` only the one of lists can be asked for."""
    with connection.asking() as database:
        rows = [
            row for name, steps in asked.items() for row in database[name].aggregate([dict(step) for step in steps])
        ]
    assert list(order) == ["metadata.updated_at", "_id"]
    rows.sort(key=lambda row: str(row["_id"]))
    return sorted(rows, key=lambda row: row["metadata"]["updated_at"], reverse=True)[:limit]


def refusing(code: int, kind: str = "writeErrors") -> Callable[..., Any]:
    """A bulk whose first operation the server answers with this error."""

    def bulk_write(*_: Any, **__: Any) -> Any:
        counts = {"nInserted": 0, "nMatched": 0, "nRemoved": 0, "writeErrors": [], "writeConcernErrors": []}
        raise BulkWriteError({**counts, kind: [{"index": 0, "code": code, "errmsg": "no, said the server"}]})

    return bulk_write


def without_sort(method: Callable[..., Any]) -> Callable[..., Any]:
    """pymongo passes every bulk operation a `sort`, None unless asked for, that mongomock 4.3 does not know."""

    @wraps(method)
    def known_to_mongomock(*args: Any, sort: Any = None, **options: Any) -> Any:
        assert sort is None
        return method(*args, **options)

    return known_to_mongomock
