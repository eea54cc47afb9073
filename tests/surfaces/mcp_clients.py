"""Clients of the MCP server by the official SDK: of a process, and of a port."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from notebook_sync import Notebook
from notebook_sync.surfaces.http.app import asgi
from tests.processes import quick_command
from tests.surfaces.serving import NO_TLS, on_a_port

# The handshake of before 2026-07-28, which nearly every client still uses, and what came after it.
ERAS = ("legacy", "auto")
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


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
