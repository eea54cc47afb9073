"""A small notebook behind the HTTP application, asked within the test's process or on a real port; and clients of its
MCP server by the official SDK, of a process and of a port."""

import contextlib
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from starlette.testclient import TestClient

from notebook_sync import Notebook, Session
from notebook_sync.services.tokens import TokenFile
from notebook_sync.surfaces.http.app import asgi
from notebook_sync.surfaces.http.serve import config_of
from tests.processes import quick_command
from tests.servers import unavailable
from tests.waiting import eventually

BASE = "http://127.0.0.1:8765"
OWNER, SCRIBE, STRANGER = Session.owner(), Session.task("scribe"), Session.external("herald")
# For clients of plain HTTP, which would load the certificates of this machine, each time.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
SESSIONS = (OWNER, SCRIBE, STRANGER)
# The handshake of before 2026-07-28, which nearly every client still uses, and what came after it.
ERAS = ("legacy", "auto")
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
FILES = {
    "notebook.toml": '[notebook]\ntimezone = "UTC"\n[search]\nembeddings = "off"\n',
    "pages/plan.md": "# Plan\n\nStart small.\n",
    "facts/core.md": "# Core\n\n- The harbour is called Quay\n",
    "runtime/standing-orders.md": "# Standing Orders\n\n## Boundaries\n\n- Never pay\n<!-- the safe is blue -->\n",
    "runtime/reminders.md": "# Reminders\n\n## Today\n\n- [ ] Call the mill\n",
    "runtime/external-communications.md": (
        "# External\n\n## Permanent Rules\n\n- **Odile** (odile@q.example): draft only\n"
    ),
    "channels/pilot/global/berth.md": "---\ntype: note\n---\n# Berth\n\nRope lies at the secret berth.\n",
}


def make_notebook(root: Path) -> Path:
    """The files above in a folder."""
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def bytes_of(root: Path) -> dict[str, bytes]:
    """Every file of the notebook but what the program keeps for itself."""
    files = (path for path in root.rglob("*") if path.is_file() and ".notebook" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def refusals(notebook: Notebook) -> list[dict[str, Any]]:
    """The events of refusals so far."""
    return [event for event in notebook.core.events.read(limit=10_000) if event["kind"] == "refused"]


@contextlib.contextmanager
def unchanged(root: Path) -> Iterator[None]:
    """A block after which every file is as it was."""
    before = bytes_of(root)
    yield
    assert bytes_of(root) == before


def token_of(notebook: Notebook, session: Session) -> str:
    """The token of a session, which is made the first time."""
    tokens = TokenFile(notebook.core.place.state)
    if session.kind == "owner":
        return tokens.owner()
    known = [each.secret for each in tokens.rows() if each.name == session.agent]
    return known[0] if known else tokens.add(session.agent, session.kind)


def npm_file(name: str) -> Path:
    """A file that npm installed; without it, the test is skipped or fails."""
    path = Path(os.environ.get("NOTEBOOK_TEST_NODE_MODULES", "")) / name
    if not path.is_file():
        unavailable(f"NOTEBOOK_TEST_NODE_MODULES has no {name}")
    return path


def get(url: str, token: str = "", **headers: str) -> httpx2.Response:
    """The answer of a real port to one GET with this token."""
    bearer = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx2.get(url, headers=bearer | headers, timeout=60, verify=NO_TLS)


@dataclass
class Served:
    """A notebook behind the application. A session that asks for the first time gets a token."""

    notebook: Notebook
    client: TestClient
    _tokens: dict[Session, str] = field(default_factory=dict)

    def bearer(self, session: Session | None) -> dict[str, str]:
        """The header with the session's token; none for None."""
        if session is None:
            return {}
        if session not in self._tokens:
            self._tokens[session] = token_of(self.notebook, session)
        return {"Authorization": f"Bearer {self._tokens[session]}"}

    def ask(
        self,
        method: str,
        path: str,
        session: Session | None = OWNER,
        *,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> Any:
        """The answer to a request below /api/v1."""
        return self.client.request(method, f"/api/v1{path}", headers=self.bearer(session) | (headers or {}), **more)


@contextlib.contextmanager
def served(root: Path, **options: Any) -> Iterator[Served]:
    """The application in this process, over a notebook that is synced."""
    with Notebook.open(root) as notebook:
        notebook.sync()
        with TestClient(asgi(notebook, **options), base_url=BASE, raise_server_exceptions=False) as client:
            yield Served(notebook, client)


@contextlib.contextmanager
def on_a_port(app: Any) -> Iterator[tuple[str, int]]:
    """The application as `serve` runs it, on a free port of this machine: its host and port."""
    server = uvicorn.Server(config_of(app))
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            eventually(lambda: server.started, "the server has started")
            yield listener.getsockname()
        finally:
            server.should_exit = True
            server.force_exit = True  # streams do not end by themselves
            thread.join(30)


@contextlib.asynccontextmanager
async def over_stdio(
    root: Path, *arguments: str, environment: Mapping[str, str] = {}, **options: Any
) -> AsyncIterator[Client]:
    """A client of `notebook-sync mcp`, which ends with it."""
    program, *given = quick_command()
    given += ["-C", str(root), "mcp", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment}
    async with Client(StdioServerParameters(command=program, args=given, env=variables), **options) as client:
        yield client


@contextlib.asynccontextmanager
async def over_http(url: str, token: str, **options: Any) -> AsyncIterator[Client]:
    """A client that sends this token."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30, verify=NO_TLS) as sender,
        Client(streamable_http_client(url, http_client=sender), **options) as client,
    ):
        yield client


@contextlib.contextmanager
def mcp_on_a_port(notebook: Notebook, around: Callable[[Any], Any] = lambda app: app) -> Iterator[str]:
    """The URL of MCP, as `serve` serves it; `around` wraps the application."""
    with on_a_port(around(asgi(notebook))) as (host, port):
        yield f"http://{host}:{port}/mcp"
