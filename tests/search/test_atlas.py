"""MongoDB's own vector search: how it is asked for, and what is done where a server does not offer it.

The server of the tests does not. What it can do, keeping passages, is tried with it; what it cannot, finding the
nearest of them, is done here one by one.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pymongo
import pytest
from bson.binary import Binary

from notebook_sync.mirror.base import Mirror, Remove
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.refs.redis_search import NoSearch
from notebook_sync.search.base import Vector, Vectors
from notebook_sync.search.packing import section_number
from notebook_sync.search.proposals_chosen import ChosenProposals
from notebook_sync.search.redis_passages import RedisPassages
from notebook_sync.search.vectors_atlas import AtlasPassages, nearest_steps, search_index
from notebook_sync.search.vectors_mongo import MongoVectors
from notebook_sync.search.vectors_proposed import ProposedVectors
from notebook_sync.settings import MirrorSettings, RefsSettings, Settings
from notebook_sync.stores import open_vectors as open_vectors_of
from tests.search.contract import EAST, MODEL, NORTH, UP, GoneContract, Stores, ids, page, unit, vectored


class OneByOne(AtlasPassages):
    """As a server that offers it would answer."""

    def prepare(self, kind: str, dimensions: int, *, again: bool = False) -> None:
        pass

    def nearest(self, kind: str, query: Vector, count: int, section: str = "") -> tuple[list[str], float]:
        (search, _) = nearest_steps(query, count, section)
        asked = search["$vectorSearch"]
        condition = {"vector": {"$exists": True}, **asked.get("filter", {})}
        with self._connection.asking() as database:
            found = list(database[f"passages_{kind}"].find(condition))
        cosines = {one["_id"]: float(np.dot(one["vector"].as_vector().data, query)) for one in found}
        hits = sorted(found, key=lambda one: -cosines[one["_id"]])[: asked["limit"]]
        return list(dict.fromkeys(one["note"] for one in hits)), cosines[hits[-1]["_id"]] if len(hits) == count else -1


def open_vectors(url: str, database: str) -> Vectors:
    mongo = MongoVectors(url, database, timeout_seconds=30.0)
    return ProposedVectors(mongo, OneByOne(url, database, timeout_seconds=30.0))


class TestAtlas(GoneContract):
    @pytest.fixture
    def stores(self, mongodb_url: str, mongo_database: str) -> Stores:
        return (
            partial(MongoMirror, mongodb_url, mongo_database, timeout_seconds=30.0),
            partial(open_vectors, mongodb_url, mongo_database),
        )

    def test_what_the_server_proposes_is_found(self, mirror: Mirror, vectors: Vectors) -> None:
        pier, ferry, log = page("pier"), page("ferry"), page("log", folder="channels/odile/global")
        mirror.apply([pier, ferry, log])
        vectors.put(MODEL, [vectored(pier, NORTH, unit(1, 1), anchors=["", "times"]), vectored(ferry, EAST)])
        vectors.put(MODEL, [vectored(log, unit(1, 0.5))])
        assert ids(vectors.nearest(MODEL, EAST, 10)) == [ferry.id, log.id, pier.id]
        assert ids(vectors.nearest(MODEL, EAST, 1)) == [ferry.id]
        assert ids(vectors.nearest(MODEL, EAST, 10, section="times")) == [pier.id]
        assert "searched by its $vectorSearch" in vectors.name

    def test_passages_follow_their_notes(
        self, mirror: Mirror, vectors: Vectors, mongodb_url: str, mongo_database: str
    ) -> None:
        pier, ferry, log = page("pier"), page("ferry"), page("log", folder="channels/odile/global")
        mirror.apply([pier, ferry, log])
        vectors.put(MODEL, [vectored(pier, EAST, NORTH, UP), vectored(ferry, EAST), vectored(log, EAST)])
        assert kept(mongodb_url, mongo_database) == {pier.id: 3, ferry.id: 1}
        vectors.put(MODEL, [vectored(pier, EAST, np.zeros(8, np.float32))])
        assert kept(mongodb_url, mongo_database) == {pier.id: 1, ferry.id: 1}
        mirror.apply([Remove(ferry.id, ferry.note.digest)])
        vectors.tidy()
        assert kept(mongodb_url, mongo_database) == {pier.id: 1}
        vectors.put("another", [vectored(pier, UP)])
        vectors.tidy()
        assert ids(vectors.nearest("another", UP, 10)) == [pier.id]
        assert kept(mongodb_url, mongo_database) == {pier.id: 1}


def kept(url: str, database: str) -> dict[str, int]:
    """How many passages of each note are kept."""
    found: dict[str, int] = {}
    with pymongo.MongoClient(url) as client:
        names = [name for name in client[database].list_collection_names() if name.startswith("passages_")]
        for one in (one for name in names for one in client[database][name].find({"vector": {"$exists": True}})):
            found[one["note"]] = found.get(one["note"], 0) + 1
    return found


def test_a_server_that_does_not_offer_it_is_searched_exactly(mongodb_url: str, mongo_database: str) -> None:
    passages = AtlasPassages(mongodb_url, mongo_database, timeout_seconds=30.0)
    with pytest.raises(NoSearch, match=r"offers no \$vectorSearch"):
        passages.prepare("kind", 8)
    mirror = MongoMirror(mongodb_url, mongo_database, timeout_seconds=30.0)
    vectors = ProposedVectors(MongoVectors(mongodb_url, mongo_database, timeout_seconds=30.0), passages)
    pier = page("pier")
    mirror.apply([pier])
    vectors.put(MODEL, [vectored(pier, EAST)])
    vectors.tidy()
    assert ids(vectors.nearest(MODEL, EAST, 10)) == [pier.id]
    assert "searched exactly: this MongoDB offers no $vectorSearch" in vectors.name
    vectors.close()
    vectors.close()
    mirror.close()
    assert kept(mongodb_url, mongo_database) == {}


def test_the_pipeline_asks_for_the_passages_and_how_near_they_are() -> None:
    search, project = nearest_steps(EAST, 10, "times")
    asked = search["$vectorSearch"]
    vector = asked.pop("queryVector")
    assert isinstance(vector, Binary)
    assert vector.as_vector().data == [1, 0, 0, 0, 0, 0, 0, 0]
    assert asked == {
        "index": "nearest",
        "path": "vector",
        "numCandidates": 400,
        "limit": 10,
        "filter": {"section": {"$eq": section_number("times")}},
    }
    assert project == {"$project": {"note": 1, "score": {"$meta": "vectorSearchScore"}}}


@pytest.mark.parametrize(
    ("count", "looked_at", "limit"), [(1, 400, 1), (1_000, 5_000, 1_000), (50_000, 10_000, 10_000)]
)
def test_the_pipeline_keeps_to_what_the_server_takes(count: int, looked_at: int, limit: int) -> None:
    asked = nearest_steps(EAST, count)[0]["$vectorSearch"]
    assert (asked["numCandidates"], asked["limit"], "filter" in asked) == (looked_at, limit, False)


def test_the_index_is_of_the_models_dimensions_by_cosine() -> None:
    document = search_index(256).document
    assert document["type"] == "vectorSearch"
    vector, section = document["definition"]["fields"]
    assert vector == {"type": "vector", "path": "vector", "numDimensions": 256, "similarity": "cosine"}
    assert section == {"type": "filter", "path": "section"}


@pytest.mark.parametrize("redis", ["redis_url", "redis_stack_url"])
def test_it_is_asked_where_the_redis_has_no_search_module(
    request: pytest.FixtureRequest, redis: str, mongodb_url: str, mongo_database: str, redis_prefix: str
) -> None:
    by_redis = RedisPassages(request.getfixturevalue(redis), redis_prefix, timeout_seconds=30.0)
    by_server = OneByOne(mongodb_url, mongo_database, timeout_seconds=30.0)
    mongo = MongoVectors(mongodb_url, mongo_database, timeout_seconds=30.0)
    vectors = ProposedVectors(mongo, ChosenProposals(by_redis, by_server))
    mirror = MongoMirror(mongodb_url, mongo_database, timeout_seconds=30.0)
    pier = page("pier")
    mirror.apply([pier])
    vectors.put(MODEL, [vectored(pier, EAST)])
    vectors.tidy()
    is_plain = redis == "redis_url"
    assert ids(vectors.nearest(MODEL, EAST, 10)) == [pier.id]
    assert ("searched by its $vectorSearch" in vectors.name) is is_plain
    assert kept(mongodb_url, mongo_database) == ({pier.id: 1} if is_plain else {})
    vectors.close()
    mirror.close()


def test_settings_that_name_both_ask_both(mongodb_url: str, mongo_database: str, redis_url: str) -> None:
    settings = Settings(
        mirror=MirrorSettings(url=mongodb_url, database=mongo_database), refs=RefsSettings(url=redis_url)
    )
    vectors = open_vectors_of(settings, Path)
    mirror = MongoMirror(mongodb_url, mongo_database, timeout_seconds=30.0)
    pier = page("pier")
    mirror.apply([pier])
    vectors.put(MODEL, [vectored(pier, EAST)])
    vectors.tidy()
    assert "searched exactly: this MongoDB offers no $vectorSearch" in vectors.name
    vectors.close()
    mirror.close()
