"""The daily stream, long-term memory and checkpoints on a Redis server. Every command names one key.

{prefix}:daily:YYYY-MM-DD      list   the stream of a day, as JSON
{prefix}:daily:D:{id}          hash   one logged entry, for recall
{prefix}:longterm:{id}         hash   one entry that was kept
{prefix}:checkpoint:{id}       string one checkpoint, as JSON
{prefix}:memory:days           zset   the days that ever had a stream, all with one score
{prefix}:memory:longterm       zset   ids of what was kept, by timestamp
{prefix}:memory:checkpoints    hash   what a list of checkpoints tells, by id
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import islice
from typing import Any, TypeVar

from notebook_sync.refs.base import Checkpoint, Entry, Swap
from notebook_sync.refs.entry import (
    ENTRY_FIELDS,
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
from notebook_sync.refs.swapping import swapped

_T = TypeVar("_T")
_PIECE = 500
# Puts other lines in the place of those that were read, and leaves behind them what was appended since; answers 0 where
# they are no longer those. What shall be there is appended before anything is taken away: a server that is full, or
# does not let the user, refuses the first of it, and nothing is lost.
_EXCHANGE = """
local told = redis.call('LRANGE', KEYS[1], 0, -1)
local read = tonumber(ARGV[1])
for n = 1, read do if told[n] ~= ARGV[n + 1] then return 0 end end
for n = read + 2, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[n]) end
for n = read + 1, #told do redis.call('RPUSH', KEYS[1], told[n]) end
redis.call('LTRIM', KEYS[1], #told, -1)
return 1
"""


class RedisMemory:
    """What `Refs` holds beside refs."""

    _redis: Connection
    _prefix: str
    _timezone: tzinfo

    def log(self, entry: Entry) -> None:
        day = day_of(entry["timestamp"], self._timezone)
        with self._redis.pipeline() as pipeline:
            pipeline.zadd(self._key("memory", "days"), {day: 0})
            if is_logged(entry):
                pipeline.hset(self._key("daily:D", entry["id"]), mapping=for_search(entry_hash(entry)))
            pipeline.rpush(self._key("daily", day), as_json(entry))
            pipeline.execute()

    def keep(self, entry: Entry) -> None:
        self._keep_all([entry])

    def day(self, day: str) -> list[Entry]:
        return once_each([entry for entry in map(entry_from_json, self._lines(day)) if entry is not None])

    def days(self) -> list[str]:
        with self._redis.asking() as client:
            listed = list(client.zrange(self._key("memory", "days"), 0, -1))
        found = []
        for piece in pieces(listed):
            with self._redis.pipeline() as pipeline:
                for day in piece:
                    pipeline.llen(self._key("daily", day))
                found += [day for day, lines in zip(piece, pipeline.execute(), strict=True) if lines]
        return found

    def longterm(self) -> list[Entry]:
        found = []
        for piece in pieces(self._kept()):
            with self._redis.pipeline() as pipeline:
                for entry_id in piece:
                    pipeline.hmget(self._key("longterm", entry_id), *ENTRY_FIELDS)
                hashes = [named(ENTRY_FIELDS, values) for values in pipeline.execute()]
            # One that was evicted is as good as never kept.
            found += [entry_from_hash(*pair) for pair in zip(piece, hashes, strict=True) if pair[1]]
        return sorted(found, key=lambda entry: (entry["timestamp"], entry["id"]))

    def restore(self, days: Mapping[str, Swap], longterm: Swap | None = None) -> None:
        for day, swap in days.items():
            self._swap_day(day, swap)
            self._swap_findable(day, swap)
        if longterm is not None:
            self._swap_longterm(longterm)

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

    def _lines(self, day: str) -> list[str]:
        """The stream of a day as it stands there, with repetitions, and with what is no entry."""
        with self._redis.asking() as client:
            return list(client.lrange(self._key("daily", day), 0, -1))

    def _swap_day(self, day: str, swap: Swap) -> None:
        """Sent twice, because the first answer was lost, the exchange finds other lines, and the next look is content.
        So it is with another restore at the same time."""
        while (lines := self._lines(day)) != (wanted := swapped(lines, swap, as_json)):
            with self._redis.asking() as client:
                client.zadd(self._key("memory", "days"), {day: 0})
                if client.eval(_EXCHANGE, 1, self._key("daily", day), len(lines), *lines, *wanted):
                    return

    def _swap_findable(self, day: str, swap: Swap) -> None:
        """Let recall find of these entries what the stream has; again, where another restore changed that meanwhile."""
        ids = swap.gone | {entry["id"] for entry in swap.there}
        done: dict[str, Entry] | None = None
        while done != (told := {entry["id"]: entry for entry in self.day(day) if entry["id"] in ids}):
            for piece in pieces(ids):
                with self._redis.pipeline() as pipeline:
                    for entry_id in piece:
                        key = self._key("daily:D", entry_id)
                        if entry_id in told and is_logged(told[entry_id]):
                            pipeline.hset(key, mapping=for_search(entry_hash(told[entry_id])))
                        else:
                            pipeline.delete(key)
                    pipeline.execute()
            done = told

    def _swap_longterm(self, swap: Swap) -> None:
        there = {entry["id"]: entry for entry in self.longterm()}
        wanted = {entry["id"]: entry for entry in swap.there}
        for piece in pieces(swap.gone - wanted.keys()):
            with self._redis.pipeline() as pipeline:
                pipeline.zrem(self._key("memory", "longterm"), *piece)
                for entry_id in piece:
                    pipeline.delete(self._key("longterm", entry_id))
                pipeline.execute()
        stays = {
            entry_id for entry_id, entry in there.items() if entry_id not in swap.gone or wanted.get(entry_id) == entry
        }
        self._keep_all(entry for entry_id, entry in wanted.items() if entry_id not in stays)

    def _keep_all(self, entries: Iterable[Entry]) -> None:
        for piece in pieces(entries):
            with self._redis.pipeline() as pipeline:
                for entry in piece:
                    when = datetime.fromisoformat(entry["timestamp"]).timestamp()
                    # In this order, and taken away in the other: recall finds none that long-term memory lacks.
                    pipeline.hset(self._key("longterm", entry["id"]), mapping=for_search(entry_hash(entry)))
                    pipeline.zadd(self._key("memory", "longterm"), {entry["id"]: when})
                pipeline.execute()

    def _kept(self) -> list[str]:
        with self._redis.asking() as client:
            return list(client.zrange(self._key("memory", "longterm"), 0, -1))


def pieces(values: Iterable[_T]) -> Iterator[list[_T]]:
    """The values, some hundreds at a time: as much as one pipeline should carry."""
    rest = iter(values)
    while piece := list(islice(rest, _PIECE)):
        yield piece


def named(names: Sequence[str], values: Sequence[str | None]) -> dict[str, str]:
    """The fields of a hash that are there."""
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def as_json(value: Any) -> str:
    """JSON as it stands in a list or a string."""
    return json.dumps(value, ensure_ascii=False)
