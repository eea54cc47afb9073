"""Hot memory on a Redis server. Every command names one key, so that a cluster could take its place.

{prefix}:notebook:ref:{id}     hash   one ref
{prefix}:notebook:recent       zset   ids by updated_at: the newest, and the list of all refs without a key scan
{prefix}:daily:YYYY-MM-DD      list   the stream of a day, as JSON
{prefix}:notebook:owner        string the store whose refs these are
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from itertools import islice
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as BrokenConnection
from redis.exceptions import RedisError
from redis.retry import Retry

from notebook_sync.address import Address
from notebook_sync.errors import BackendDown, ConfigError
from notebook_sync.files.note import Ref
from notebook_sync.refs.base import Entry
from notebook_sync.refs.entry import ANNOUNCED, entry_for, once_each, ref_fields

_T = TypeVar("_T")
_PIECE = 500


class RedisRefs:
    """`Refs` over one Redis. Opening it asks nothing of the server. A `client` that is passed in stays open."""

    def __init__(
        self,
        url: str,
        prefix: str = "aether",
        *,
        timezone: tzinfo,
        timeout_seconds: float = 2.0,
        client: redis.Redis | None = None,
    ) -> None:
        self._address = Address.of(url)
        self.name = f"Redis at {self._address.place}"
        self._prefix = prefix
        self._timezone = timezone
        self._is_own = client is None
        self._client: Any = open_client(url, timeout_seconds) if client is None else client

    def write(self, refs: Sequence[Ref], *, announce: bool = True) -> None:
        now = datetime.now(UTC)
        day = self._key("daily", now.astimezone(self._timezone).date().isoformat())
        for piece in _pieces(refs):
            with self._pipeline() as pipeline:
                for ref in piece:
                    key = self._key("notebook:ref", ref.id)
                    if ref.deleted:
                        pipeline.zrem(self._key("notebook", "recent"), ref.id)
                        pipeline.delete(key)
                    else:
                        pipeline.hset(key, mapping=ref_fields(ref))
                        pipeline.zadd(self._key("notebook", "recent"), {ref.id: ref.updated_at.timestamp()})
                    if announce and ref.action in ANNOUNCED:
                        pipeline.rpush(day, json.dumps(entry_for(ref, now), ensure_ascii=False))
                pipeline.execute()

    def get(self, note_id: str) -> dict[str, Any] | None:
        with self._asking() as client:
            return client.hgetall(self._key("notebook:ref", note_id)) or None

    def digests(self) -> Iterator[tuple[str, str, int]]:
        for piece in _pieces(self._ids()):
            with self._pipeline() as pipeline:
                for note_id in piece:
                    pipeline.hmget(self._key("notebook:ref", note_id), "digest", "version")
                found = pipeline.execute()
            for note_id, (digest, version) in zip(piece, found, strict=True):
                if digest is not None:  # evicted: as good as never written
                    yield note_id, digest, int(version)

    def recent(self, limit: int = 20) -> list[dict[str, Any]]:
        if limit <= 0:
            return []
        with self._asking() as client:
            newest = client.zrevrange(self._key("notebook", "recent"), 0, limit - 1)
        with self._pipeline() as pipeline:
            for note_id in newest:
                pipeline.hgetall(self._key("notebook:ref", note_id))
            return [fields for fields in pipeline.execute() if fields]

    def day(self, day: str) -> list[Entry]:
        with self._asking() as client:
            return once_each([json.loads(entry) for entry in client.lrange(self._key("daily", day), 0, -1)])

    def owner(self) -> str:
        with self._asking() as client:
            return client.get(self._key("notebook", "owner")) or ""

    def adopt(self, store_id: str, keep: Iterable[str]) -> None:
        told = list(self._ids())
        kept = set(keep)
        orphans = [note_id for note_id in told if note_id not in kept]
        for piece in _pieces(orphans):
            with self._pipeline() as pipeline:
                for note_id in piece:
                    pipeline.delete(self._key("notebook:ref", note_id))
                    pipeline.zrem(self._key("notebook", "recent"), note_id)
                pipeline.execute()
        with self._asking() as client:
            client.set(self._key("notebook", "owner"), store_id)

    def close(self) -> None:
        if self._is_own:
            self._client.close()

    def _key(self, kind: str, name: str) -> str:
        return f"{self._prefix}:{kind}:{name}"

    def _ids(self) -> Iterator[str]:
        """Every id once; a scan of the sorted set may give one twice while others write."""
        cursor, seen = 0, set[str]()
        while True:
            with self._asking() as client:
                cursor, found = client.zscan(self._key("notebook", "recent"), cursor, count=_PIECE)
            for note_id, _ in found:
                if note_id not in seen:
                    seen.add(note_id)
                    yield note_id
            if cursor == 0:
                return

    @contextmanager
    def _asking(self) -> Iterator[Any]:
        """The client, for one request: no error of the driver gets out."""
        try:
            yield self._client
        except RedisError as error:
            raise BackendDown(self.name, self._address.without_secrets(str(error))) from None

    @contextmanager
    def _pipeline(self) -> Iterator[Any]:
        """Commands sent together, without a transaction: their keys may live on different servers."""
        with self._asking() as client, client.pipeline(transaction=False) as pipeline:
            yield pipeline


def open_client(url: str, timeout_seconds: float) -> redis.Redis:
    """A client that has asked nothing yet and waits no longer than it is told. Raises ConfigError."""
    try:
        return redis.Redis.from_url(
            url,
            decode_responses=True,
            encoding_errors="surrogatepass",
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
            # Once, for a connection that broke while it was idle. A server that hangs is not asked twice.
            retry=Retry(NoBackoff(), 1, supported_errors=(BrokenConnection,)),
        )
    except ValueError as error:
        reason = Address.of(url).without_secrets(str(error))
        raise ConfigError(f"[refs] url is not a Redis address: {reason}") from None


def _pieces(values: Iterable[_T]) -> Iterator[list[_T]]:
    rest = iter(values)
    while piece := list(islice(rest, _PIECE)):
        yield piece
