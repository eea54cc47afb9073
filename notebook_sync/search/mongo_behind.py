"""Which notes are behind, on a MongoDB server: what was put since all notes had vectors, not all notes.

meta   {_id: "vectors", puts, model, complete: {model, dimensions, to}}      no note put before `to` is behind
       {_id: "vectors of MODEL", dimensions}                                 of those expected, or put last
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pymongo import IndexModel, ReturnDocument

from notebook_sync.files.note import COLLECTIONS
from notebook_sync.mirror import mongo_rows as rows
from notebook_sync.mirror.base import LARGEST_LIMIT
from notebook_sync.mirror.mongo_connection import Connection
from notebook_sync.mirror.mongo_schema import META

VECTORS = "vectors"
SKEW_MICROSECONDS = 60_000_000
"""So much the clocks of those who put something may differ, with the time that a write takes."""
_STATE = "vectors"
_PAGE = 500
# Where more were put since, looking at all is no dearer.
_MOST_SINCE = 2_000
_RENEWED_MICROSECONDS = 30_000_000
# A count of so many may be so old: to count them means to look at every note.
_MANY, _COUNT_SECONDS = 1_000, 30.0


@dataclass(frozen=True, slots=True)
class Noted:
    """`made`: another for every store there ever was. How often vectors were put, the model of those put last, the
    dimensions of the model asked for, and what is complete."""

    made: str
    puts: int
    model: str
    dimensions: int
    complete: Mapping[str, Any]


class Behind:
    """Of one database, for any number of threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._position = 0, ""
        self._counted: tuple[str, float, int] = "", 0.0, 0
        self._has_indexes = False

    def ids(self, model: str, limit: int) -> list[str]:
        """As `Vectors.behind`."""
        if limit < 1:
            return []
        begun = now()
        noted = self.noted(model)
        complete, dimensions = noted.complete, noted.dimensions
        if (complete.get("model"), complete.get("dimensions")) == (model, dimensions):
            since = complete["to"] - SKEW_MICROSECONDS
            put = self._connection.found({"written": {"$gt": since}, "gone": False}, ["source.digest"])
            if len(put) <= _MOST_SINCE:
                found = list(self._behind_of(put, model, dimensions))
                if not found and begun - complete["to"] > _RENEWED_MICROSECONDS:
                    self._note_complete(model, dimensions, begun, noted)
                return found[:limit]
        found = self._look_through(model, dimensions, limit)
        if not found:
            self._note_complete(model, dimensions, begun, noted)
        return found

    def count(self, model: str) -> int:
        """How many there are; of many, how many there were a moment ago."""
        of, at, many = self._counted
        if of == model and many > _MANY and time.monotonic() - at < _COUNT_SECONDS:
            return many
        many = len(self.ids(model, LARGEST_LIMIT))
        self._counted = model, time.monotonic(), many
        return many

    def check(self) -> None:
        """Whether what is noted as complete is so: every note is looked at."""
        complete = self.noted().complete
        if complete and self._look_through(complete["model"], complete["dimensions"], 1):
            with self._connection.telling() as database:
                database[META].update_one({"_id": _STATE}, {"$unset": {"complete": 1}})

    def expect(self, model: str, dimensions: int) -> None:
        """As `Vectors.expect`. What was complete was so with the dimensions that it names."""
        if self.noted(model).dimensions in (0, dimensions):
            return
        with self._connection.telling() as database:
            database[META].update_one({"_id": _of(model)}, {"$set": {"dimensions": dimensions}})
        self._counted = "", 0.0, 0

    def note_put(self, model: str, dimensions: int) -> int:
        """Before and after vectors are put: whoever looks meanwhile does not note that all is complete. How often that
        was noted."""
        with self._connection.telling() as database:
            if not self._has_indexes:
                database[VECTORS].create_indexes([IndexModel("at"), IndexModel([("room", 1), ("at", 1)])])
                self._has_indexes = True
            noted: Mapping[str, Any] = (
                database[META].find_one_and_update(
                    {"_id": _STATE},
                    {"$inc": {"puts": 1}, "$set": {"model": model}},
                    upsert=True,
                    return_document=ReturnDocument.AFTER,
                )
                or {}
            )
            if noted.get("complete", {}).get("model", model) != model:
                condition = {"_id": _STATE, "complete.model": {"$ne": model}}
                database[META].update_one(condition, {"$unset": {"complete": 1}})
            if dimensions:
                of_model = {"$set": {"dimensions": dimensions}}
                database[META].update_one({"_id": _of(model)}, of_model, upsert=True)
        return int(noted.get("puts", 0))

    def noted(self, model: str = "") -> Noted:
        """What is noted, and of this model."""
        with self._connection.asking() as database:
            asked = database[META].find({"_id": {"$in": [_STATE, _of(model), "store_id"]}})
            found = {one["_id"]: one for one in asked}
        state = found.get(_STATE, {})
        return Noted(
            made=str(found.get("store_id", {}).get("value", "")),
            puts=int(state.get("puts", 0)),
            model=str(state.get("model", "")),
            dimensions=int(found.get(_of(model), {}).get("dimensions", 0)),
            complete=state.get("complete") or {},
        )

    def _note_complete(self, model: str, dimensions: int, to: int, seen: Noted) -> None:
        """Unless somebody put vectors since the state was seen."""
        complete = {"complete": {"model": model, "dimensions": dimensions, "to": to}}
        with self._connection.telling() as database:
            database[META].update_one({"_id": _STATE, "puts": seen.puts}, {"$set": complete})

    def _look_through(self, model: str, dimensions: int, limit: int) -> list[str]:
        """Notes that are behind among all, from where it was ended the last time: none only if there is none."""
        found: list[str] = []
        for number, page in self._pages(*self._position):
            for note_id in self._behind_of(page, model, dimensions):
                found.append(note_id)
                if len(found) == limit:
                    self._position = number, note_id
                    return found
        return found

    def _pages(self, first: int, after: str) -> Iterator[tuple[int, list[rows.Row]]]:
        """All notes, collection by collection, from the one after that id to that one."""
        ranges: list[tuple[int, dict[str, str]]] = [(first, {"$gt": after})]
        ranges += [(n % len(COLLECTIONS), {"$gt": ""}) for n in range(first + 1, first + len(COLLECTIONS))]
        for number, bounds in [*ranges, (first, {"$gt": "", "$lte": after})]:
            last: str | None = ""
            while last is not None:
                condition = {"_id": {**bounds, "$gt": max(bounds["$gt"], last)}, "gone": False}
                with self._connection.asking() as database:
                    asked = database[COLLECTIONS[number]].find(condition, ["source.digest"])
                    page = list(asked.sort("_id", 1).limit(_PAGE))
                yield number, page
                last = page[-1]["_id"] if len(page) == _PAGE else None

    def _behind_of(self, notes: Sequence[rows.Row], model: str, dimensions: int) -> Iterator[str]:
        for start in range(0, len(notes), _PAGE):
            piece = notes[start : start + _PAGE]
            fields = ["digest", "model", "dimensions"]
            with self._connection.asking() as database:
                asked = database[VECTORS].find({"_id": {"$in": [note["_id"] for note in piece]}}, fields)
                heads = {head["_id"]: (head["digest"], head["model"], head["dimensions"]) for head in asked}
            for note in piece:
                digest = note["source"]["digest"]
                if heads.get(note["_id"]) not in ((digest, model, dimensions), (digest, model, 0)):
                    yield note["_id"]


def live_notes(connection: Connection, ids: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Of these notes, those that are there: the digest, and the channel of a private one, else ""."""
    found: dict[str, tuple[str, str]] = {}
    for piece in rows.askable(ids):
        of_piece = connection.found({"_id": {"$in": piece}, "gone": False}, ["source", "path", "collection"])
        found |= {row["_id"]: (row["source"]["digest"], _room_of(row)) for row in of_piece}
    return found


def _room_of(row: rows.Row) -> str:
    return "/".join(row["path"].split("/")[:3]) or "apart" if row["collection"] == "channels" else ""


def now() -> int:
    """In microseconds."""
    return time.time_ns() // 1000


def _of(model: str) -> str:
    return f"vectors of {model}"
