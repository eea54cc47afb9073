"""A notebook's index with a publisher to real servers, and what programs find there."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pymongo
import redis
from msgspec.structs import replace

from notebook_sync.files.state import Place
from notebook_sync.settings import MirrorTable, PromptTable, RefsTable
from notebook_sync.store.mongodb import SHAPES, MongoTarget
from notebook_sync.store.publish import Published, Publisher
from notebook_sync.store.redis import RedisTarget
from notebook_sync.store.rows import Row
from tests.store.rows_for_tests import entry, open_index

# Stream lines that are older than 30 days are not written again.
NOW = datetime.now(UTC).replace(microsecond=0)
TODAY = NOW.date().isoformat()


def line(name: str, content: str = "something happened", **fields: Any) -> Any:
    """A line of today's stream."""
    return entry(name, content, **{"day": TODAY, "at": NOW, **fields})


# Seconds: a busy machine is not a server that hangs.
PATIENCE = 30.0


class World:
    """One notebook, its index scanned, published to the servers that are named."""

    def __init__(self, root: Path, *, mongodb: str = "", database: str = "", redis: str = "", prefix: str = "") -> None:
        root.mkdir(exist_ok=True)
        self.place = Place.open(root)
        self.database, self.prefix = database, prefix
        self.mirror = MirrorTable(url=mongodb, database=database, timeout_seconds=PATIENCE)
        self.refs = RefsTable(url=redis, prefix=prefix, timeout_seconds=PATIENCE)
        self.open()
        self.adopt()

    def open(self) -> None:
        """Open index and publisher as another process would."""
        self.index = open_index(self.place.state)
        targets: list[MongoTarget | RedisTarget] = []
        if self.mirror.url:
            targets.append(MongoTarget(self.mirror, self.place.notebook_id, self.index))
        if self.refs.url:
            targets.append(RedisTarget(self.refs, PromptTable(), self.index))
        self.publisher = Publisher(self.index, targets, self.place)

    def reopen(self, *, mongodb: float = PATIENCE, redis: float = PATIENCE) -> None:
        """Go on as another process, which waits so many seconds for each server."""
        self.close()
        self.mirror = replace(self.mirror, timeout_seconds=mongodb)
        self.refs = replace(self.refs, timeout_seconds=redis)
        self.open()

    def lose_index(self) -> None:
        """Begin with an empty index, as another process would."""
        self.close()
        for file in self.place.state.glob("index.db*"):
            file.unlink()
        self.open()

    def close(self) -> None:
        self.publisher.close()
        self.index.close()

    def put(
        self, *documents: Row, facts: Sequence[Row] = (), lines: Sequence[Row] = (), longterm: Sequence[Row] = ()
    ) -> None:
        """Put rows into the index; `lines` are of the stream."""
        self.index.documents.put(documents)
        self.index.facts.put(facts)
        self.index.stream.put(lines)
        self.index.longterm.put(longterm)

    def adopt(self) -> None:
        """Note that this index has seen every file."""
        self.index.counters.put([{"id": "adopted", "value": 1}])

    def publish(self, **options: bool) -> dict[str, Published]:
        """Publish now, whatever failed before."""
        for state in self.publisher._states.values():
            state.retry_at = 0.0
        return self.publisher.publish(10.0, **options)

    def publish_well(self, *documents: Row, claim: bool = False, **others: Sequence[Row]) -> None:
        """Put these rows and publish; nothing may be in trouble."""
        self.put(*documents, **others)
        done = self.publish(claim=claim)
        assert not any(each.trouble for each in done.values()), done

    def troubles(self) -> dict[str, str]:
        return {kind: each.trouble for kind, each in self.publish().items() if each.trouble}

    def state(self, kind: str) -> dict[str, Any]:
        return next(each for each in self.publisher.state() if each["kind"] == kind)

    def is_equal(self) -> bool:
        return not self.publisher.compare()[2]


OpenWorld = Callable[..., World]


class Database:
    """What is in MongoDB."""

    def __init__(self, url: str, name: str) -> None:
        self.client: Any = pymongo.MongoClient(url, tz_aware=True, serverSelectionTimeoutMS=10_000)
        self.db: Any = self.client[name]

    def close(self) -> None:
        self.client.close()

    def texts(self, *shapes: str) -> dict[str, str]:
        return {each["_id"]: each["content"] for shape in shapes or SHAPES for each in self.db[shape].find()}

    def mark(self) -> dict[str, Any]:
        return self.db.meta.find_one({"_id": "owner"}) or {}


class Keys:
    """What is in Redis, below a prefix."""

    def __init__(self, url: str, prefix: str) -> None:
        self.client: Any = redis.Redis.from_url(url, decode_responses=True)
        self.prefix = prefix

    def close(self) -> None:
        self.client.close()

    def ref(self, id: str) -> dict[str, str]:
        return dict(self.client.hgetall(f"{self.prefix}:notebook:ref:{id}"))

    def refs(self) -> set[str]:
        start = f"{self.prefix}:notebook:ref:"
        return {key.removeprefix(start) for key in self.client.scan_iter(f"{start}*", count=1000)}

    def lines(self, day: str = TODAY) -> list[dict[str, Any]]:
        return [json.loads(each) for each in self.client.lrange(f"{self.prefix}:daily:{day}", 0, -1)]

    def ids(self, day: str = TODAY) -> Sequence[str]:
        return [found.get("id", "") for found in self.lines(day)]

    def mark(self) -> dict[str, Any]:
        mark: dict[str, Any] = json.loads(self.client.get(f"{self.prefix}:notebook:owner") or "{}")
        return mark
