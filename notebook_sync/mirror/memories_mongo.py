"""What is known of memories on a MongoDB server: what their files say in the mirror's own rows, how they are used and
what they are sought by in documents of their own, small enough to look through."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pymongo import MongoClient, UpdateOne

from notebook_sync.mirror import mongo_rows as rows
from notebook_sync.mirror.document import to_milliseconds
from notebook_sync.mirror.memories import DEFAULT_PRIORITY, Link, Memory, Sought, folded
from notebook_sync.mirror.memory_search import best
from notebook_sync.mirror.mongo_connection import Connection
from notebook_sync.mirror.mongo_schema import USE
from notebook_sync.mirror.mongo_sought import MongoStandings
from notebook_sync.mirror.mongo_use import NEW, marks_of, send

_MEMORIES = "memories"
_FIELDS = [
    *("path", "title", "summary", "kind", "domain", "agent", "priority", "needs_review", "relations", "missing"),
    *("metadata.tags", "metadata.provenance", "metadata.status", "metadata.created_at", "metadata.created_from"),
    *("metadata.updated_at", "metadata.version", "source.digest"),
]
_LIVE = {"gone": False, "path": {"$gt": ""}}
_PAGE = 500
_KEPT = timedelta(days=365)


class MongoMemories:
    """`MemoryRows` over the database of a mirror. Opening it asks nothing of the server; a `client` passed in stays
    open."""

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

    def of(self, ids: Collection[str]) -> dict[str, Memory]:
        found: dict[str, Memory] = {}
        for piece in rows.askable(dict.fromkeys(ids)):
            with self._connection.asking() as database:
                page = list(database[_MEMORIES].find({"_id": {"$in": piece}, **_LIVE}, _FIELDS))
            found |= {memory.id: memory for memory in self._memories(page)}
        return found

    def sought(self, sought: Sought, limit: int) -> list[Memory]:
        if limit <= 0:
            return []
        asked = limit
        while True:
            ids = best(MongoStandings(self._connection), sought, asked)
            found = self._as_they_are(ids, sought)
            if len(found) >= limit or len(ids) < asked:
                return found[:limit]
            asked *= 4  # some are gone, or say something else by now

    def all(self) -> Iterator[Memory]:
        return self._streamed(_LIVE)

    def for_review(self) -> Iterator[Memory]:
        return self._streamed({"needs_review": True, **_LIVE})

    def linking_to(self, ids: Collection[str]) -> dict[str, list[tuple[str, Link]]]:
        found: dict[str, list[tuple[str, Link]]] = {}
        for piece in rows.askable(dict.fromkeys(ids)):
            asked = {"relations.to": {"$in": piece}, **_LIVE}
            with self._connection.asking() as database:
                linking = list(database[_MEMORIES].find(asked, ["relations"]).sort("_id", 1))
            targets = set(piece)
            for row in linking:
                for link in _links(row):
                    if link.to in targets:
                        found.setdefault(link.to, []).append((row["_id"], link))
        return found

    def used(self, ids: Collection[str], at: datetime) -> None:
        use = {"$inc": {"accesses": 1}, "$max": {"last_accessed": to_milliseconds(at)}, **NEW}
        send(self._connection, [UpdateOne({"_id": note_id}, use, upsert=True) for note_id in self._marks(ids)])

    def put_scores(self, scores: Mapping[str, float], at: datetime) -> None:
        told = {
            note_id: {"score": score, "standing": score, "marks": of}
            for note_id, of in self._marks(scores).items()
            for score in [float(scores[note_id])]
        }
        send(self._connection, [UpdateOne({"_id": one}, {"$set": use}, upsert=True) for one, use in told.items()])
        self._forget_gone(to_milliseconds(at))

    def restore_usage(self, usage: Sequence[tuple[str, int, datetime | None]]) -> None:
        used = {
            note_id: {"accesses": max(count, 0), "last_accessed": to_milliseconds(when) if when else None}
            for note_id, count, when in usage
            if rows.is_storable(note_id)
        }
        there = [UpdateOne({"_id": note_id}, NEW, upsert=True) for note_id in used]
        unused = {"accesses": None, "last_accessed": None}
        restored = [UpdateOne({"_id": note_id, **unused}, {"$set": use}) for note_id, use in used.items()]
        send(self._connection, there)
        send(self._connection, restored)

    def close(self) -> None:
        self._connection.close()

    def _as_they_are(self, ids: Sequence[str], sought: Sought) -> list[Memory]:
        """Those of the memories that may be found by what their rows say now."""
        memories = self.of(ids)
        return [memories[one] for one in ids if one in memories and _may_be_found(memories[one], sought)]

    def _streamed(self, condition: Mapping[str, Any]) -> Iterator[Memory]:
        last = ""
        while page := self._page({"_id": {"$gt": last}, **condition}, _FIELDS):
            yield from self._memories(page)
            last = page[-1]["_id"]

    def _page(self, condition: Mapping[str, Any], fields: Sequence[str], collection: str = _MEMORIES) -> list[rows.Row]:
        with self._connection.asking() as database:
            return list(database[collection].find(condition, fields).sort("_id", 1).limit(_PAGE))

    def _memories(self, page: Sequence[rows.Row]) -> list[Memory]:
        used: dict[str, rows.Row] = {}
        for piece in rows.askable(row["_id"] for row in page):
            with self._connection.asking() as database:
                used |= {use["_id"]: use for use in database[USE].find({"_id": {"$in": piece}})}
        return [_memory(row, used.get(row["_id"], {})) for row in page]

    def _marks(self, ids: Collection[str]) -> dict[str, list[str]]:
        """Of those that there are, what they are sought by."""
        found: dict[str, list[str]] = {}
        fields = ["kind", "domain", "metadata.tags", "metadata.provenance"]
        for piece in rows.askable(dict.fromkeys(ids)):
            with self._connection.asking() as database:
                page = database[_MEMORIES].find({"_id": {"$in": piece}, **_LIVE}, fields)
                found |= {row["_id"]: marks_of(row) for row in page}
        return found

    def _forget_gone(self, now: datetime) -> None:
        last = ""
        while page := self._page({"_id": {"$gt": last}}, ["gone_at"], USE):
            last = page[-1]["_id"]
            there = self._marks([use["_id"] for use in page])
            back = [use["_id"] for use in page if use["_id"] in there and use.get("gone_at")]
            gone = [use["_id"] for use in page if use["_id"] not in there and not use.get("gone_at")]
            with self._connection.telling() as database:
                if back:
                    database[USE].update_many({"_id": {"$in": back}}, {"$unset": {"gone_at": ""}})
                if gone:
                    database[USE].update_many(
                        {"_id": {"$in": gone}}, {"$set": {"gone_at": now}, "$unset": {"marks": ""}}
                    )
        with self._connection.telling() as database:
            database[USE].delete_many({"gone_at": {"$lte": now - _KEPT}})


def _may_be_found(memory: Memory, sought: Sought) -> bool:
    only, without = (set(map(folded, texts)) for texts in (sought.only_domains, sought.without_tags))
    return (
        (not sought.only_domains or folded(memory.domain) in only)
        and without.isdisjoint(map(folded, memory.tags))
        and not (sought.own_words and memory.provenance)
    )


def _memory(row: rows.Row, use: rows.Row) -> Memory:
    metadata, score = row["metadata"], use.get("score")
    return Memory(
        id=row["_id"],
        path=row["path"],
        title=row["title"],
        summary=row["summary"],
        kind=row.get("kind") or "",
        domain=row.get("domain") or "",
        tags=tuple(metadata["tags"]),
        agent=row.get("agent") or "",
        priority=int(row.get("priority", DEFAULT_PRIORITY)),
        needs_review=bool(row.get("needs_review")),
        provenance=metadata.get("provenance"),
        status=metadata["status"],
        created_at=metadata["created_at"],
        created_from=metadata["created_from"],
        updated_at=metadata["updated_at"],
        version=int(metadata["version"]),
        digest=row["source"]["digest"],
        relations=tuple(_links(row)),
        accesses=int(use.get("accesses", 0)),
        last_accessed=use.get("last_accessed"),
        score=None if score is None else float(score),
        missing=tuple(row.get("missing") or ()),
    )


def _links(row: rows.Row) -> list[Link]:
    return [Link(**link) for link in row.get("relations") or []]
