"""MCP over streamable HTTP, as an ASGI app for a server to mount: who asks is whose bearer token it is.

Without a token of this notebook nothing is answered but 401. Host and Origin are held against the names that the
server answers to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.types import ASGIApp

from notebook_sync.errors import NotebookError
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.mcp.server import Context, NotebookServer
from notebook_sync.surfaces.mcp.subscriptions import Subscriptions
from notebook_sync.tokens import OWNER, Tokens

_MOST_SESSIONS = 1000
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class McpApp:
    """`app` answers at whatever path it stands; `running()` is entered once, before it is first called."""

    app: ASGIApp
    running: Callable[[], AbstractAsyncContextManager[None]]


def mcp_app(notebook: Notebook, tokens: Tokens, *, hosts: Sequence[str] = ()) -> McpApp:
    """The notebook for agents that have a token. `hosts` are further Host names it answers to, besides loopback and
    those of `server.allowed_hosts`."""

    def is_current(session: Session) -> bool:
        try:
            return any(session == Session(token.kind, _agent(token.name)) for token in tokens.list())
        except NotebookError:
            return False

    subscriptions = Subscriptions(notebook, is_current)
    names = (*_LOOPBACK, *notebook.settings.server.allowed_hosts, *hosts)
    places = [place for name in names for place in (name, f"{name}:*")]
    sessions = StreamableHTTPSessionManager(
        NotebookServer(notebook, _session_of, subscriptions),
        security_settings=TransportSecuritySettings(
            enable_dns_rebinding_protection=True,
            allowed_hosts=places,
            allowed_origins=[f"{scheme}://{place}" for scheme in ("http", "https") for place in places],
        ),
        # Twice the largest note: JSON spells some characters with two.
        max_request_body_size=2 * notebook.settings.notebook.max_file_bytes,
        max_sessions=_MOST_SESSIONS,
    )
    guarded = RequireAuthMiddleware(sessions.handle_request, required_scopes=[])
    return McpApp(AuthenticationMiddleware(guarded, backend=BearerAuthBackend(_Verifier(tokens))), sessions.run)


class _Verifier:
    """Looks a token up in the notebook's own, at each request: one that was revoked is worth nothing at once."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            session = await anyio.to_thread.run_sync(self._tokens.session_of, token)
        except NotebookError as error:
            log.warning("%s", error)
            return None
        if session is None:
            return None
        # The SDK lets nobody but this principal use the MCP session that it opens.
        principal = f"{session.kind}:{session.agent}"
        return AccessToken(
            token=token, client_id=principal, scopes=[], claims={_KIND: session.kind, _AGENT: session.agent}
        )


_KIND, _AGENT = "session", "agent"


def _session_of(ctx: Context) -> Session:
    """Who asks, by the token of this very request."""
    user: AuthenticatedUser = ctx.request.user  # type: ignore[union-attr]  # no request reaches the server without
    claims = user.access_token.claims or {}
    return Session.named(claims[_KIND], claims[_AGENT])


def _agent(name: str) -> str:
    return "" if name == OWNER else name
