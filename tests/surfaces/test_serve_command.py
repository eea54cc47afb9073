"""`serve` as a process: when it is ready, what its streams tell, how it ends, what it logs. And `token`."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from notebook_sync import Notebook, Session
from notebook_sync.surfaces.beside import following as serve_following
from notebook_sync.surfaces.cli.main import run
from notebook_sync.sync.watch import Watch
from notebook_sync.tokens import Tokens
from tests import forked
from tests.fault_proxy import FaultProxy
from tests.servers import Server as DatabaseServer
from tests.surfaces.test_mcp_http import HELLO
from tests.waiting import eventually

_READY = re.compile(r"serving on (http://127\.0\.0\.1:\d+)/ \((.*)\)\n")


@dataclass
class Server:
    """A `serve` process that is ready."""

    process: subprocess.Popen[str]
    url: str
    state: str
    tokens: Tokens
    client: httpx2.Client = field(default_factory=lambda: httpx2.Client(trust_env=False, timeout=60))

    def headers(self, agent: str = "") -> dict[str, str]:
        token = self.tokens.add(agent, "task") if agent else self.tokens.owner()
        return {"Authorization": f"Bearer {token}"}

    def ends(self, number: int = signal.SIGTERM) -> str:
        """What it logged. Its exit code is 0, and it ends well before the test's time limit does."""
        self.process.send_signal(number)
        _, log = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, log
        return log


@contextlib.contextmanager
def serving(root: Path, environment: dict[str, str], *more: str, is_real: bool = False) -> Iterator[Server]:
    started = forked.real_command() if is_real else forked.command()
    command = [*started, "-C", str(root), "serve", "--port", "0", *more]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            ready = _READY.fullmatch(process.stdout.readline())
            if ready is None:
                process.kill()
                raise AssertionError(process.communicate())
            server = Server(process, ready[1], ready[2], Tokens(root / ".notebook"))
            with server.client:
                yield server
        finally:
            process.kill()


class Stream:
    """The events of an open stream, gathered by a thread."""

    def __init__(self, server: Server, headers: dict[str, str]) -> None:
        self.events: list[dict[str, Any]] = []
        self.is_open = threading.Event()
        self.ended = threading.Event()
        self._thread = threading.Thread(target=self._gather, args=(server, headers), daemon=True)
        self._thread.start()
        assert self.is_open.wait(30)

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events]

    def _gather(self, server: Server, headers: dict[str, str]) -> None:
        with (
            contextlib.suppress(httpx2.RemoteProtocolError),  # the server was killed: then it has not `ended`
            httpx2.Client(trust_env=False, timeout=60) as client,
            client.stream("GET", f"{server.url}/api/v1/events", headers=headers) as answer,
        ):
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                self.is_open.set()
                if line.startswith("data: "):
                    self.events.append(json.loads(line.removeprefix("data: ")))
            self.ended.set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_edit_by_hand_arrives_and_open_streams_do_not_hold_up_the_end(
    root: Path, shell_environment: dict[str, str], number: int
) -> None:
    with serving(root, shell_environment) as server:
        assert server.state == "following the files"
        streams = [Stream(server, server.headers()), Stream(server, server.headers("scribe"))]
        (root / "pages/new.md").write_text("New.\n")
        for stream in streams:
            eventually(lambda stream=stream: any("pages/new.md" in e.get("paths", ()) for e in stream.events), "told")
        found = server.client.get(f"{server.url}/api/v1/search?query=new", headers=server.headers()).json()
        assert [note["path"] for note in found["results"]] == ["pages/new.md"]
        server.ends(number)
        assert all(stream.ended.wait(10) for stream in streams)


def test_questions_that_a_database_never_answers_do_not_hold_up_the_end(
    root: Path, shell_environment: dict[str, str], mongod_to_break: DatabaseServer
) -> None:
    settings, plan = root / "notebook.toml", root / "pages/plan.md"
    settings.write_text(settings.read_text().replace("# timeout_seconds = 5.0", "timeout_seconds = 3600.0", 1))
    edit = {"file": "pages/plan.md", "action": "append_to_section", "section": "Budget", "content": "Saved."}
    with FaultProxy("127.0.0.1", mongod_to_break.port) as proxy:
        environment = {**shell_environment, "MONGODB_URL": f"mongodb://127.0.0.1:{proxy.port}"}
        with serving(root, environment, is_real=True) as server, ThreadPoolExecutor() as asking:
            owner = server.headers()
            for path in ("/notes", "/memories", "/facts", "/status"):
                assert server.client.get(f"{server.url}/api/v1{path}", headers=owner).status_code == 200
            proxy.mode = "hang"
            asking.submit(server.client.post, f"{server.url}/api/v1/edit", json=edit, headers=owner)
            for path in ("/status", "/notes", "/search?query=start"):
                asking.submit(server.client.get, f"{server.url}/api/v1{path}", headers=owner)
            eventually(lambda: "Saved." in plan.read_text(), "the file waits for nobody")
            server.ends()
        assert "Saved." in plan.read_text()


def test_a_stream_goes_on_where_another_ended(root: Path, shell_environment: dict[str, str]) -> None:
    with serving(root, shell_environment, "--no-watch") as server:
        assert server.state == "the files are not followed"
        owner = server.headers()
        first = Stream(server, owner)
        edit = {"file": "pages/plan.md", "action": "append_to_section", "section": "Budget"}
        for number in range(3):
            body = {**edit, "content": f"{number}00"}
            assert server.client.post(f"{server.url}/api/v1/edit", json=body, headers=owner).status_code == 200
        eventually(lambda: first.kinds() == ["edit"] * 3, "three edits")
        ids = [event["id"] for event in first.events]
        second = Stream(server, {**owner, "Last-Event-ID": ids[0]})
        eventually(lambda: [event["id"] for event in second.events] == ids[1:], "the two that came after the first")
        body = {**edit, "content": "300"}
        server.client.post(f"{server.url}/api/v1/edit", json=body, headers=owner)
        eventually(lambda: len(second.events) == 3, "and each later one once")
        assert [event["id"] for event in second.events] == [event["id"] for event in first.events[1:]]


def test_an_agent_is_told_of_what_it_may_read_and_of_nothing_else(
    root: Path, shell_environment: dict[str, str]
) -> None:
    with serving(root, shell_environment, "--no-watch") as server, Notebook.open(root) as notebook:
        agent = Stream(server, server.headers("scribe"))
        owner = Stream(server, server.headers())
        notebook.events.record("changed", Session.owner(), paths=["channels/pilot/berth.md"])
        notebook.events.record("changed", Session.owner(), paths=["channels/pilot/berth.md", "pages/plan.md"])
        notebook.events.record("edit", Session.owner(), path="channels/pilot/berth.md", reason="berth 4711")
        notebook.events.record("edit", Session.owner(), path="pages/plan.md", reason="berth 4711")
        notebook.events.record("refused", Session.task("pilot"), path="pages/plan.md", tool="x", reason="berth 4711")
        notebook.events.record("refused", Session.task("scribe"), path="x", tool="x", reason="its own")
        eventually(lambda: len(owner.events) == 6, "the owner is told everything")
        eventually(lambda: agent.kinds() == ["changed", "edit", "refused"], "the agent is told three of them")
        told = json.dumps(agent.events)
        assert "berth" not in told
        assert "its own" in told


def test_a_stream_ends_when_its_token_is_revoked(root: Path, shell_environment: dict[str, str]) -> None:
    with serving(root, shell_environment, "--no-watch") as server, Notebook.open(root) as notebook:
        agent, owner = Stream(server, server.headers("scribe")), Stream(server, server.headers())
        server.tokens.revoke("scribe")
        notebook.events.record("edit", Session.owner(), path="pages/plan.md")
        eventually(lambda: owner.kinds() == ["edit"], "the owner is told")
        assert agent.ended.wait(10)
        assert agent.events == []


def test_who_follows_already_goes_on_to(root: Path, shell_environment: dict[str, str]) -> None:
    with serving(root, shell_environment, is_real=True) as first, serving(root, shell_environment) as second:
        assert first.state == "following the files"
        assert second.state == f"process {first.process.pid} follows the files"
        stream = Stream(second, second.headers())
        (root / "pages/new.md").write_text("New.\n")
        eventually(lambda: "changed" in stream.kinds(), "what one server found, another one tells")
        log = second.ends()
        assert f"process {first.process.pid} on " in log


def test_nothing_secret_is_logged(root: Path, shell_environment: dict[str, str]) -> None:
    with serving(root, shell_environment) as server:
        owner = server.headers()
        secret = owner["Authorization"].removeprefix("Bearer ")
        for path in (f"/search?query={secret}", f"/nowhere?token={secret}", "/prompt", "/status"):
            server.client.get(f"{server.url}/api/v1{path}", headers=owner)
        server.client.get(f"{server.url}/api/v1/prompt", headers={"Authorization": f"Bearer {secret}x"})
        endless = b"GET / HTTP/1.1\r\nX-Long: " + b"x" * 100_000
        for raw in (f"GET /x HTTP/9 {secret}\r\n\r\n".encode(), b"\x16\x03\x01 no http\r\n\r\n", endless):
            status, body = malformed(server, raw)
            assert (status, body["error"]["type"]) == (400, "malformed")
        log = server.ends()
        assert log.count("owner GET /api/v1/") == 4
        assert secret not in log
        assert "Bearer" not in log


@pytest.mark.parametrize("answered_before", [False, True])
def test_a_head_that_does_not_come_to_its_end_is_not_waited_for(
    root: Path, shell_environment: dict[str, str], answered_before: bool
) -> None:
    with serving(root, shell_environment, "--no-watch") as server:
        address = httpx2.URL(server.url)
        with socket.create_connection((address.host, address.port or 0), timeout=30) as connection:
            if answered_before:
                connection.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
            connection.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: local")
            rest = b"".join(iter(lambda: connection.recv(65_536), b""))  # until the server ends it
        assert b"HTTP/1.1" not in rest
        server.ends()


def test_mcp_is_served_beside_behind_the_same_guard(root: Path, shell_environment: dict[str, str]) -> None:
    with serving(root, shell_environment, "--no-watch") as server:
        headers = {**server.headers(), "Accept": "application/json, text/event-stream"}
        answer = server.client.post(f"{server.url}/mcp", json=HELLO, headers=headers)
        assert (answer.status_code, "notebook-sync" in answer.text) == (200, True)
        assert server.client.post(f"{server.url}/mcp", json=HELLO).status_code == 401
        server.ends()


def test_a_port_that_is_taken_is_a_wrong_call(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run(["-C", str(root), "serve", "--port", str(taken.getsockname()[1])]) == 2
    assert "choose another --port" in capsys.readouterr().err
    assert run(["-C", str(root), "serve", "--port", "70000"]) == 2


def test_a_token_is_alone_on_its_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = Tokens(root / ".notebook")
    assert run(["-C", str(root), "token", "show"]) == 0
    assert capsys.readouterr().out == f"{tokens.owner()}\n"
    assert run(["-C", str(root), "token", "add", "scribe", "--session", "task"]) == 0
    secret = capsys.readouterr().out.strip()
    assert tokens.session_of(secret) == Session.task("scribe")
    assert run(["-C", str(root), "token", "list"]) == 0
    assert secret not in capsys.readouterr().out


def malformed(server: Server, raw: bytes) -> tuple[int, Any]:
    """The answer to what is no HTTP: its status, and its body as JSON."""
    address = httpx2.URL(server.url)
    with socket.create_connection((address.host, address.port or 0), timeout=30) as connection:
        connection.sendall(raw)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while chunk := connection.recv(65_536):
                answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def test_files_that_cannot_be_followed_are_told_as_that_and_once(root: Path, shell_environment: dict[str, str]) -> None:
    (root / ".notebook/watch.lock").mkdir(parents=True)
    with serving(root, shell_environment) as server:
        assert server.state == "the files are not followed; the log says why"
        assert server.ends().count("the files are not followed: ") == 1


def test_trouble_that_stays_is_told_once_however_often_it_is_met(
    root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serve_following, "_AGAIN_SECONDS", 0.01)
    (root / ".notebook/watch.lock").mkdir(parents=True)
    looks: list[int] = []
    with Notebook.open(root) as notebook:
        watch = notebook.watch

        def counted() -> Watch:
            looks.append(1)
            return watch()

        monkeypatch.setattr(notebook, "watch", counted)
        with serve_following.Following(notebook, watch=True, changed=lambda _: None).running():
            eventually(lambda: len(looks) > 3, "tried again")
    assert [record.levelname for record in caplog.records].count("ERROR") == 1
