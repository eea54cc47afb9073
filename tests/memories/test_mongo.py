"""What is known of memories on a real MongoDB."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pymongo
import pytest

from notebook_sync.errors import BackendDown
from notebook_sync.mirror.base import Mirror
from notebook_sync.mirror.memories import MemoryRows, Sought
from notebook_sync.mirror.memories_mongo import MongoMemories
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.patience import Silence
from tests.memories.contract import MemoryRowsContract, Stores, ids, keep, memory
from tests.mirror.contract import T0
from tests.servers import free_port


class TestMongo(MemoryRowsContract):
    @pytest.fixture
    def stores(self, mongodb_url: str, mongo_database: str) -> Stores:
        mirror = partial(MongoMirror, mongodb_url, mongo_database, timeout_seconds=30.0)
        return mirror, partial(MongoMemories, mongodb_url, mongo_database, timeout_seconds=30.0)

    @pytest.fixture
    def database(self, mongodb_url: str, mongo_database: str) -> Iterator[Any]:
        with pymongo.MongoClient[dict[str, Any]](mongodb_url) as client:
            yield client[mongo_database]

    def test_a_row_of_an_earlier_version_is_told_until_it_is_read_anew(
        self, mirror: Mirror, rows: MemoryRows, database: Any
    ) -> None:
        keep(mirror, memory("ferry", kind="decision", tags=("tides",)))
        lacking = dict.fromkeys(["kind", "domain", "agent", "priority", "relations", "needs_review"], "")
        database.memories.update_one({"_id": "ferry"}, {"$unset": lacking})
        database.memory_use.delete_many({})
        (found,) = rows.all()
        assert (found.id, found.kind, found.priority, found.relations) == ("ferry", "", 7, ())
        rows.put_scores({"ferry": 0.5}, T0)
        assert ids(rows.sought(Sought(tags=frozenset({"tides"})), 1)) == ["ferry"]

    def test_a_memory_of_which_only_the_marks_were_written_is_not_told(
        self, mirror: Mirror, rows: MemoryRows, database: Any
    ) -> None:
        keep(mirror, memory("ferry", domain="harbour", tags=("tides",)), memory("pier"))
        database.memory_use.insert_many([{"_id": f"a{n}", "marks": ["t:tides"], "standing": 1.0} for n in range(9)])
        database.memory_use.update_one({"_id": "ferry"}, {"$set": {"marks": ["t:tides", "d:sea"]}})
        assert ids(rows.sought(Sought(tags=frozenset({"tides"})), 1)) == ["ferry"]
        assert ids(rows.sought(Sought(tags=frozenset({"tides"})), 5)) == ["ferry", "pier"]
        assert rows.sought(Sought(only_domains=frozenset({"sea"})), 5) == []

    def test_what_waits_for_a_review_has_an_index(self, mirror: Mirror, rows: MemoryRows, database: Any) -> None:
        keep(mirror, *(memory(f"n{at}", needs_review=at == 7) for at in range(9)))
        assert ids(list(rows.for_review())) == ["n7"]
        used = {each["name"]: each["accesses"]["ops"] for each in database.memories.aggregate([{"$indexStats": {}}])}
        assert used["needs_review_only"] > 0

    def test_what_a_memory_is_sought_by_is_mended_with_the_scores(
        self, mirror: Mirror, rows: MemoryRows, database: Any
    ) -> None:
        keep(mirror, memory("ferry", domain="harbour"))
        database.memory_use.update_one({"_id": "ferry"}, {"$set": {"marks": ["d:sea"]}})
        rows.put_scores({"ferry": 0.25}, T0)
        assert ids(rows.sought(Sought(only_domains=frozenset({"harbour"})), 5)) == ["ferry"]


def test_a_server_that_is_not_there_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Silence, "trouble", "")  # each call is the first to find out
    rows = MongoMemories(f"mongodb://127.0.0.1:{free_port()}", timeout_seconds=0.05)
    for ask in (
        lambda: rows.of(["ferry"]),
        lambda: rows.sought(Sought(), 1),
        lambda: list(rows.all()),
        lambda: list(rows.for_review()),
        lambda: rows.linking_to(["ferry"]),
        lambda: rows.used(["ferry"], T0),
        lambda: rows.put_scores({"ferry": 1.0}, T0),
        lambda: rows.restore_usage([("ferry", 1, None)]),
    ):
        with pytest.raises(BackendDown):
            ask()
    rows.close()
