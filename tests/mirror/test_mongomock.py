"""The MongoDB store on mongomock, as far as it follows; never the only proof.

Left out, with the reason:

SearchContract   mongomock has no `$text`
RaceContract     its operations are not atomic, and its store is not shared between processes
the schema       it knows neither validators nor partial indexes, so `path` is not unique here
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable
from typing import Any

import mongomock
import pytest
from mongomock.collection import BulkOperationBuilder

from notebook_sync.mirror import mongo_connection
from notebook_sync.mirror.mongo import MongoMirror
from tests.mirror.contract import (
    DocumentContract,
    KnownContract,
    Opener,
    PendingContract,
    TombstoneContract,
    WriteContract,
)


class TestMongomock(DocumentContract, WriteContract, PendingContract, KnownContract, TombstoneContract):
    @pytest.fixture
    def open_mirror(self, monkeypatch: pytest.MonkeyPatch) -> Opener:
        monkeypatch.setattr(mongo_connection, "make_schema", lambda database: None)
        for method in ("add_update", "add_replace"):
            monkeypatch.setattr(BulkOperationBuilder, method, without_sort(getattr(BulkOperationBuilder, method)))
        client: Any = mongomock.MongoClient(tz_aware=True)
        return functools.partial(MongoMirror, "mongodb://mock", f"test_{uuid.uuid4().hex}", client=client)


def without_sort(method: Callable[..., Any]) -> Callable[..., Any]:
    """pymongo passes every bulk operation a `sort`, None unless asked for, that mongomock 4.3 does not know."""

    @functools.wraps(method)
    def known_to_mongomock(*args: Any, sort: Any = None, **options: Any) -> Any:
        assert sort is None
        return method(*args, **options)

    return known_to_mongomock
