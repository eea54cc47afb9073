"""MCP over streamable HTTP, as an application behind the HTTP server's guard."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextvars import ContextVar

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from notebook_sync.notebook import Notebook
from notebook_sync.sessions import OWNER, Session
from notebook_sync.surfaces.http.guard import MCP_SESSIONS
from notebook_sync.surfaces.mcp.resources import Asking, Context
from notebook_sync.surfaces.mcp.server import NotebookServer
from notebook_sync.surfaces.tools import CORE

# Who sent the request in hand, for what the SDK asks the server without saying who asks.
_sender: ContextVar[Session] = ContextVar("sender")


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
