"""The daily stream, long-term memory and checkpoints on a Redis server. Every command names one key.

{prefix}:daily:YYYY-MM-DD      list   the stream of a day, as JSON
{prefix}:daily:D:{id}          hash   one logged entry, for recall
{prefix}:longterm:{id}         hash   one entry that was kept
{prefix}:checkpoint:{id}       string one checkpoint, as JSON
{prefix}:memory:days           zset   the days that have a stream, all with one score
{prefix}:memory:longterm       zset   ids of what was kept, by timestamp
{prefix}:memory:checkpoints    hash   what a list of checkpoints tells, by id
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import islice
from typing import Any, TypeVar

from notebook_sync.refs.base import Checkpoint, Entry
from notebook_sync.refs.entry import (
    day_of,
    entry_from_hash,
    entry_from_json,
    entry_hash,
    is_logged,
    light_checkpoint,
    newest_first,
    once_each,
    surplus,
)
from notebook_sync.refs.redis_connection import Connection
from notebook_sync.refs.redis_search import for_search

_T = TypeVar("_T")
_PIECE = 500


class RedisMemory:
    """What `Refs` holds beside refs."""

    _redis: Connection
    _prefix: str
    _timezone: tzinfo

    def log(self, entry: Entry) -> None:
        self._append(day_of(entry["timestamp"], self._timezone), [entry])

    def keep(self, entry: Entry) -> None:
        self._keep_all([entry])

    def day(self, day: str) -> list[Entry]:
        return once_each(self._told(day))

    def days(self) -> list[str]:
        with self._redis.asking() as client:
            return list(client.zrange(self._key("memory", "days"), 0, -1))

    def longterm(self) -> list[Entry]:
        found = []
        for piece in pieces(self._kept()):
            with self._redis.pipeline() as pipeline:
                for entry_id in piece:
                    pipeline.hgetall(self._key("longterm", entry_id))
                hashes = pipeline.execute()
            # One that was evicted is as good as never kept.
            found += [entry_from_hash(*pair) for pair in zip(piece, hashes, strict=True) if pair[1]]
        return sorted(found, key=lambda entry: (entry["timestamp"], entry["id"]))

    def restore(self, days: Mapping[str, Sequence[Entry]], longterm: Sequence[Entry]) -> None:
        for day, entries in days.items():
            self._restore_day(day, entries)
        stays = {entry["id"] for entry in longterm}
        for piece in pieces(entry_id for entry_id in self._kept() if entry_id not in stays):
            with self._redis.pipeline() as pipeline:
                for entry_id in piece:
                    pipeline.delete(self._key("longterm", entry_id))
                    pipeline.zrem(self._key("memory", "longterm"), entry_id)
                pipeline.execute()
        self._keep_all(longterm)

    def put_checkpoint(self, checkpoint: Checkpoint, *, spare: Collection[str] = ()) -> None:
        listed = self._key("memory", "checkpoints")
        with self._redis.pipeline() as pipeline:
            pipeline.set(self._key("checkpoint", checkpoint["id"]), as_json(checkpoint))
            pipeline.hset(listed, checkpoint["id"], as_json(light_checkpoint(checkpoint)))
            pipeline.execute()
        dropped = surplus(self.checkpoints(), spare)
        with self._redis.pipeline() as pipeline:
            for checkpoint_id in dropped:
                pipeline.delete(self._key("checkpoint", checkpoint_id))
                pipeline.hdel(listed, checkpoint_id)
            pipeline.execute()

    def checkpoints(self) -> list[dict[str, Any]]:
        with self._redis.asking() as client:
            return newest_first(map(json.loads, client.hvals(self._key("memory", "checkpoints"))))

    def checkpoint(self, checkpoint_id: str) -> Checkpoint | None:
        with self._redis.asking() as client:
            found = client.get(self._key("checkpoint", checkpoint_id))
        return json.loads(found) if found else None

    def _key(self, kind: str, name: str) -> str:
        return f"{self._prefix}:{kind}:{name}"

    def _told(self, day: str) -> list[Entry]:
        """The stream of a day as it stands there, repetitions included."""
        with self._redis.asking() as client:
            told = client.lrange(self._key("daily", day), 0, -1)
        return [entry for entry in map(entry_from_json, told) if entry is not None]

    def _append(self, day: str, entries: Iterable[Entry]) -> None:
        for piece in pieces(entries):
            with self._redis.pipeline() as pipeline:
                pipeline.zadd(self._key("memory", "days"), {day: 0})
                for entry in piece:
                    if is_logged(entry):
                        pipeline.hset(self._key("daily:D", entry["id"]), mapping=for_search(entry_hash(entry)))
                    pipeline.rpush(self._key("daily", day), as_json(entry))
                pipeline.execute()

    def _restore_day(self, day: str, entries: Sequence[Entry]) -> None:
        """Append what shall be there, then take away what was before it: broken off anywhere, the stream has more than
        it should, never less, and the next time puts it right."""
        before = self._told(day)
        stays = {entry["id"] for entry in entries if is_logged(entry)}
        leaves = {entry["id"] for entry in before if is_logged(entry)} - stays
        self._append(day, entries)
        for piece in pieces(leaves):
            with self._redis.pipeline() as pipeline:
                for entry_id in piece:
                    pipeline.delete(self._key("daily:D", entry_id))
                pipeline.execute()
        with self._redis.asking() as client:
            client.ltrim(self._key("daily", day), len(before), -1)
            if not client.llen(self._key("daily", day)):
                client.zrem(self._key("memory", "days"), day)

    def _keep_all(self, entries: Iterable[Entry]) -> None:
        for piece in pieces(entries):
            with self._redis.pipeline() as pipeline:
                for entry in piece:
                    when = datetime.fromisoformat(entry["timestamp"]).timestamp()
                    pipeline.zadd(self._key("memory", "longterm"), {entry["id"]: when})
                    pipeline.hset(self._key("longterm", entry["id"]), mapping=for_search(entry_hash(entry)))
                pipeline.execute()

    def _kept(self) -> list[str]:
        with self._redis.asking() as client:
            return list(client.zrange(self._key("memory", "longterm"), 0, -1))


def pieces(values: Iterable[_T]) -> Iterator[list[_T]]:
    """The values, some hundreds at a time: as much as one pipeline should carry."""
    rest = iter(values)
    while piece := list(islice(rest, _PIECE)):
        yield piece


def as_json(value: Any) -> str:
    """JSON as it stands in a list or a string."""
    return json.dumps(value, ensure_ascii=False)
