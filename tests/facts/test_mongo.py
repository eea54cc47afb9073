"""Rows of facts on a real MongoDB."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import pymongo
import pytest

from notebook_sync.errors import BackendDown
from notebook_sync.files.facts import id_of
from notebook_sync.mirror.facts import FactRows, Source
from notebook_sync.mirror.facts_mongo import ROWS, SOURCES, MongoFacts
from notebook_sync.patience import Silence
from tests.facts.contract import BERTH, FERRY, NOTES, FactRowsContract, Opener, change, contents, place, put
from tests.facts.users import open_mongo
from tests.servers import free_port


@pytest.fixture(scope="module")
def database(mongodb_url: str) -> Iterator[Any]:
    """One for all tests: to make the collections of a mirror takes longer than most of them."""
    name = f"notebook_test_{uuid.uuid4().hex}"
    with pymongo.MongoClient(mongodb_url) as client:
        yield client[name]
        client.drop_database(name)


class TestMongoFacts(FactRowsContract):
    @pytest.fixture
    def open_facts(self, mongodb_url: str, database: Any) -> Opener:
        for collection in (ROWS, SOURCES):
            database[collection].delete_many({})
        return partial(open_mongo, mongodb_url, database.name)

    def test_who_is_stopped_before_a_file_is_known_leaves_nothing_that_stands(
        self, rows: FactRows, database: Any
    ) -> None:
        put(rows, NOTES, FERRY)
        rows.increment_access(id_of(FERRY))
        reworded = change("reworded", BERTH, was=id_of(FERRY))
        assert not rows.apply([Source(NOTES, "another", "d2", (place(BERTH),))], [reworded])
        assert database[ROWS].count_documents({}) == 2
        assert contents(rows.all("all")) == [FERRY]
        assert rows.apply([Source(NOTES, "d1", "d2", (place(BERTH),))], [reworded])
        (one,) = rows.all()
        assert (one.content, one.access_count) == (BERTH, 1)
        assert database[ROWS].count_documents({}) == 1

    def test_each_fact_is_a_document_of_its_own_and_each_file_one(self, rows: FactRows, database: Any) -> None:
        put(rows, NOTES, FERRY, BERTH)
        assert {row["_id"] for row in database[ROWS].find()} == {id_of(FERRY), id_of(BERTH)}
        assert [(row["_id"], len(row["places"])) for row in database[SOURCES].find()] == [(NOTES, 2)]


def test_a_server_that_is_not_there_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Silence, "trouble", "")  # each call is the first to find out
    rows = MongoFacts(f"mongodb://127.0.0.1:{free_port()}", timeout_seconds=0.2)
    with pytest.raises(BackendDown):
        rows.increment_access("0123456789abcdef")
    with pytest.raises(BackendDown):
        rows.all()
    with pytest.raises(BackendDown):
        rows.apply([Source(NOTES, "", "d1")], [])
    rows.close()
