"""Clients of the MCP server, by the official SDK: of a real process, of a real port, and within this process."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult
from starlette.types import ASGIApp

from notebook_sync import Notebook, Session
from notebook_sync.folder import FOLDER
from notebook_sync.surfaces.mcp.http import mcp_app
from notebook_sync.surfaces.mcp.server import NotebookServer
from notebook_sync.surfaces.mcp.subscriptions import Subscriptions
from notebook_sync.surfaces.serving.app import http_app
from notebook_sync.surfaces.serving.serve import config_of
from notebook_sync.tokens import Tokens
from tests import forked
from tests.served import served

if TYPE_CHECKING:
    from tests.surfaces.doors import Door

REPOSITORY = Path(__file__).parents[2]
# The handshake of before 2026-07-28, which nearly every client still uses, and what came after it.
ERAS = ("legacy", "auto")


def process(root: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> StdioServerParameters:
    """How a client starts the command."""
    program, *started = forked.command()
    return StdioServerParameters(
        command=program,
        args=[*started, "-C", str(root), "mcp", *arguments],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), **(environment or {})},
    )


@contextlib.asynccontextmanager
async def over_http(url: str, token: str, **options: Any) -> AsyncIterator[Client]:
    """A client that sends this token."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http), **options) as client,
    ):
        yield client


@contextlib.contextmanager
def serving(notebook: Notebook, around: Callable[[ASGIApp], ASGIApp] = lambda app: app) -> Iterator[str]:
    """The HTTP server as `serve` runs it, on a free port; `around` wraps its app. The URL of MCP."""
    app = http_app(notebook, beside=[mcp_app(notebook, Tokens(notebook.root / FOLDER))])
    with (
        socket.create_server(("127.0.0.1", 0), backlog=2048) as listening,
        served(config_of(around(app)), listening, app.state.streams.end),
    ):
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"


class McpDoor:
    """The tools by MCP, with one client for each session, which stays connected."""

    def __init__(
        self,
        portal: BlockingPortal,
        clients: contextlib.ExitStack,
        client_for: Callable[[Session], AbstractAsyncContextManager[Client]],
    ) -> None:
        self._portal = portal
        self._clients = clients
        self._client_for = client_for
        self._open: dict[Session, Client] = {}

    def list_tools(self, session: Session) -> set[str]:
        listed = self._portal.call(self._client(session).list_tools)
        return {tool.name for tool in listed.tools}

    def call(self, session: Session, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer = self._portal.call(self._client(session).call_tool, name, arguments)
        assert isinstance(answer, CallToolResult)
        assert isinstance(answer.structured_content, dict)
        assert bool(answer.is_error) == ("error" in answer.structured_content)
        return answer.structured_content

    def _client(self, session: Session) -> Client:
        if session not in self._open:
            connecting = self._portal.wrap_async_context_manager(self._client_for(session))
            self._open[session] = self._clients.enter_context(connecting)
        return self._open[session]


@contextlib.contextmanager
def mcp_in_process(root: Path) -> Iterator[Door]:
    """The server that `mcp` runs, without the process: one connection for each session."""

    def client_for(session: Session) -> Client:
        return Client(NotebookServer(notebook, lambda _: session, Subscriptions(notebook)), mode="legacy")

    with Notebook.open(root) as notebook, start_blocking_portal() as portal, contextlib.ExitStack() as clients:
        yield McpDoor(portal, clients, client_for)


@contextlib.contextmanager
def mcp_over_http(root: Path) -> Iterator[Door]:
    """A real port, where the token decides."""

    def client_for(session: Session) -> AbstractAsyncContextManager[Client]:
        return over_http(url, token_of(tokens, session), mode="legacy")

    tokens = Tokens(root / FOLDER)
    with (
        Notebook.open(root) as notebook,
        serving(notebook) as url,
        start_blocking_portal() as portal,
        contextlib.ExitStack() as clients,
    ):
        yield McpDoor(portal, clients, client_for)


def token_of(tokens: Tokens, session: Session) -> str:
    """A new token for this session, in place of any other of its agent."""
    if session.kind == "owner":
        return tokens.owner()
    tokens.revoke(session.agent)
    return tokens.add(session.agent, session.kind)
