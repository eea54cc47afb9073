"""Passages in the vector index of a Redis that has the search module: put, dropped, and asked for the nearest.

{prefix}:passage:{KIND}:{note}:{k}    hash   note, section, vector
{prefix}:passage:idx:{KIND}           index  over these: HNSW, by cosine
{prefix}:passage:notes:{KIND}         hash   by note: which put its passages are of, and how many there are
{prefix}:passage:upto:{KIND}          string how many puts there had been, and when, as all of them were here
{prefix}:passage:kinds                set    the kinds of which anything is here

No key is looked for by a scan: the hash of notes tells what is here. No key has a hash tag: a cluster is not searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import redis
from redis.exceptions import ResponseError

from notebook_sync.refs.redis_connection import Connection
from notebook_sync.refs.redis_memory import pieces
from notebook_sync.refs.redis_search import NO_INDEX, NO_MODULE, NoSearch, hits_of, no_search, pairs
from notebook_sync.search.base import Vector
from notebook_sync.search.packing import Packed, section_number, sections_of, vectors_of
from notebook_sync.search.proposals import Upto

# Vectors of a pipeline: the server puts each into its index before it answers.
_VECTORS = 200
# Of the passages that an index comes by: few, and it misses near ones.
_LOOKED_AT = 400


class RedisPassages:
    """`Proposals` below one prefix; opening it asks nothing of the server. A `client` that is passed in stays open."""

    def __init__(
        self, url: str, prefix: str = "aether", *, timeout_seconds: float = 2.0, client: redis.Redis | None = None
    ) -> None:
        self._redis = Connection(url, timeout_seconds, client)
        self.name = self._redis.name
        self._prefix = f"{prefix}:passage"
        self._whole: set[str] = set()

    def can_search(self) -> bool:
        """Whether this Redis has the search module, and is no cluster. Makes nothing."""
        if self._redis.is_cluster():
            return False
        with self._redis.asking() as client:
            try:
                _made(client, self._index("none"))
            except ResponseError as refusal:
                return not NO_MODULE.search(str(refusal))
        return True

    def prepare(self, kind: str, dimensions: int, *, again: bool = False) -> None:
        if kind in self._whole and not again:
            return
        if self._redis.is_cluster():
            raise NoSearch("a Redis Cluster is not searched")
        with self._redis.asking() as client:
            try:
                told = _made(client, self._index(kind)) or self._make(client, kind, dimensions)
            except ResponseError as refusal:
                raise no_search(refusal) from None
        if int(told["indexing"]):
            raise NoSearch("the index of passages in this Redis is still being made")
        self._whole.add(kind)

    def put(self, kind: str, notes: Sequence[Packed], puts: Mapping[str, str]) -> None:
        counts = dict(zip(puts, self._told(kind, puts), strict=True))
        with self._redis.asking() as client:
            client.sadd(f"{self._prefix}:kinds", kind)
        for note in notes:
            hashes = _hashes(note)
            had = int((counts[note.note_id] or ":0").partition(":")[2])
            for start in range(0, max(len(hashes), 1), _VECTORS):
                with self._redis.pipeline() as pipeline:
                    for k, fields in enumerate(hashes[start : start + _VECTORS], start):
                        pipeline.hset(self._key(kind, note.note_id, k), mapping=fields)
                    pipeline.execute()
            self._drop(kind, note.note_id, range(len(hashes), had))
            with self._redis.asking() as client:
                client.hset(f"{self._prefix}:notes:{kind}", note.note_id, f"{puts[note.note_id]}:{len(hashes)}")

    def drop(self, kind: str, notes: Iterable[str]) -> None:
        for piece in pieces(notes):
            for note_id, told in zip(piece, self._told(kind, piece), strict=True):
                self._drop(kind, note_id, range(int((told or ":0").partition(":")[2])))
            with self._redis.asking() as client:
                client.hdel(f"{self._prefix}:notes:{kind}", *piece)

    def puts_of(self, kind: str, notes: Sequence[str]) -> dict[str, str]:
        told = zip(notes, self._told(kind, notes), strict=True)
        return {note_id: of.partition(":")[0] for note_id, of in told if of is not None}

    def puts(self, kind: str) -> Iterator[tuple[str, str]]:
        cursor = 0
        while True:
            with self._redis.asking() as client:
                cursor, found = client.hscan(f"{self._prefix}:notes:{kind}", cursor, count=1_000)
            yield from ((note_id, of.partition(":")[0]) for note_id, of in found.items())
            if cursor == 0:
                return

    def upto(self, kind: str) -> Upto | None:
        with self._redis.asking() as client:
            told = client.get(f"{self._prefix}:upto:{kind}")
        if told is None:
            return None
        puts, _, at = told.partition(":")
        return int(puts), int(at)

    def note_upto(self, kind: str, upto: Upto, *, instead: Upto | None = None) -> None:
        key, now = f"{self._prefix}:upto:{kind}", f"{upto[0]}:{upto[1]}"
        with self._redis.asking() as client:
            if instead is None:
                client.set(key, now)
            else:
                client.eval(_SET_INSTEAD, 1, key, f"{instead[0]}:{instead[1]}", now)

    def nearest(self, kind: str, query: Vector, count: int, section: str = "") -> tuple[list[str], float]:
        among = "@section:{$section}" if section else "*"
        given: dict[str, Any] = {"k": count, "ef": max(_LOOKED_AT, count), "query": query.tobytes()}
        if section:
            given["section"] = str(section_number(section))
        parameters = [part for pair in given.items() for part in pair]
        nearest = f"({among})=>[KNN $k @vector $query EF_RUNTIME $ef AS distance]"
        command: list[Any] = ["FT.SEARCH", self._index(kind), nearest]
        command += ["PARAMS", len(parameters), *parameters, "SORTBY", "distance", "LIMIT", 0, count]
        command += ["RETURN", 2, "note", "distance", "DIALECT", 2]
        with self._redis.asking() as client:
            try:
                hits = hits_of(client.execute_command(*command))
            except ResponseError as refusal:
                self._whole.discard(kind)
                raise no_search(refusal) from None
        notes = dict.fromkeys(fields["note"] for _, fields in hits)
        return list(notes), 1 - float(hits[-1][1]["distance"]) if len(hits) == count else -1.0

    def drop_other_kinds(self, kind: str) -> None:
        with self._redis.asking() as client:
            others = client.smembers(f"{self._prefix}:kinds") - {kind}
        for other in others:
            self._whole.discard(other)
            with self._redis.asking() as client:
                try:
                    client.execute_command("FT.DROPINDEX", self._index(other))  # without DD: in one go, all would wait
                except ResponseError as refusal:
                    if not NO_INDEX.search(str(refusal)):
                        raise no_search(refusal) from None
            self.drop(other, [note_id for note_id, _ in self.puts(other)])
            with self._redis.pipeline() as pipeline:
                pipeline.delete(f"{self._prefix}:upto:{other}")
                pipeline.srem(f"{self._prefix}:kinds", other)
                pipeline.execute()

    def close(self) -> None:
        self._redis.close()

    def _make(self, client: Any, kind: str, dimensions: int) -> dict[str, Any]:
        vector = ["HNSW", 6, "TYPE", "FLOAT32", "DIM", dimensions, "DISTANCE_METRIC", "COSINE"]
        schema = ["section", "TAG", "vector", "VECTOR", *vector]
        create = ["FT.CREATE", self._index(kind), "ON", "HASH", "PREFIX", 1, f"{self._prefix}:{kind}:", "STOPWORDS", 0]
        try:
            client.execute_command(*create, "SCHEMA", *schema)
        except ResponseError as refusal:
            if "already exists" not in str(refusal):  # another process was as quick
                raise
        return _made(client, self._index(kind)) or {"indexing": 1}

    def _told(self, kind: str, notes: Iterable[str]) -> list[str | None]:
        asked = list(notes)
        if not asked:
            return []
        with self._redis.asking() as client:
            found: list[str | None] = client.hmget(f"{self._prefix}:notes:{kind}", asked)
        return found

    def _drop(self, kind: str, note_id: str, numbers: range) -> None:
        if numbers:
            with self._redis.pipeline() as pipeline:
                for k in numbers:
                    pipeline.delete(self._key(kind, note_id, k))
                pipeline.execute()

    def _index(self, kind: str) -> str:
        return f"{self._prefix}:idx:{kind}"

    def _key(self, kind: str, note_id: str, k: int) -> str:
        return f"{self._prefix}:{kind}:{note_id}:{k}"


# Two who put at once would each take the other's for here.
_SET_INSTEAD = """if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2]) end"""


def _hashes(note: Packed) -> list[dict[str, Any]]:
    """Without passages that have no vector: by cosine they would be at no distance at all."""
    rows = zip(sections_of(note), vectors_of(note), strict=True)
    return [{"note": note.note_id, "section": section, "vector": row.tobytes()} for section, row in rows if row.any()]


def _made(client: Any, index: str) -> dict[str, Any] | None:
    try:
        return pairs(client.execute_command("FT.INFO", index))
    except ResponseError as refusal:
        if NO_INDEX.search(str(refusal)):
            return None
        raise
