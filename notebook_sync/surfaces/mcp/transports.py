"""How MCP clients are answered: over standard input and output, one client until it leaves, and over streamable HTTP,
behind the HTTP server's guard.

Only the protocol reaches standard output; logs go to standard error.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from notebook_sync.errors import UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import OWNER, Session
from notebook_sync.surfaces.background import following
from notebook_sync.surfaces.http.guard import MCP_SESSIONS
from notebook_sync.surfaces.mcp.resources import Asking, Context
from notebook_sync.surfaces.mcp.server import NotebookServer
from notebook_sync.surfaces.tools import CORE

_CHUNK = 1 << 16
# Who sent the request in hand, for what the SDK asks the server without saying who asks.
_sender: ContextVar[Session] = ContextVar("sender")


def serve_stdio(notebook: Notebook, session: Session, *, toolsets: str = "core") -> int:
    """Answer one client for this session. Raises UsageError where standard input or output is closed."""
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("mcp needs standard input and output, and one of them is closed")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="notebook-sync: %(message)s")
    asking = Asking(session, toolsets)
    try:
        with following(notebook):
            anyio.run(_serve, NotebookServer(notebook, lambda _: asking, lambda: session))
    except* (BrokenPipeError, ConnectionResetError):
        pass  # the client left without a word
    return 0


async def _serve(server: NotebookServer) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_at_signal, tasks.cancel_scope)
        lines: Any = _Lines(sys.stdin.fileno())  # of an AsyncFile, the SDK uses no more than this
        async with stdio_server(stdin=lines) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _cancel_at_signal(scope: anyio.CancelScope) -> None:
    """Cancel the scope at the first signal; a second one ends the process at once."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


class _Lines:
    """The lines of a descriptor. Waiting for one can be cancelled, which a reading thread cannot."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def __aiter__(self) -> AsyncIterator[str]:
        decoder = getincrementaldecoder("utf-8")(errors="replace")
        parts: list[str] = []
        while chunk := await self._chunk():
            # Only at \n: JSON may hold other line ends.
            first, *others = decoder.decode(chunk).split("\n")
            parts.append(first)
            for other in others:
                yield "".join(parts)
                parts = [other]
        if any(parts):
            yield "".join(parts)

    async def _chunk(self) -> bytes:
        try:
            await anyio.wait_readable(self._fd)
        except PermissionError:  # a regular file is always readable
            await anyio.lowlevel.checkpoint()
        return os.read(self._fd, _CHUNK)


class McpApp:
    """The notebook over streamable HTTP, for agents that have a token; `?tools=all` in the URL lists all tools.

    It starts with its first request, since mounted lifespans do not run, and ends with the event loop.
    """

    def __init__(self, notebook: Notebook) -> None:
        self._sessions = _Sessions(NotebookServer(notebook, _asking_of, _sender.get))
        self._running: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._running is None:
            self._is_ready = anyio.Event()
            self._running = asyncio.create_task(self._run())
        await self._is_ready.wait()
        session: Session = scope["state"]["session"]
        _sender.set(session)
        # The SDK lets only this principal use the MCP session that it opens.
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=_principal(session), scopes=[]))
        await self._sessions.handle_request(scope, receive, send)

    async def _run(self) -> None:
        async with self._sessions.run():
            self._is_ready.set()
            await anyio.sleep_forever()


class _Sessions(StreamableHTTPSessionManager):
    """The SDK's session manager, which only limits all sessions together, with a quota for each agent."""

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        held = Counter(_session_named(owner["client_id"]) for owner in self._session_owners.values())
        is_allowed = requestor is not None and MCP_SESSIONS.allows(_session_named(requestor["client_id"]), held)
        return super()._admit_session(requestor) if is_allowed else None


def _asking_of(ctx: Context) -> Asking:
    """The session whose token came with this request."""
    assert ctx.request is not None  # noqa: S101 - over HTTP, every message comes with one
    state = ctx.request.state
    return Asking(state.session, ctx.request.query_params.get("tools", CORE), state.is_current)


def _principal(session: Session) -> str:
    return f"{session.kind}:{session.agent}"


def _session_named(principal: str) -> Session:
    kind, _, agent = principal.partition(":")
    return OWNER if kind == OWNER.kind else Session.named(kind, agent)
