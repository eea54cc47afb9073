"""Vectors on a MongoDB server, a document a note: searched by the exact index.

vectors   {_id: note, put, at, room, model, dimensions, digest, passages, rough, fine, places}
          put: another for each; at: when, in microseconds; room: the channel of a private note, else ""
meta      what `mongo_behind` notes

Every write names the `_id` of one document, so that the collection can be sharded by it.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import Any

from pymongo import DeleteOne, MongoClient, ReplaceOne, UpdateOne
from pymongo.errors import BulkWriteError, OperationFailure

from notebook_sync.mirror import mongo_rows as rows
from notebook_sync.mirror.mongo import MongoMirror
from notebook_sync.mirror.mongo_connection import Connection
from notebook_sync.search.base import Counts, Matrix, Near, Vector, Vectored
from notebook_sync.search.exact import ExactIndex, State
from notebook_sync.search.mongo_behind import SKEW_MICROSECONDS, VECTORS, Behind, live_notes, now
from notebook_sync.search.packing import Packed, pack
from notebook_sync.search.rough import Key, RoughRow

_DUPLICATE_KEY = 11000
_PAGE = 500


class MongoVectors:
    """`Vectors` over the database of a mirror. Opening it asks nothing of the server."""

    def __init__(
        self,
        url: str,
        database: str = "aether_notebook",
        *,
        timeout_seconds: float = 5.0,
        client: MongoClient[Any] | None = None,
    ) -> None:
        self._mirror = MongoMirror(url, database, timeout_seconds=timeout_seconds, client=client)
        self._connection = Connection(url, database, timeout_seconds, client)
        self.name = self._connection.name
        self._behind = Behind(self._connection)
        self._rows = _MongoRows(self._connection, self._behind, {})
        self._index = ExactIndex(self._rows)
        self._private = ExactIndex(_MongoRows(self._connection, self._behind, {"room": {"$gt": ""}}))

    def behind(self, model: str, limit: int) -> list[str]:
        return self._behind.ids(model, limit)

    def expect(self, model: str, dimensions: int) -> None:
        self._behind.expect(model, dimensions)

    def put(self, model: str, notes: Sequence[Vectored]) -> None:
        self.put_counted(model, notes)

    def nearest(
        self,
        model: str,
        query: Vector,
        limit: int,
        *,
        among: Collection[str] | None = None,
        section: str = "",
        folders: Collection[str] | None = None,
    ) -> list[Near]:
        return self._index.nearest(model, query, limit, among=among, section=section, folders=folders)

    def of(self, model: str, ids: Collection[str]) -> dict[str, Matrix]:
        return self._index.of(model, ids)

    def counts(self, model: str) -> Counts:
        behind = self._behind.count(model)
        return Counts(max(0, self._mirror.note_count() - behind), behind)

    def tidy(self) -> int:
        self._behind.check()
        dropped, last = 0, ""
        while page := self._heads({"_id": {"$gt": last}}, _PAGE):
            last = page[-1]["_id"]
            live = live_notes(self._connection, [head["_id"] for head in page])
            same = {head["_id"]: {"_id": head["_id"], "put": head["put"]} for head in page}
            gone = [DeleteOne(same[head["_id"]]) for head in page if head["_id"] not in live]
            moved = [
                UpdateOne(same[head["_id"]], {"$set": {"room": live[head["_id"]][1], **_mark()}})
                for head in page
                if head["_id"] in live and live[head["_id"]][1] != head.get("room")
            ]
            if gone or moved:
                with self._connection.telling() as database:
                    dropped += database[VECTORS].bulk_write([*gone, *moved], ordered=False).deleted_count
            if moved:
                self._behind.note_put(self.model(), 0)
        return dropped

    def close(self) -> None:
        self._mirror.close()
        self._connection.close()

    # For whoever keeps the same vectors elsewhere, too.

    def model(self) -> str:
        """The model of the vectors that were put last, "" for none."""
        return self._behind.noted().model

    def state(self, model: str) -> State:
        """What changes with each put; `newest` begins with how many there were."""
        return self._rows.state(model)

    def put_counted(self, model: str, notes: Sequence[Vectored]) -> tuple[int, int]:
        """As `put`; how many puts there had been before, and how many there are with it."""
        packed = {one.note_id: one for one in map(pack, notes)}
        if not packed:
            return 0, 0
        dimensions = max(one.dimensions for one in packed.values())
        before = self._behind.note_put(model, dimensions) - 1
        while packed:  # once more for those of which somebody else put some in between
            packed = self._put(model, packed)
        return before, self._behind.note_put(model, dimensions)

    def public(self, model: str, since: int) -> Iterator[dict[str, str]]:
        """What was put of notes in no channel since that moment: note and put, page by page."""
        dimensions = self._behind.noted(model).dimensions
        last = ""
        asked = {"room": "", "model": {"$eq": model}, "dimensions": dimensions, "at": {"$gt": since}}
        while page := self._heads({**asked, "_id": {"$gt": last}}, _PAGE):
            last = page[-1]["_id"]
            yield {head["_id"]: head["put"] for head in page}

    def public_among(self, model: str, ids: Sequence[str]) -> dict[str, str]:
        """The same of these notes."""
        dimensions = self._behind.noted(model).dimensions
        asked = {"room": "", "model": {"$eq": model}, "dimensions": dimensions}
        pages = (self._heads({**asked, "_id": {"$in": piece}}, len(piece)) for piece in rows.askable(ids))
        return {head["_id"]: head["put"] for page in pages for head in page}

    def whole(self, puts: Mapping[str, str]) -> list[Packed]:
        """The vectors of these notes that are still of these puts."""
        with self._connection.asking() as database:
            found = database[VECTORS].find({"_id": {"$in": list(puts)}})
            return [_packed(head) for head in found if head["put"] == puts[head["_id"]]]

    def nearest_private(
        self, model: str, query: Vector, limit: int, section: str = "", folders: Collection[str] | None = None
    ) -> list[Near]:
        """As `nearest`, of notes in channels alone."""
        return self._private.nearest(model, query, limit, section=section, folders=folders)

    def _heads(self, condition: Mapping[str, Any], limit: int) -> list[dict[str, Any]]:
        with self._connection.asking() as database:
            return list(database[VECTORS].find(condition, ["put", "room"]).sort("_id", 1).limit(limit))

    def _put(self, model: str, packed: Mapping[str, Packed]) -> dict[str, Packed]:
        """Put what should be put; returns what has to be looked at again.

        Older vectors never take the place of those of the note as it is now; nothing is kept of a note that is gone.
        """
        live = live_notes(self._connection, packed)
        heads: dict[str, Any] = {}
        with self._connection.asking() as database:
            for piece in rows.askable(packed):
                fields = ["put", "digest", "model", "dimensions"]
                heads |= {head["_id"]: head for head in database[VECTORS].find({"_id": {"$in": piece}}, fields)}
        wanted = [
            one
            for one in packed.values()
            if one.note_id in live
            and (one.digest == live[one.note_id][0] or not _is_current(heads.get(one.note_id), model, one, live))
        ]
        if not wanted:
            return {}
        operations = [
            ReplaceOne(
                {"_id": one.note_id, "put": heads[one.note_id]["put"] if one.note_id in heads else None},
                {**_mark(), "room": live[one.note_id][1], "model": model, **_fields(one)},
                upsert=True,
            )
            for one in wanted
        ]
        with self._connection.telling() as database:
            try:
                database[VECTORS].bulk_write(operations, ordered=False)
            except BulkWriteError as error:
                failures = error.details["writeErrors"] + error.details["writeConcernErrors"]
                for failure in failures:
                    if failure["code"] != _DUPLICATE_KEY:
                        raise OperationFailure(failure["errmsg"], failure["code"]) from None
                raced = [wanted[failure["index"]] for failure in failures]
                return {one.note_id: one for one in raced}
        return {}


class _MongoRows:
    """What the exact index asks of the server."""

    def __init__(self, connection: Connection, behind: Behind, of: Mapping[str, Any]) -> None:
        self._connection = connection
        self._behind = behind
        self._of = of

    def state(self, model: str) -> State:
        noted = self._behind.noted(model)
        with self._connection.asking() as database:
            vectors = database[VECTORS]
            newest = vectors.find_one(self._of, ["at"], sort=[("at", -1)])
            count = vectors.count_documents(self._of) if self._of else vectors.estimated_document_count()
        return State(noted.made, noted.dimensions, (noted.puts, newest["at"] if newest else 0), count)

    def since(self, model: str, known: State | None, held: Container[Key]) -> Iterator[list[RoughRow]]:
        dimensions = self._behind.noted(model).dimensions
        if known is None:
            last: str | None = ""
            while last is not None:
                page = self._rough({"_id": {"$gt": last}, **self._of}, model, dimensions)
                yield page
                last = page[-1].note_id if page else None
            return
        with self._connection.asking() as database:
            recent = {"at": {"$gt": known.newest[1] - SKEW_MICROSECONDS}, **self._of}
            new = [head["_id"] for head in database[VECTORS].find(recent, ["put"]) if head["put"] not in held]
        for start in range(0, len(new), _PAGE):
            yield self._rough({"_id": {"$in": new[start : start + _PAGE]}}, model, dimensions)

    def keys(self) -> list[Key]:
        with self._connection.asking() as database:
            return [head["put"] for head in database[VECTORS].find(self._of, {"put": 1, "_id": 0})]

    def whole(self, model: str, ids: Sequence[str]) -> list[Packed]:
        found: list[Packed] = []
        for piece in rows.askable(ids):
            live = live_notes(self._connection, piece)
            with self._connection.asking() as database:
                heads = database[VECTORS].find({"_id": {"$in": list(live)}, "model": {"$eq": model}})
                found += map(_packed, heads)
        return found

    def _rough(self, condition: Mapping[str, Any], model: str, dimensions: int) -> list[RoughRow]:
        """A page of them, in the order of ids."""
        is_comparable = {"$and": [{"$eq": ["$model", {"$literal": model}]}, {"$eq": ["$dimensions", dimensions]}]}
        fields = {"put": 1, "passages": 1, "room": 1, "rough": {"$cond": [is_comparable, "$rough", b""]}}
        steps: list[dict[str, Any]] = [
            {"$match": condition},
            {"$sort": {"_id": 1}},
            {"$limit": _PAGE},
            {"$project": fields},
        ]
        with self._connection.asking() as database:
            page = list(database[VECTORS].aggregate(steps))
        return [
            RoughRow(*(head.get(name, "apart") for name in ("put", "_id", "passages", "rough", "room")))
            for head in page
        ]


def _is_current(head: Mapping[str, Any] | None, model: str, of: Packed, live: Mapping[str, tuple[str, str]]) -> bool:
    """Whether what is there was made of the note as it is now, in the same way."""
    return (
        head is not None
        and head["digest"] == live[of.note_id][0]
        and head["model"] == model
        and head["dimensions"] in (0, of.dimensions)
    )


def _mark() -> dict[str, Any]:
    return {"put": uuid.uuid4().hex, "at": now()}


def _fields(packed: Packed) -> dict[str, Any]:
    return {
        "digest": packed.digest,
        "passages": packed.passages,
        "dimensions": packed.dimensions,
        "rough": packed.rough,
        "fine": packed.fine,
        "places": packed.places,
    }


def _packed(head: Mapping[str, Any]) -> Packed:
    passages, dimensions = head["passages"], head["dimensions"]
    return Packed(head["_id"], head["digest"], passages, dimensions, head["rough"], head["fine"], head["places"])
