"""How the memories of a MongoDB stand, as what seeks among them asks for it: by documents of `memory_use` alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pymongo import ASCENDING, DESCENDING

from notebook_sync.mirror.memories import marks
from notebook_sync.mirror.memory_search import Standing, Where
from notebook_sync.mirror.mongo_connection import Connection
from notebook_sync.mirror.mongo_rows import Row, askable
from notebook_sync.mirror.mongo_schema import USE

_ORDER = [("standing", DESCENDING), ("_id", ASCENDING)]


class MongoStandings:
    """`Standings` over a database; a memory is known by its id."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def marked(self, marks: Sequence[str]) -> Iterator[list[str]]:
        """Mark by mark: by the index alone, which does not tell of which of several marks an id is."""
        for mark in marks:
            with self._connection.asking() as database:
                found = [use["_id"] for use in database[USE].find({"marks": {"$eq": mark}}, {"_id": 1})]
            yield found

    def domains(self, among: Sequence[str]) -> list[str]:
        return list(among)  # to ask for each takes as long as to look for its memories

    def first(self, among: Collection[str], where: Where, limit: int) -> list[Standing[str]]:
        found: list[Standing[str]] = []
        for piece in askable(among, 5_000):
            found += self._found([{"_id": {"$in": piece}}, *_conditions(where)], "_id_", 0, limit)
        return sorted(found)[:limit]

    def down(self, where: Where, start: int, limit: int) -> list[Standing[str]]:
        there = {"standing": {"$exists": True}, "marks": {"$exists": True}}
        index = "marks_order" if where.of_domains else "order"
        return self._found([there, *_conditions(where)], index, start, limit)

    def _found(self, conditions: list[Row], index: str, start: int, limit: int) -> list[Standing[str]]:
        """By an index that is named: the server would try several, and take one that it reads to its end."""
        asked: dict[str, Any] = {"$and": conditions}
        with self._connection.asking() as database:
            page = database[USE].find(asked, ["standing"]).sort(_ORDER).skip(start).limit(limit).hint(index)
            return [(-use["standing"], use["_id"], use["_id"]) for use in page]


def _conditions(where: Where) -> list[Row]:
    """An empty list is in none and left out by `$nin`: what is to be one of no domains is nothing."""
    conditions: list[Row] = [{"marks": {"$in" if where.of_domains else "$nin": marks("d", where.domains)}}]
    if where.kinds:
        conditions.append({"marks": {"$in" if where.of_kinds else "$nin": marks("k", where.kinds)}})
    return conditions
