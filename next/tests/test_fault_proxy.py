"""The fault proxy itself, against an echo server."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.fault_proxy import FaultProxy


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
