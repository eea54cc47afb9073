"""Passages in MongoDB's own vector index, where the server offers `$vectorSearch`: put, dropped, asked for the nearest.

passages_{KIND}   {_id: "{note} {k}", note, put, k, section, vector}     with the search index `nearest`
meta              {_id: "passages up to {KIND}", puts, at}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bson.binary import Binary, BinaryVectorDtype
from pymongo import IndexModel, MongoClient, ReplaceOne
from pymongo.errors import OperationFailure
from pymongo.operations import SearchIndexModel

from notebook_sync.mirror import mongo_rows as rows
from notebook_sync.mirror.mongo_connection import Connection
from notebook_sync.mirror.mongo_schema import META
from notebook_sync.refs.redis_search import NoSearch
from notebook_sync.search.base import Vector
from notebook_sync.search.packing import Packed, section_number, sections_of, vectors_of
from notebook_sync.search.proposals import Upto

_INDEX = "nearest"
_COLLECTIONS = "passages_"
# How many passages the index comes by: it misses near ones where these are few, and takes no more than the last number.
_LOOKED_AT, _TIMES, _MOST_LOOKED_AT = 400, 5, 10_000


def search_index(dimensions: int) -> SearchIndexModel:
    """The index of passages, as the server is asked to make it."""
    vector = {"type": "vector", "path": "vector", "numDimensions": dimensions, "similarity": "cosine"}
    return SearchIndexModel({"fields": [vector, {"type": "filter", "path": "section"}]}, _INDEX, "vectorSearch")


def nearest_steps(query: Vector, count: int, section: str = "") -> list[dict[str, Any]]:
    """The pipeline that finds about the nearest passages; `score` is half of 1 + the cosine."""
    asked: dict[str, Any] = {
        "index": _INDEX,
        "path": "vector",
        "queryVector": _stored(query),
        "numCandidates": min(max(_LOOKED_AT, _TIMES * count), _MOST_LOOKED_AT),
        "limit": min(count, _MOST_LOOKED_AT),
    }
    if section:
        asked["filter"] = {"section": {"$eq": section_number(section)}}
    score = {"$meta": "vectorSearchScore"}
    return [{"$vectorSearch": asked}, {"$project": {"note": 1, "score": score}}]


class AtlasPassages:
    """`Proposals` in the mirror's database; opening it asks nothing of the server."""

    name = "its $vectorSearch"

    def __init__(
        self, url: str, database: str, *, timeout_seconds: float = 5.0, client: MongoClient[Any] | None = None
    ) -> None:
        self._connection = Connection(url, database, timeout_seconds, client)
        self._whole: set[str] = set()

    def prepare(self, kind: str, dimensions: int, *, again: bool = False) -> None:
        if kind in self._whole and not again:
            return
        name = _COLLECTIONS + kind
        with self._connection.telling() as database:
            try:
                made = list(database[name].list_search_indexes(_INDEX))
                if not made:
                    database[name].create_indexes([IndexModel("note"), IndexModel("k")])
                    database[name].create_search_index(search_index(dimensions))
            except OperationFailure as refusal:
                raise NoSearch(f"this MongoDB offers no $vectorSearch ({refusal.code})") from None
        if not made or not made[0].get("queryable"):
            raise NoSearch("MongoDB is still making the index of passages")
        self._whole.add(kind)

    def put(self, kind: str, notes: Sequence[Packed], puts: Mapping[str, str]) -> None:
        for note in notes:
            documents = _documents(note, puts[note.note_id])
            gone = {"note": {"$eq": note.note_id}, "k": {"$gte": len(documents)}}
            operations = [ReplaceOne({"_id": document["_id"]}, document, upsert=True) for document in documents]
            with self._connection.telling() as database:
                # The first one last: it tells of which put all of them are.
                database[_COLLECTIONS + kind].bulk_write(operations[::-1])
                database[_COLLECTIONS + kind].delete_many(gone)

    def drop(self, kind: str, notes: Iterable[str]) -> None:
        for piece in rows.askable(notes):
            with self._connection.telling() as database:
                database[_COLLECTIONS + kind].delete_many({"note": {"$in": piece}})

    def puts_of(self, kind: str, notes: Sequence[str]) -> dict[str, str]:
        return {
            first["note"]: first["put"]
            for piece in rows.askable(notes)
            for first in self._found(kind, {"_id": {"$in": [f"{note_id} 0" for note_id in piece]}})
        }

    def puts(self, kind: str) -> Iterator[tuple[str, str]]:
        return ((first["note"], first["put"]) for first in self._found(kind, {"k": 0}))

    def upto(self, kind: str) -> Upto | None:
        with self._connection.asking() as database:
            noted = database[META].find_one({"_id": _upto(kind)})
        return (int(noted["puts"]), int(noted["at"])) if noted else None

    def note_upto(self, kind: str, upto: Upto, *, instead: Upto | None = None) -> None:
        same = {"_id": _upto(kind)} | ({"puts": instead[0], "at": instead[1]} if instead else {})
        change = {"$set": {"puts": upto[0], "at": upto[1]}}
        with self._connection.telling() as database:
            database[META].update_one(same, change, upsert=instead is None)

    def nearest(self, kind: str, query: Vector, count: int, section: str = "") -> tuple[list[str], float]:
        with self._connection.asking() as database:
            try:
                hits = list(database[_COLLECTIONS + kind].aggregate(nearest_steps(query, count, section)))
            except OperationFailure as refusal:
                self._whole.discard(kind)
                raise NoSearch(f"this MongoDB's $vectorSearch refuses ({refusal.code})") from None
        notes = dict.fromkeys(hit["note"] for hit in hits)
        return list(notes), 2 * hits[-1]["score"] - 1 if len(hits) == count else -1.0

    def drop_other_kinds(self, kind: str) -> None:
        with self._connection.telling() as database:
            names = database.list_collection_names(filter={"name": {"$regex": f"^{_COLLECTIONS}"}})
            for other in {name.removeprefix(_COLLECTIONS) for name in names} - {kind}:
                self._whole.discard(other)
                database[_COLLECTIONS + other].drop()
                database[META].delete_one({"_id": _upto(other)})

    def close(self) -> None:
        self._connection.close()

    def _found(self, kind: str, condition: Mapping[str, Any]) -> list[dict[str, Any]]:
        with self._connection.asking() as database:
            return list(database[_COLLECTIONS + kind].find(condition, ["note", "put"]))


def _documents(note: Packed, put: str) -> list[dict[str, Any]]:
    """The first tells of the note, also where it has no vector."""
    rows_of_note = zip(sections_of(note), vectors_of(note), strict=True)
    told = [{"section": section, "vector": _stored(row)} for section, row in rows_of_note if row.any()]
    return [
        {"_id": f"{note.note_id} {k}", "note": note.note_id, "put": put, "k": k, **passage}
        for k, passage in enumerate(told or [{}])
    ]


def _stored(vector: Vector) -> Binary:
    return Binary.from_vector(vector.tolist(), BinaryVectorDtype.FLOAT32)


def _upto(kind: str) -> str:
    return f"passages up to {kind}"
