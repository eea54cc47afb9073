"""Rows of facts on a MongoDB server: `fact_rows` holds one a fact, `fact_sources` the places in one file each.

What stands where changes by one document a file, which names its base; so no more than a collection that is sharded by
`_id` can do. Rows are written before it, and what is left of old ones after it: who is stopped between has told nothing
that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pymongo import MongoClient, UpdateOne
from pymongo.errors import BulkWriteError, DocumentTooLarge, DuplicateKeyError, PyMongoError

from notebook_sync.errors import UnreadableFile
from notebook_sync.mirror.fact_change import after, merged
from notebook_sync.mirror.fact_store import FactStore, moment, must_be_change, must_be_importance, must_be_whole
from notebook_sync.mirror.facts import DECAY_RATE, HISTORY_LIMIT, Change, Embedding, Fact, Place, Source
from notebook_sync.mirror.mongo_connection import Connection
from notebook_sync.mirror.mongo_rows import Row, askable, encodable, from_bson, to_bson

if TYPE_CHECKING:
    from notebook_sync.mirror.facts import Vector

ROWS, SOURCES = "fact_rows", "fact_sources"
_BULK = 1_000
# Of so many facts the server looks for the places; of more, all places are asked for.
_FEW = 500
_DUPLICATE_KEY = 11000
# So often somebody else may be faster with one row; each time somebody was done, so this ends.
_ROUNDS = 10_000
# What makes a row somewhere else than where it was is done before the file is said to hold it.
_BEFORE = frozenset({"added", "reworded", "returned"})
_WITHOUT_VECTOR = {"embedding": 0}


class MongoFacts(FactStore):
    """`FactRows` over one MongoDB database. Opening asks nothing of the server; a `client` passed in stays open."""

    def __init__(
        self,
        url: str,
        database: str = "aether_notebook",
        embedder: Embedding | None = None,
        decay_rate: float = DECAY_RATE,
        *,
        timeout_seconds: float = 5.0,
        client: MongoClient[Any] | None = None,
    ) -> None:
        super().__init__(embedder, decay_rate)
        self._connection = Connection(url, database, timeout_seconds, client)
        self.name = self._connection.name

    def upsert_note(self, fact: Fact) -> Fact:
        row = self._row(must_be_whole(fact))
        with self._connection.telling() as database:
            database[ROWS].update_one({"_id": fact.note_id}, {"$set": row, "$inc": {"serial": 1}}, upsert=True)
        return self.get_many([fact.note_id])[fact.note_id]

    def increment_access(self, *note_ids: str, at: datetime | None = None) -> int:
        used = {"$inc": {"access_count": 1, "serial": 1}, "$max": {"last_accessed": moment(at)}}
        counted = 0
        for piece in askable(dict.fromkeys(note_ids)):
            with self._connection.telling() as database:
                counted += database[ROWS].update_many({"_id": {"$in": piece}}, used).matched_count
        return counted

    def update_importance(
        self,
        note_id: str,
        importance: float | None = None,
        *,
        by: float = 0.0,
        action: str = "weighed",
        actor: str = "",
        at: datetime | None = None,
    ) -> Fact | None:
        wanted = None if importance is None else must_be_importance(importance)
        weighing = _weighing(wanted, must_be_change(by), action, moment(at), {"actor": actor} if actor else None)
        with self._connection.telling() as database:
            found = database[ROWS].update_one({"_id": encodable(note_id)}, weighing).matched_count
        return self.get_note(note_id) if found else None

    def bulk_update_importance(self, importances: Mapping[str, float], *, at: datetime | None = None) -> int:
        wanted = {note_id: must_be_importance(importance) for note_id, importance in importances.items()}
        when = moment(at)
        return self._send(
            [
                UpdateOne({"_id": encodable(note_id)}, _weighing(importance, 0.0, "weighed", when))
                for note_id, importance in wanted.items()
            ]
        )

    def merge_notes(self, keep: str, drop: str, *, by: float = 0.05, at: datetime | None = None) -> Fact | None:
        change, when = must_be_change(by), moment(at)
        if keep == drop or len(self._rows({keep, drop})) < 2:
            return None
        # Taken first, so that of two who merge the same pair one counts it; who is stopped here loses how often one of
        # two was used, and no fact.
        dropped = self._take(drop)
        if dropped is None or not self._rewrite(keep, lambda row: merged(row, dropped, change, when)):
            return None
        return self.get_note(keep)

    def delete_note(self, note_id: str) -> bool:
        return self._take(note_id) is not None

    def clear_all(self) -> int:
        with self._connection.telling() as database:
            count = database[ROWS].delete_many({}).deleted_count
        # After the rows: what somebody makes known meanwhile of rows that are no more, is to be read again.
        with self._connection.telling() as database:
            database[SOURCES].delete_many({})
        return count

    def put_vectors(self, model: str, vectors: Mapping[str, Vector]) -> None:
        operations = [
            UpdateOne(
                {"_id": note_id}, {"$set": {"embedding": {"model": model, "vector": vector.astype("<f4").tobytes()}}}
            )
            for note_id, vector in vectors.items()
        ]
        self._send(operations)

    def vectors(self, model: str) -> Mapping[str, Vector]:
        import numpy as np

        condition = {"embedding.model": model} if model else {"embedding.model": {"$gt": ""}}
        with self._connection.asking() as database:
            found = list(database[ROWS].find(condition, {"embedding.vector": 1}))
        return {row["_id"]: np.frombuffer(row["embedding"]["vector"], "<f4").astype(np.float32) for row in found}

    def sources(self) -> dict[str, str]:
        with self._connection.asking() as database:
            return {row["_id"]: row["digest"] for row in database[SOURCES].find({}, {"digest": 1})}

    def apply(self, sources: Sequence[Source], changes: Sequence[Change]) -> bool:
        self._change([change for change in changes if change.action in _BEFORE])
        gaining = {change.place.path for change in changes if change.action != "gone"}
        # A fact that moves from file to file stands in both for a moment, and not in none.
        for source in sorted(sources, key=lambda source: source.path not in gaining):
            if not self._make_known(source):
                return False
        self._change([change for change in changes if change.action not in _BEFORE])
        self._end({change.was for change in changes if change.was})
        return True

    def prune(self, before: datetime) -> int:
        old = {"updated_at": {"$lt": moment(before)}, "path": {"$gt": ""}}
        with self._connection.asking() as database:
            candidates = [row["_id"] for row in database[ROWS].find(old, {"_id": 1})]
        standing = {place.note_id for place in self._places(candidates)} if candidates else set()
        count = 0
        for piece in askable(note_id for note_id in candidates if note_id not in standing):
            with self._connection.telling() as database:
                count += database[ROWS].delete_many({**old, "_id": {"$in": piece}}).deleted_count
        return count

    def close(self) -> None:
        self._connection.close()

    def _rows(self, note_ids: Collection[str] | None) -> list[Fact]:
        return [self._fact(row) for row in self._found(note_ids)]

    def _places(self, note_ids: Collection[str] | None) -> list[Place]:
        wanted = None if note_ids is None else set(note_ids)
        steps: list[dict[str, Any]] = []
        if wanted is not None and len(wanted) <= _FEW:
            among = [note_id for piece in askable(wanted) for note_id in piece]
            only = {"$filter": {"input": "$places", "cond": {"$in": ["$$this.note_id", among]}}}
            steps = [{"$match": {"places.note_id": {"$in": among}}}, {"$project": {"places": only}}]
        with self._connection.asking() as database:
            found = list(database[SOURCES].aggregate([*steps, {"$project": {"places": 1}}]))
        return [
            Place(place["note_id"], source["_id"], place["section"], place["line"], place.get("pin"))
            for source in found
            for place in source["places"]
            if wanted is None or place["note_id"] in wanted
        ]

    def _found(self, note_ids: Collection[str] | None) -> list[Row]:
        pieces = [None] if note_ids is None else list(askable(note_ids))
        found: list[Row] = []
        for piece in pieces:
            condition = {} if piece is None else {"_id": {"$in": piece}}
            with self._connection.asking() as database:
                found += database[ROWS].find(condition, _WITHOUT_VECTOR)
        return found

    def _rewrite(self, note_id: str, change: Callable[[Fact], Fact]) -> bool:
        """Replace the row by what it is changed to, again where somebody else was faster; whether there is one."""
        for _ in range(_ROUNDS):
            rows = self._found([note_id])
            if not rows:
                return False
            new = self._row(change(self._fact(rows[0])))
            same = {"_id": note_id, "serial": rows[0]["serial"]}
            with self._connection.telling() as database:
                if database[ROWS].update_one(same, {"$set": new, "$inc": {"serial": 1}}).matched_count:
                    return True
        with self._connection.telling():
            raise PyMongoError("others change one fact all the time")

    def _take(self, note_id: str) -> Fact | None:
        """End a row. Where its bullet stands, the file is to be read again."""
        with self._connection.telling() as database:
            row = database[ROWS].find_one_and_delete({"_id": encodable(note_id)}, _WITHOUT_VECTOR)
        self._doubt([encodable(note_id)])
        return None if row is None else self._fact(row)

    def _end(self, note_ids: Collection[str]) -> None:
        """End rows that others go on with. What somebody brought back meanwhile keeps its row: else it had none until
        its file changes."""
        standing = {place.note_id for place in self._places(note_ids)} if note_ids else set()
        for piece in askable(note_id for note_id in note_ids if note_id not in standing):
            with self._connection.telling() as database:
                database[ROWS].delete_many({"_id": {"$in": piece}})
            self._doubt(piece)

    def _doubt(self, note_ids: Sequence[str]) -> None:
        """After their rows ended: what somebody makes known of them meanwhile is to be read again, too."""
        with self._connection.telling() as database:
            database[SOURCES].update_many({"places.note_id": {"$in": note_ids}}, {"$set": {"digest": ""}})

    def _change(self, changes: Sequence[Change]) -> None:
        """Make the changes to rows, of which each writes only what it is about: uses are counted meanwhile."""
        ids = {change.note_id for change in changes} | {change.was for change in changes if change.was}
        rows = {row.note_id: row for row in self._rows(ids)} if ids else {}
        operations = []
        for change in changes:
            old, was = rows.get(change.note_id), rows.get(change.was)
            new = after(old, change, was, decay_rate=self._decay_rate)
            row = self._row(new)
            told = {key: row.pop(key) for key in ("section", "path", "line", "gone_at", "updated_at")}
            update: Any = {"$set": told, "$inc": {"serial": 1}}
            if old is None:
                update["$setOnInsert"] = row
            elif gained := new.unpinned - old.unpinned:
                where = {"path": change.place.path, "section": encodable(change.place.section)}
                update = [
                    {"$set": {key: {"$literal": value} for key, value in told.items()}},
                    *_weighing(None, gained, change.action, told["updated_at"], where),
                ]
            elif new.source_history != old.source_history:
                update["$push"] = {"history": {"$each": row["history"][-1:], "$slice": -HISTORY_LIMIT}}
            operations.append(UpdateOne({"_id": change.note_id}, update, upsert=old is None))
        self._send(operations)

    def _send(self, operations: Sequence[UpdateOne]) -> int:
        """How many rows there were to write to."""
        met = 0
        for start in range(0, len(operations), _BULK):
            bulk = list(operations[start : start + _BULK])
            while bulk:
                matched, bulk = self._sent(bulk)
                met += matched
        return met

    def _sent(self, bulk: Sequence[UpdateOne]) -> tuple[int, list[UpdateOne]]:
        """How many rows were met, and what is to be sent again: two who make one row at once hinder each other."""
        with self._connection.telling() as database:
            try:
                return database[ROWS].bulk_write(bulk, ordered=False).matched_count, []
            except BulkWriteError as error:
                failed = error.details["writeErrors"]
                if error.details["writeConcernErrors"] or any(one["code"] != _DUPLICATE_KEY for one in failed):
                    raise
                return error.details["nMatched"], [bulk[one["index"]] for one in failed]

    def _make_known(self, source: Source) -> bool:
        same = {"_id": source.path, "digest": source.base}
        places = [_place(place) for place in source.places]
        with self._connection.telling() as database, _blaming(source.path):
            if not source.digest:
                return database[SOURCES].delete_one(same).deleted_count == 1
            known = {"digest": source.digest, "places": places}
            if database[SOURCES].update_one(same, {"$set": known}).matched_count:
                return True
            if source.base:
                return False
            try:
                database[SOURCES].insert_one({"_id": source.path, **known})
            except DuplicateKeyError:
                return False
            return True

    def _row(self, fact: Fact) -> Row:
        return {
            "content": encodable(fact.content),
            "importance": fact.unpinned,
            "decay_rate": None if fact.decay_rate == self._decay_rate else fact.decay_rate,
            "access_count": fact.access_count,
            "created_at": moment(fact.created_at),
            "updated_at": moment(fact.updated_at),
            "last_accessed": moment(fact.last_accessed) if fact.last_accessed else None,
            "metadata": to_bson(fact.metadata),
            "history": to_bson(fact.source_history),
            "section": encodable(fact.section),
            "path": fact.path,
            "line": fact.line,
            "gone_at": moment(fact.gone_at) if fact.gone_at else None,
        }

    def _fact(self, row: Row) -> Fact:
        return Fact(
            row["_id"],
            row["content"],
            row["created_at"],
            row["updated_at"],
            row["section"],
            row["path"],
            row["line"],
            row["importance"],
            unpinned=row["importance"],
            decay_rate=self._decay_rate if row["decay_rate"] is None else row["decay_rate"],
            access_count=int(row["access_count"]),
            last_accessed=row["last_accessed"],
            metadata=from_bson(row["metadata"]),
            source_history=tuple(from_bson(row["history"])),
            gone_at=row["gone_at"],
        )


@contextmanager
def _blaming(path: str) -> Iterator[None]:
    """Where a file has more facts than one document holds, that is the file's fault."""
    try:
        yield
    except DocumentTooLarge as error:
        reason = "it has more facts than MongoDB can hold of one file; part it into several"
        raise UnreadableFile(path, reason) from error


def _weighing(
    importance: float | None, by: float, action: str, at: datetime, more: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """`fact_change.weighed`, done by the server: nobody has to be faster than others who use the same fact. `more` is
    what the event tells besides."""
    value: Any = {"$add": ["$importance" if importance is None else importance, by]}
    event = {"at": at, "action": {"$literal": action}, "importance": "$importance"}
    event |= {key: {"$literal": value} for key, value in (more or {}).items()}
    return [
        {
            "$set": {
                "importance": {"$min": [1.0, {"$max": [0.0, value]}]},
                "updated_at": at,
                "serial": {"$add": ["$serial", 1]},
            }
        },
        {"$set": {"history": {"$slice": [{"$concatArrays": ["$history", [event]]}, -HISTORY_LIMIT]}}},
    ]


def _place(place: Place) -> Row:
    pin = {} if place.pin is None else {"pin": place.pin}
    return {"note_id": place.note_id, "section": encodable(place.section), "line": place.line, **pin}
