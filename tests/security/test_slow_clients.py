"""Rule: a client without a valid token can use the server's resources only briefly. Every body has a deadline and,
where no token is needed, a limit of 8 KiB. The number of connections is limited: at the limit, the server closes the
oldest connection on which it is not answering a request with a valid token. A client that disconnects causes no
traceback. Wrong logins are throttled.
"""

from __future__ import annotations

import logging
import resource
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest.mock import patch

import httpx2
import psutil
import pytest

from notebook_sync import Notebook, Session
from notebook_sync.logins import GUESS_SECONDS, MOST_GUESSES
from notebook_sync.surfaces.http import guard
from notebook_sync.surfaces.http.guard import LARGEST_OPEN_BODY
from notebook_sync.surfaces.serving.serve import MOST_CONNECTIONS
from tests.dashboard.browsing import Browsing, text_of
from tests.security.real_server import Running, running
from tests.surfaces.http_clients import served
from tests.waiting import eventually

OWNER, SCRIBE = Session.owner(), Session.task("scribe")
FLOOD = 1000
LOGIN = "POST /login HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-www-form-urlencoded\r\nOrigin: http://{host}\r\n"
HALF = {
    "silent": "",
    "half a head": "GET /api/v1/status HTTP/1.1\r\nHost: 127",
    "half a body": LOGIN + "Content-Length: 8000\r\n\r\ntoken=" + "x" * 4000,
    "half a chunk": LOGIN + "Transfer-Encoding: chunked\r\n\r\n1000\r\ntoken=" + "x" * 2000,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Notebook.init(tmp_path / "notebook", git=False)
    return tmp_path / "notebook"


@pytest.fixture
def server(root: Path) -> Iterator[Running]:
    with running(root) as found:
        yield found


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    """Both ends of each connection are files of this process."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[1], 4 * FLOOD), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def said(template: str, server: Running) -> bytes:
    """The bytes of a request at the dashboard's own host."""
    return template.format(host=server.own_host).encode()


def rest_of(connection: socket.socket) -> bytes:
    """What comes until the server ends it."""
    found = b""
    try:
        while chunk := connection.recv(65_536):
            found += chunk
    except ConnectionError:
        pass
    return found


@pytest.mark.parametrize("path", ["/login", "/api/v1/edit", "/mcp"])
@pytest.mark.parametrize("length", ["Content-Length: 8000", "Transfer-Encoding: chunked"])
def test_a_body_that_does_not_come_to_its_end_is_not_waited_for(
    server: Running, monkeypatch: pytest.MonkeyPatch, path: str, length: str
) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
    head = f"{LOGIN}{length}\r\nAuthorization: Bearer {server.token(SCRIBE)}\r\n\r\n".replace("/login", path)
    if path != "/login":
        head = head.replace("x-www-form-urlencoded", "json")
    with server.connect() as connection:
        connection.sendall(said(head, server))
        answer = rest_of(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answer.lower()
    assert b"body_too_slow" in answer or path == "/login"


def test_a_body_that_trickles_has_the_same_deadline(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.5)
    with server.connect() as connection:
        connection.sendall(said(LOGIN + "Content-Length: 8000\r\n\r\n", server))
        connection.settimeout(0.05)
        answer = b""
        while not answer:
            with suppress(TimeoutError):
                connection.sendall(b"x")
                answer = connection.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("path", ["/login", "/static/style.css", "/api/v1/health"])
def test_a_body_that_needs_no_proof_is_small(server: Running, path: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    headers |= {"Host": server.own_host, "Origin": f"http://{server.own_host}"}
    for body in (b"x" * (LARGEST_OPEN_BODY + 1), (b"x" * LARGEST_OPEN_BODY for _ in range(2))):
        answer = server.client.post(server.url + path, content=body, headers=headers)
        if isinstance(body, bytes) or path == "/login":
            assert answer.status_code == 413
        else:  # not one byte of it is read
            assert answer.status_code in {405, 413, 415}
    answer = server.client.post(f"{server.url}/login", content=b"x" * LARGEST_OPEN_BODY, headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize("half", HALF)
def test_a_flood_of_half_open_clients_keeps_nobody_out(server: Running, half: str) -> None:
    token = server.token(OWNER)
    assert server.get("/api/v1/status", token).status_code == 200
    raw, process = said(HALF[half], server), psutil.Process()
    before = process.memory_info().rss
    with ExitStack() as stack:
        for _ in range(FLOOD):
            connection = stack.enter_context(server.connect())
            connection.sendall(raw)
        with httpx2.Client(trust_env=False, timeout=60) as owner:
            asked = owner.get(f"{server.url}/api/v1/status", headers={"Authorization": f"Bearer {token}"})
        assert asked.status_code == 200
        eventually(lambda: established(process, server.port) <= MOST_CONNECTIONS, "the oldest are closed")
    assert process.memory_info().rss - before < 50 << 20


def established(process: psutil.Process, port: int) -> int:
    """How many connections the server has."""
    found = process.net_connections("tcp")
    return sum(each.status == psutil.CONN_ESTABLISHED and each.laddr.port == port for each in found)


def test_who_is_known_keeps_the_connection_in_a_flood(server: Running) -> None:
    with ExitStack() as stack:
        stream = stack.enter_context(
            server.client.stream("GET", f"{server.url}/api/v1/events", headers=server.headers(OWNER))
        )
        lines = stream.iter_lines()
        assert next(lines) == ": following"
        for _ in range(2 * MOST_CONNECTIONS):
            stack.enter_context(server.connect())
        with Notebook.open(server.tokens.folder.parent) as notebook:
            notebook.events.record("edit", OWNER, path="pages/plan.md")
        assert any(line.startswith("data: ") for line in lines)


def aborted(server: Running, raw: bytes) -> None:
    """Say this, and be gone without a goodbye."""
    with server.connect() as connection:
        connection.sendall(raw)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_a_client_that_goes_away_leaves_no_traceback(server: Running, caplog: pytest.LogCaptureFixture) -> None:
    bearer = f"Authorization: Bearer {server.token(OWNER)}\r\n"
    for method, path, kind in (
        ("POST", "/login", "application/x-www-form-urlencoded"),
        ("POST", "/api/v1/edit", "application/json"),
        ("POST", "/mcp", "application/json"),
        ("GET", "/api/v1/events", ""),
        ("GET", "/api/v1/notes", ""),
    ):
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n{bearer}"
        head += "Accept: application/json, text/event-stream\r\n"
        head += f"Content-Type: {kind}\r\nContent-Length: 100\r\n" if kind else ""
        aborted(server, f"{head}\r\n{'{' if kind else ''}".encode())
        aborted(server, head[:60].encode())
    process = psutil.Process()
    eventually(lambda: established(process, server.port) == 0, "all are gone")
    assert server.get("/api/v1/status", server.token(OWNER)).status_code == 200
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert not any(record.exc_info for record in caplog.records)


def test_wrong_logins_are_throttled_and_the_right_one_is_let_in(root: Path) -> None:
    with served(root) as found:
        browser = Browsing(found)
        guesses = [browser.post("/login", {"token": "wrong"}) for _ in range(MOST_GUESSES + 1)]
        assert [guess.status_code for guess in guesses] == [403] * (MOST_GUESSES - 1) + [429] * 2
        assert guesses[-1].headers["Retry-After"].isdecimal()
        assert "Too many wrong tokens" in text_of(guesses[-1].text)
        assert browser.post("/login", {"token": found.token(OWNER)}).status_code == 303
        now = time.monotonic()
        with patch("notebook_sync.logins.time.monotonic", lambda: now + GUESS_SECONDS):
            assert browser.post("/login", {"token": "wrong"}).status_code == 403
