"""Hot memory on a Redis server: the refs, and beside them what `redis_memory` holds. Every command names one key, so
that a cluster can take its place.

{prefix}:notebook:ref:{id}     hash   one ref
{prefix}:notebook:recent       zset   ids by updated_at: the newest, and the list of all refs without a key scan
{prefix}:notebook:owner        string the store whose refs these are
{prefix}:notebook:lost         string when this memory was found emptied
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

import redis

from notebook_sync.files.note import Ref
from notebook_sync.refs.base import Entry, Meaning, Model, Recalled, Told
from notebook_sync.refs.entry import ANNOUNCED, REF_FIELDS, day_of, entry_for, entry_of_ref, is_logged, iso, ref_fields
from notebook_sync.refs.ranking import Candidates, asked_tags, asked_words, behind_told, best_of
from notebook_sync.refs.redis_connection import Connection
from notebook_sync.refs.redis_memory import RedisMemory, as_json, named, pieces
from notebook_sync.refs.redis_search import NoSearch, SearchIndex, for_search
from notebook_sync.refs.redis_vectors import embed_at, vectors_at

if TYPE_CHECKING:
    from notebook_sync.refs.base import Embed, Vector

_PIECE = 500
# So many a recall gives their vectors before it looks, the newest first: each is sent, and put into the index.
_AT_ONCE = 2_000
# What is ranked in process where no index is to be had.
_DAYS, _REFS = 7, 1000
_AT_HAND = f"only the last {_DAYS} days, long-term memory and the {_REFS:,} notes changed last were looked through"


class RedisRefs(RedisMemory):
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
        self._redis = Connection(url, timeout_seconds, client)
        self.name = self._redis.name
        self._search = SearchIndex(self._redis, prefix)
        self._prefix = prefix
        self._timezone = timezone

    def write(self, refs: Sequence[Ref], *, announce: bool = True) -> None:
        now = datetime.now(UTC)
        day, at = day_of(now, self._timezone), iso(now)
        for piece in pieces(refs):
            with self._redis.pipeline() as pipeline:
                told = [as_json(entry_for(ref, at)) for ref in piece if announce and ref.action in ANNOUNCED]
                if told:
                    pipeline.zadd(self._key("memory", "days"), {day: 0})
                    pipeline.rpush(self._key("daily", day), *told)
                for ref in piece:
                    key = self._key("notebook:ref", ref.id)
                    if ref.deleted:
                        pipeline.zrem(self._key("notebook", "recent"), ref.id)
                        pipeline.delete(key)
                    elif ref.action != "opened":
                        pipeline.hset(key, mapping=for_search(ref_fields(ref)))
                        pipeline.zadd(self._key("notebook", "recent"), {ref.id: ref.updated_at.timestamp()})
                pipeline.execute()

    def get(self, note_id: str) -> dict[str, Any] | None:
        return self.get_many([note_id]).get(note_id)

    def get_many(self, note_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for piece in pieces(note_ids):
            with self._redis.pipeline() as pipeline:
                for note_id in piece:
                    pipeline.hmget(self._key("notebook:ref", note_id), *REF_FIELDS)
                hashes = (named(REF_FIELDS, values) for values in pipeline.execute())
            found |= {note_id: fields for note_id, fields in zip(piece, hashes, strict=True) if fields}
        return found

    def digests(self) -> Iterator[tuple[str, str, int]]:
        for piece in pieces(self._ids()):
            with self._redis.pipeline() as pipeline:
                for note_id in piece:
                    pipeline.hmget(self._key("notebook:ref", note_id), "digest", "version")
                found = pipeline.execute()
            for note_id, (digest, version) in zip(piece, found, strict=True):
                if digest is not None:  # evicted: as good as never written
                    yield note_id, digest, int(version)

    def recent(self, limit: int = 20) -> list[dict[str, Any]]:
        if limit <= 0:
            return []
        with self._redis.asking() as client:
            newest = client.zrevrange(self._key("notebook", "recent"), 0, limit - 1)
        found = self.get_many(newest)
        return [found[note_id] for note_id in newest if note_id in found]

    def owner(self) -> str:
        with self._redis.asking() as client:
            return client.get(self._key("notebook", "owner")) or ""

    def adopt(self, store_id: str, keep: Iterable[str]) -> None:
        told = list(self._ids())
        kept = set(keep)
        for piece in pieces(note_id for note_id in told if note_id not in kept):
            with self._redis.pipeline() as pipeline:
                for note_id in piece:
                    pipeline.delete(self._key("notebook:ref", note_id))
                    pipeline.zrem(self._key("notebook", "recent"), note_id)
                pipeline.execute()
        with self._redis.asking() as client:
            client.set(self._key("notebook", "owner"), store_id)
        with suppress(NoSearch):  # so that it is there for other programs too, before anybody recalls here
            self._search.prepare()

    def note_loss(self, at: datetime) -> None:
        with self._redis.asking() as client:
            client.set(self._key("notebook", "lost"), iso(at))

    def lost(self) -> datetime | None:
        with self._redis.asking() as client:
            at = client.get(self._key("notebook", "lost"))
        return datetime.fromisoformat(at) if at else None

    def recall(
        self,
        query: str,
        *,
        tags: Sequence[str] = (),
        since: datetime | None = None,
        limit: int = 10,
        now: datetime,
        meaning: Meaning | None = None,
        told: Told | None = None,
    ) -> Recalled:
        if limit < 1:
            return Recalled([])
        asked = asked_words(query)
        meant = meaning if asked else None
        found, partial = self._candidates(asked, asked_tags(tags), since, now, meant)
        results = best_of(found, query, tags=tags, since=since, limit=limit, now=now, meaning=meant, told=told)
        return Recalled(results, partial)

    def embed(self, model: Model, embed: Embed, limit: int) -> int:
        try:
            return self._search.embed(model, embed, limit)
        except NoSearch:
            return self._vectors_of(dict(self._at_hand(datetime.now(UTC))), model, embed, limit)[1]

    def close(self) -> None:
        self._redis.close()

    def _candidates(
        self, asked: Sequence[str], tags: Sequence[str], since: datetime | None, now: datetime, meaning: Meaning | None
    ) -> tuple[Candidates, str]:
        try:
            found = self._search.candidates(asked, tags, since, meaning)
            at_once = _AT_ONCE
            while meaning and meaning.embed and found.behind and at_once:
                # Of an index that is still being made, what comes into it meanwhile is behind only then.
                if not (done := self._search.embed(meaning.model, meaning.embed, at_once)):
                    break
                at_once -= done
                found = self._search.candidates(asked, tags, since, meaning)
        except NoSearch as reason:
            of_hand, behind = self._of_hand(now, meaning)
            return of_hand, "; ".join(filter(None, [f"{reason}: {_AT_HAND}", behind_told(behind)]))
        if found.is_whole:
            return found.candidates, behind_told(found.behind)
        of_hand, _ = self._of_hand(now, meaning)
        return found.candidates + of_hand, f"the search index of this Redis is still being made: {_AT_HAND}"

    def _of_hand(self, now: datetime, meaning: Meaning | None) -> tuple[Candidates, int]:
        """What can be had without an index, and how many of it have no vector."""
        entries = dict(self._at_hand(now))
        if meaning is None:
            return Candidates(list(entries.values())), 0
        from notebook_sync.refs.likeness import key_of

        vectors, _ = self._vectors_of(entries, meaning.model, meaning.embed, _AT_ONCE)
        by_text = {key_of(entries[key]): vector for key, vector in vectors.items()}
        return Candidates(list(entries.values()), by_text), len(entries) - len(vectors)

    def _vectors_of(
        self, entries: Mapping[str, Entry], model: Model, embed: Embed | None, limit: int
    ) -> tuple[dict[str, Vector], int]:
        """The vectors of these entries, by the keys of their hashes, and how many were made for that."""
        from notebook_sync.refs.likeness import text_of

        found = vectors_at(self._redis, model, list(entries))
        if embed is None:
            return found, 0
        behind = [key for key in entries if key not in found][:limit]
        for piece in pieces(behind):
            said = {
                key: (entries[key]["content"].encode(errors="surrogatepass"), text_of(entries[key])) for key in piece
            }
            vectors, _ = embed_at(self._redis, model, embed, said)
            found |= zip(piece, vectors, strict=True)
        return found, len(behind)

    def _at_hand(self, now: datetime) -> Iterator[tuple[str, Entry]]:
        """What can be had without an index, and without looking at everything, by the keys of its hashes."""
        for before in range(_DAYS):
            told = self.day(day_of(now - timedelta(days=before), self._timezone))
            yield from ((self._key("daily:D", entry["id"]), entry) for entry in told if is_logged(entry))
        yield from ((self._key("longterm", entry["id"]), entry) for entry in self.longterm())
        for fields in self.recent(_REFS):
            yield self._key("notebook:ref", fields["notebook_id"]), entry_of_ref(fields)

    def _ids(self) -> Iterator[str]:
        """Every id once; a scan of the sorted set may give one twice while others write."""
        cursor, seen = 0, set[str]()
        while True:
            with self._redis.asking() as client:
                cursor, found = client.zscan(self._key("notebook", "recent"), cursor, count=_PIECE)
            for note_id, _ in found:
                if note_id not in seen:
                    seen.add(note_id)
                    yield note_id
            if cursor == 0:
                return
