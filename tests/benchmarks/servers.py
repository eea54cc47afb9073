"""A MongoDB and a Redis with the search module for as long as a run lasts. Always its own: rows empty them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

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
def running() -> Iterator[Servers]:
    """Start both, with nothing in them."""
    mongodb = start_mongod()
    try:
        redis = start_redis_stack()
        try:
            yield Servers(mongodb.url, redis.url)
        finally:
            redis.stop()
    finally:
        mongodb.stop()
