"""MCP over streamable HTTP, as an ASGI app for the HTTP server to mount.

The server's guard checks Host, Origin, the size of the body and the bearer token before a request arrives here.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractAsyncContextManager

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from notebook_sync.errors import NotebookError
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.http.guard import GuardedApp
from notebook_sync.surfaces.http.quotas import MCP_SESSIONS, Place
from notebook_sync.surfaces.mcp.server import Context, NotebookServer
from notebook_sync.surfaces.mcp.subscriptions import Subscriptions
from notebook_sync.tokens import OWNER, Tokens


def mcp_app(notebook: Notebook, tokens: Tokens) -> GuardedApp:
    """The notebook for agents that have a token, at /mcp."""

    def is_current(session: Session) -> bool:
        try:
            return any(session == Session(token.kind, _agent(token.name)) for token in tokens.list())
        except NotebookError:
            return False

    server = NotebookServer(notebook, _session_of, Subscriptions(notebook, is_current), _at_work)
    sessions = _Sessions(server, max_sessions=MCP_SESSIONS.most)
    return GuardedApp("/mcp", sessions.asgi_app, sessions.run)


class _Sessions(StreamableHTTPSessionManager):
    """The SDK's session manager, which only limits all sessions together, with a quota for each token."""

    def _admit_session(self, requestor: AuthorizationContext | None) -> StreamableHTTPServerTransport | None:
        held = Counter(_session_named(owner["client_id"]) for owner in self._session_owners.values())
        is_allowed = requestor is not None and MCP_SESSIONS.allows(_session_named(requestor["client_id"]), held)
        return super()._admit_session(requestor) if is_allowed else None

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        session: Session = scope["state"]["session"]
        # The SDK lets nobody but this principal use the MCP session that it opens.
        principal = AccessToken(token="", client_id=f"{session.kind}:{session.agent}", scopes=[])
        scope["user"] = AuthenticatedUser(principal)
        # The whole body first: the SDK logs a traceback where the client disconnects in the middle.
        body = await Request(scope, receive).body()
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return unread.pop() if unread else await receive()

        await super()._handle_request(scope, again, send)


def _session_of(ctx: Context) -> Session:
    """The session whose token came with this very request."""
    session: Session = ctx.request.state.session  # type: ignore[union-attr]  # every message comes with a request
    return session


def _at_work(ctx: Context, is_quick: bool) -> AbstractAsyncContextManager[None]:
    place: Place = ctx.request.state.place  # type: ignore[union-attr]  # every message comes with a request
    return place.at_work(is_quick=is_quick)


def _session_named(principal: str) -> Session:
    kind, _, agent = principal.partition(":")
    return Session.named(kind, agent)


def _agent(name: str) -> str:
    return "" if name == OWNER else name
