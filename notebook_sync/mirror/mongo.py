"""The content store on a MongoDB server: one of its collections for each of the notebook's.

Nothing here that a collection sharded by `_id` could not do, and no value that could be taken for an operator.
"""

from __future__ import annotations

import heapq
import itertools
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pymongo import DeleteOne, MongoClient, UpdateOne
from pymongo.collection import Collection

from notebook_sync.files.note import COLLECTIONS, Ref
from notebook_sync.mirror import mongo_rows as rows
from notebook_sync.mirror.base import ALL, Document, Filter, Known, Name, Order, Write
from notebook_sync.mirror.document import superseded
from notebook_sync.mirror.mongo_connection import Connection
from notebook_sync.mirror.mongo_queries import admitting
from notebook_sync.mirror.mongo_schema import META
from notebook_sync.mirror.mongo_words import as_words
from notebook_sync.mirror.mongo_write import apply

_ORDERS = {
    "changed": {"metadata.updated_at": -1, "_id": 1},
    "made": {"metadata.created_at": -1, "metadata.updated_at": -1, "_id": 1},
}
_PAGE = 500
_KNOWN_PAGE = 10_000
_PLACES = 100


class MongoMirror:
    """`Mirror` over one MongoDB database.

    Opening it asks nothing of the server; the first call makes what is missing of collections and indexes. A server
    that does not answer a request within `timeout_seconds` is down. A `client` that is passed in stays open.
    """

    def __init__(
        self,
        url: str,
        database: str = "aether_notebook",
        *,
        timeout_seconds: float = 5.0,
        client: MongoClient[Any] | None = None,
    ) -> None:
        self._connection = Connection(url, database, timeout_seconds, client)
        self.name = self._connection.name

    def known(self, places: Iterable[str] | None = None) -> list[Known]:
        if places is None or "" in (places := list(places)):
            pages = (self._pages_of(name, rows.KNOWN, _KNOWN_PAGE) for name in COLLECTIONS)
            return [rows.known_from(row) for row in itertools.chain.from_iterable(pages)]
        conditions = [_at_or_below(piece) for piece in rows.askable(places, _PLACES)]
        return self._known_where(conditions)

    def claimants(self, ids: Iterable[str]) -> list[Known]:
        conditions = [{"$or": [{"_id": {"$in": piece}}, {"wants": {"$in": piece}}]} for piece in rows.askable(ids)]
        return self._known_where(conditions)

    def apply(self, writes: Sequence[Write]) -> list[Write]:
        return apply(self._connection, writes)

    def pending(self, ids: Iterable[str] | None = None) -> list[Ref]:
        among: list[dict[str, Any]] = [{}] if ids is None else [{"_id": {"$in": piece}} for piece in rows.askable(ids)]
        conditions = [{**condition, "awaits_ref": True} for condition in among]
        refs = [rows.ref_from(row) for row in self._where(rows.REF, conditions)]
        return sorted(refs, key=lambda ref: ref.id)

    def refs_written(self, refs: Sequence[Ref]) -> list[Ref]:
        operations: dict[str, list[DeleteOne | UpdateOne]] = defaultdict(list)
        for ref in refs:
            same = {"_id": ref.id, "serial": ref.serial, "gone": ref.deleted}
            told = {"$set": {"pending": "", "awaits_ref": False}}
            operations[ref.collection].append(DeleteOne(same) if ref.deleted else UpdateOne(same, told))
        met = 0
        for collection, of_collection in operations.items():
            for start in range(0, len(of_collection), _PAGE):
                with self._connection.telling() as database:
                    done = database[collection].bulk_write(of_collection[start : start + _PAGE], ordered=False)
                met += done.matched_count + done.deleted_count
        if met == len(refs):
            return []
        conditions = [{"_id": {"$in": piece}} for piece in rows.askable(ref.id for ref in refs)]
        found = map(rows.ref_from, self._where(rows.REF, conditions))
        # Of rows with one id, a move that was broken off left the older one behind.
        return superseded(refs, sorted(found, key=lambda ref: ref.serial))

    def refs(self) -> Iterator[Ref]:
        for row in self._in_id_order(rows.REF):
            yield rows.ref_from(row)

    def get(self, note_id: str) -> Document | None:
        return self.get_many([note_id]).get(note_id)

    def get_many(self, ids: Sequence[str]) -> dict[str, Document]:
        conditions = [{"_id": {"$in": piece}} for piece in rows.askable(ids)]
        return {row["_id"]: rows.document_from(row) for row in self._where(None, conditions, live=True)}

    def documents(self) -> Iterator[Document]:
        for row in self._in_id_order(None):
            yield rows.document_from(row)

    def paths(self) -> Iterator[str]:
        pages = (self._pages_of(name, ["path"], _KNOWN_PAGE) for name in COLLECTIONS)
        return (row["path"] for row in itertools.chain.from_iterable(pages) if row["path"])

    def names(self) -> Iterator[Name]:
        pages = (self._pages_of(name, list(Name._fields), _KNOWN_PAGE) for name in COLLECTIONS)
        found = itertools.chain.from_iterable(pages)
        return (Name(row["path"], row["title"], row["wants"]) for row in found if row["path"])

    def light(self, filter: Filter = ALL, limit: int = 50, by: Order = "changed") -> list[Document]:
        if limit <= 0:  # the server would take 0 for no limit
            return []
        order = _ORDERS[by]
        steps = [{"$sort": order}, {"$limit": limit}, {"$project": dict.fromkeys(rows.LIGHT, 1)}]
        asked = {name: [{"$match": condition}, *steps] for name, condition in admitting(filter).items()}
        return [rows.light_from(row) for row in self._connection.first(asked, order, limit)]

    def light_many(self, ids: Sequence[str], filter: Filter = ALL) -> dict[str, Document]:
        found: dict[str, Document] = {}
        for piece in rows.askable(ids):
            select = {"$project": dict.fromkeys(rows.LIGHT, 1)}
            asked = {
                name: [{"$match": {"_id": {"$in": piece}, **condition}}, select]
                for name, condition in admitting(filter).items()
            }
            of_piece = self._connection.first(asked, _ORDERS["changed"], len(piece))
            found |= {row["_id"]: rows.light_from(row) for row in of_piece}
        return found

    def search(self, query: str, limit: int = 10, filter: Filter = ALL) -> list[Document]:
        words = as_words(query)
        if not words or limit <= 0:
            return []
        # The server counts how often a word stands in a note, and not how rare it is: its scores tell nothing of other
        # notes, and are alike in all collections.
        score = {"$meta": "textScore"}
        steps = [
            {"$sort": {"score": score, "_id": 1}},
            {"$limit": limit},
            {"$project": {**dict.fromkeys(rows.LIGHT, 1), "score": score}},
        ]
        asked = {
            name: [{"$match": {"$text": {"$search": words}, **condition}}, *steps]
            for name, condition in admitting(filter).items()
            if name != "runtime" or filter.of_channels is None
        }
        best = self._connection.first(asked, {"score": -1, "_id": 1}, limit)
        return [{**rows.light_from(row), "score": row["score"]} for row in best]

    def rarities(self, query: str) -> dict[str, float]:
        return dict.fromkeys(as_words(query).split(), 1.0)

    def counts(self) -> dict[str, int]:
        asked: dict[str, dict[str, Any]] = {
            "stale": {"stale": {"$gt": ""}, "gone": False},
            "problems": {"problems.line": {"$gte": 0}, "gone": False},
            "pending": {"awaits_ref": True},
        }
        counts = {"notes": 0, **dict.fromkeys(asked, 0)}
        for name in COLLECTIONS:
            with self._connection.asking() as database:
                notes = _notes_in(database[name])
                for what, condition in asked.items():
                    counts[what] += database[name].count_documents(condition)
            counts["notes"] += notes
            counts[f"collection:{name}"] = notes
        return counts

    def note_count(self) -> int:
        count = 0
        for name in COLLECTIONS:
            with self._connection.asking() as database:
                count += _notes_in(database[name])
        return count

    def store_id(self) -> str:
        with self._connection.asking() as database:
            found = database[META].find_one({"_id": "store_id"})
        if found is None:  # new, or emptied since its indexes were made
            self._connection.forget_schema()
            with self._connection.asking() as database:
                made = {"$setOnInsert": {"value": uuid.uuid4().hex}}
                database[META].update_one({"_id": "store_id"}, made, upsert=True)
                found = database[META].find_one({"_id": "store_id"})
        return str(found["value"]) if found is not None else ""

    def close(self) -> None:
        self._connection.close()

    def _known_where(self, conditions: list[dict[str, Any]]) -> list[Known]:
        found = self._where(rows.KNOWN, conditions, live=True)
        return list({row["_id"]: rows.known_from(row) for row in found}.values())

    def _where(
        self, projection: list[str] | None, conditions: Iterable[dict[str, Any]], *, live: bool = False
    ) -> list[rows.Row]:
        asked = [{**condition, "gone": False} if live else condition for condition in conditions]
        return [row for condition in asked for row in self._connection.found(condition, projection)]

    def _in_id_order(self, projection: list[str] | None) -> Iterator[rows.Row]:
        """Every row that is no tombstone."""
        streams = (self._pages_of(name, projection, _PAGE) for name in COLLECTIONS)
        return heapq.merge(*streams, key=lambda row: row["_id"])

    def _pages_of(self, collection: str, projection: list[str] | None, page_size: int) -> Iterator[rows.Row]:
        """The rows of one collection that are no tombstones. No cursor is left open between two pages."""
        condition: dict[str, Any] = {"gone": False}
        while True:
            with self._connection.asking() as database:
                page = list(database[collection].find(condition, projection).sort("_id", 1).limit(page_size))
            yield from page
            if len(page) < page_size:
                return
            condition = {"gone": False, "_id": {"$gt": page[-1]["_id"]}}


def _notes_in(collection: Collection[dict[str, Any]]) -> int:
    """What are tombstones an index knows; to ask what are none would mean to look at every document."""
    return collection.count_documents({}) - collection.count_documents({"gone": True})


def _at_or_below(places: list[str]) -> dict[str, Any]:
    """`0` is the character after `/`: what begins with `place/` lies before `place0`."""
    below = [{"path": {"$gte": f"{place}/", "$lt": f"{place}0"}} for place in places]
    return {"$or": [{"path": {"$in": places}}, *below]}
