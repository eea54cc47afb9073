"""Syntheses on a MongoDB server: a document for each of them, each day, each kind of timing, and one for the lease.

Each change is of one document that is named by its `_id`, so no more than a collection that is sharded by it can do.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from pymongo import MongoClient, ReturnDocument
from pymongo.errors import DuplicateKeyError

from notebook_sync.files.note import COLLECTIONS
from notebook_sync.mirror.mongo_connection import Connection
from notebook_sync.mirror.mongo_rows import Row, askable, encodable
from notebook_sync.mirror.syntheses import TIMINGS_KEPT, Rested, Synthesis, Timing, What

ENTRIES, DAYS, LEASES, TIMINGS = "syntheses", "synthesis_days", "synthesis_leases", "timings"
_TEXTS = ("asked", "state", "synthesis_id", "synthesis_md", "source", "context_hash")
_THE_LEASE = "reasoner"
Steps = list[dict[str, Any]]


class MongoSyntheses:
    """`Syntheses` over one MongoDB database. Opening asks nothing of the server; a `client` passed in stays open."""

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

    def get(self, key: str) -> Synthesis | None:
        return self._first({"_id": encodable(key)})

    def asked_for(self, asked: str) -> Synthesis | None:
        return self._first({"asked": encodable(asked)})

    def latest(self, limit: int) -> list[Synthesis]:
        if limit < 1:  # which means all to the server
            return []
        with self._connection.asking() as database:
            found = list(database[ENTRIES].find({}).sort([("used_at", -1), ("_id", 1)]).limit(limit))
        return [_synthesis(row) for row in found]

    def put(self, synthesis: Synthesis, *, entries: int, since: datetime) -> None:
        key, row = encodable(synthesis.key), _row(synthesis)
        with self._connection.telling() as database:
            try:
                database[ENTRIES].replace_one({"_id": key}, row, upsert=True)
            except DuplicateKeyError:  # somebody else made it meanwhile
                database[ENTRIES].replace_one({"_id": key}, row)
            database[ENTRIES].delete_many({"made_at": {"$lt": since}})
        with self._connection.asking() as database:
            last = database[ENTRIES].find({}, {"_id": 1}).sort([("used_at", -1), ("_id", 1)]).skip(max(entries, 0))
            too_many = [each["_id"] for each in last]
        for piece in askable(too_many):
            with self._connection.telling() as database:
                database[ENTRIES].delete_many({"_id": {"$in": piece}})

    def used(self, key: str, asked: str, state: str, at: datetime) -> None:
        now = {"asked": encodable(asked), "state": encodable(state)}
        with self._connection.telling() as database:
            database[ENTRIES].update_one(
                {"_id": encodable(key)}, {"$inc": {"hits": 1}, "$set": now, "$max": {"used_at": at}}
            )

    def forget(self, memory_ids: Collection[str]) -> int:
        dropped = 0
        for piece in askable(memory_ids):
            with self._connection.telling() as database:
                dropped += database[ENTRIES].delete_many({"rests_on.id": {"$in": piece}}).deleted_count
        return dropped

    def state(self) -> str:
        """By when each collection was written last, and how many rows it has: to have both as they were, what came
        since must have gone again."""
        first, *others = COLLECTIONS
        asked = [(first, _counted(first)), *((name, of(name)) for name in others for of in (_newest, _counted))]
        unions = [{"$unionWith": {"coll": name, "pipeline": steps}} for name, steps in asked]
        with self._connection.asking() as database:
            found = list(database[first].aggregate([*_newest(first), *unions]))
        # A sharded collection tells of each shard, in any order.
        return " ".join(sorted(f"{each['of']}:{each['n']}" for each in found))

    def spend(self, day: str, limit: int) -> bool:
        once_more = {"$inc": {"n": 1}}
        if limit < 1:
            return False
        with self._connection.telling() as database:
            try:
                counted = database[DAYS].update_one({"_id": day, "n": {"$lt": limit}}, once_more, upsert=True)
            except DuplicateKeyError:  # the limit is reached, or somebody else counted the day's first meanwhile
                return database[DAYS].update_one({"_id": day, "n": {"$lt": limit}}, once_more).matched_count > 0
            if counted.upserted_id is not None:
                database[DAYS].delete_many({"_id": {"$lt": day}})
        return True

    def spent(self, day: str) -> int:
        with self._connection.asking() as database:
            found = database[DAYS].find_one({"_id": day})
        return int(found["n"]) if found else 0

    def lease(self, holder: str, seconds: float) -> bool:
        mine = {"$literal": encodable(holder)}
        with self._connection.telling() as database:
            held = database[LEASES].find_one_and_update(
                {"_id": _THE_LEASE}, _leasing(mine, seconds), upsert=True, return_document=ReturnDocument.AFTER
            )
        return held is not None and held["holder"] == encodable(holder)

    def release(self, holder: str) -> None:
        with self._connection.telling() as database:
            database[LEASES].delete_one({"_id": _THE_LEASE, "holder": encodable(holder)})

    def timed(self, what: What, timing: Timing) -> None:
        kept = {"$each": [[timing.outcome, timing.milliseconds]], "$slice": -TIMINGS_KEPT}
        with self._connection.telling() as database:
            try:
                database[TIMINGS].update_one({"_id": what}, {"$push": {"kept": kept}}, upsert=True)
            except DuplicateKeyError:
                database[TIMINGS].update_one({"_id": what}, {"$push": {"kept": kept}})

    def timings(self, what: What) -> Sequence[Timing]:
        with self._connection.asking() as database:
            found = database[TIMINGS].find_one({"_id": what})
        return [Timing(*each) for each in found["kept"]] if found else []

    def close(self) -> None:
        self._connection.close()

    def _first(self, condition: Mapping[str, Any]) -> Synthesis | None:
        with self._connection.asking() as database:
            found = database[ENTRIES].find_one(condition, sort=[("used_at", -1), ("_id", 1)])
        return None if found is None else _synthesis(found)


def _newest(collection: str) -> Steps:
    shown = {"_id": 0, "of": {"$literal": collection}, "n": "$written"}
    return [{"$sort": {"written": -1}}, {"$limit": 1}, {"$project": shown}]


def _counted(collection: str) -> Steps:
    return [{"$collStats": {"count": {}}}, {"$project": {"_id": 0, "of": {"$literal": collection}, "n": "$count"}}]


def _leasing(mine: Mapping[str, str], seconds: float) -> Steps:
    """By the server's clock: those of several machines may differ by more than a lease is long."""
    is_free = {"$or": [{"$eq": ["$holder", mine]}, {"$lte": [{"$ifNull": ["$until", "$$NOW"]}, "$$NOW"]}]}
    until = {"$add": ["$$NOW", round(seconds * 1000)]}
    taken = {
        "holder": {"$cond": ["$is_free", mine, "$holder"]},
        "until": {"$cond": ["$is_free", until, "$until"]},
    }
    return [{"$set": {"is_free": is_free}}, {"$set": taken}, {"$unset": "is_free"}]


def _row(synthesis: Synthesis) -> Row:
    # As one text: what a reasoner says of links has keys that no document takes.
    told = {"memories_used": [dict(each) for each in synthesis.memories_used], "links": synthesis.links}
    return {
        **{name: encodable(getattr(synthesis, name)) for name in _TEXTS},
        "made_at": synthesis.made_at,
        "used_at": synthesis.made_at,
        "rests_on": [{"id": encodable(one.id), "path": one.path, "digest": one.digest} for one in synthesis.rests_on],
        "told": encodable(json.dumps(told, ensure_ascii=False)),
        "hits": synthesis.hits,
    }


def _synthesis(row: Row) -> Synthesis:
    told = json.loads(row["told"])
    return Synthesis(
        key=row["_id"],
        **{name: row[name] for name in _TEXTS},
        made_at=row["made_at"],
        rests_on=tuple(Rested(one["id"], one["path"], one["digest"]) for one in row["rests_on"]),
        memories_used=tuple(told["memories_used"]),
        links=told["links"],
        hits=int(row["hits"]),
    )
