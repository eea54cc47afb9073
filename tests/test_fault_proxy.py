"""The fault proxy itself, against an echo server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.fault_proxy import FaultProxy


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    listener = socket.create_server(("127.0.0.1", 0))

    def echo(connection: socket.socket) -> None:
        with connection:
            try:
                while received := connection.recv(1000):
                    connection.sendall(received)
            except OSError:  # reset, which is what some of the tests are about
                return

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=echo, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    with FaultProxy(*listener.getsockname()) as proxy:
        yield proxy
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[socket.socket]:
    with connect(proxy) as client:
        assert said(client, b"hello") == b"hello"
        yield client


def connect(proxy: FaultProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=20)


def said(client: socket.socket, text: bytes) -> bytes:
    client.sendall(text)
    return client.recv(1000)


def test_refuse_ends_what_is_open_and_refuses_what_is_new(proxy: FaultProxy, client: socket.socket) -> None:
    proxy.mode = "refuse"
    assert client.recv(1000) == b""
    with pytest.raises(ConnectionRefusedError):
        connect(proxy)


def test_passes_again_at_the_same_port(proxy: FaultProxy) -> None:
    proxy.mode = "refuse"
    proxy.mode = "pass"
    with connect(proxy) as client:
        assert said(client, b"again") == b"again"


def test_hang_holds_what_was_sent_until_it_passes(proxy: FaultProxy, client: socket.socket) -> None:
    proxy.mode = "hang"
    client.settimeout(0.2)
    with pytest.raises(TimeoutError):
        said(client, b"late")
    client.settimeout(20)
    proxy.mode = "pass"
    assert client.recv(1000) == b"late"


def test_hang_accepts_new_connections(proxy: FaultProxy) -> None:
    proxy.mode = "hang"
    with connect(proxy) as client:
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            said(client, b"anybody?")


def test_reset_resets_what_is_open_and_what_is_new(proxy: FaultProxy, client: socket.socket) -> None:
    proxy.mode = "reset"
    with pytest.raises(ConnectionResetError):
        client.recv(1000)
    with pytest.raises(ConnectionResetError), connect(proxy) as late:  # it may be reset before it is had
        late.recv(1000)


def test_delay_holds_every_answer_back(proxy: FaultProxy, client: socket.socket) -> None:
    proxy.delay = 0.05
    started = time.monotonic()
    assert said(client, b"slowly") == b"slowly"
    assert time.monotonic() - started >= 2 * proxy.delay  # once on the way there, once on the way back
