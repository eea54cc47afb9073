"""A MongoDB and a Redis with the search module for as long as a run lasts. Always its own: rows empty them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.servers import start_mongod, start_redis_stack


@dataclass(frozen=True, slots=True)
class Servers:
    """Where they listen."""

    mongodb: str
    redis: str

    @property
    def environment(self) -> dict[str, str]:
        return {"MONGODB_URL": self.mongodb, "REDIS_URL": self.redis}


@contextmanager
def running(folder: Path) -> Iterator[Servers]:
    """Start both, with their data in `folder`."""
    mongodb = start_mongod(folder / "mongodb")
    try:
        redis = start_redis_stack(folder / "redis")
        try:
            yield Servers(mongodb.url, redis.url)
        finally:
            redis.kill()
    finally:
        mongodb.kill()
