"""What every request passes before anything else sees it: Host, Origin, sizes, token, content type.

Whatever is mounted behind it is guarded alike. A path is open only if it is named here; who asks is decided by the
token alone, and stands in the request's state as `session`; `is_current()` there tells whether that token counts still.
No token, no query and no body is ever logged.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from notebook_sync.errors import NotebookError
from notebook_sync.sessions import Session
from notebook_sync.surfaces import http_errors as faults
from notebook_sync.surfaces.http_errors import Fault, answer
from notebook_sync.surfaces.http_metrics import Metrics
from notebook_sync.tokens import Tokens

LARGEST_BODY: Final = 4 << 20
LARGEST_HEADERS: Final = 16 << 10
LONGEST_TARGET: Final = 8 << 10
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
# They tell nothing of the notebook: that the server is there, and how the API is.
OPEN_PATHS = frozenset({"/api/v1/health", "/api/v1/openapi.json"})

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_SECURITY = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_access = logging.getLogger("notebook_sync.access")
_trouble = logging.getLogger("notebook_sync.http")


class Guard:
    """ASGI middleware. `hosts` are the names, without a port, that the server answers to besides loopback."""

    def __init__(self, app: ASGIApp, *, tokens: Tokens, hosts: Collection[str], metrics: Metrics) -> None:
        self._app = app
        self._tokens = tokens
        self._hosts = frozenset(host.casefold() for host in (*LOOPBACK, *hosts))
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": faults.NO_WEBSOCKET})
        elif scope["type"] != "http":
            await self._app(scope, receive, send)
        else:
            await _Request(scope, receive, send, self._metrics).answer(self._app, self._hosts, self._tokens)


class _Request:
    """One request on its way through."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, metrics: Metrics) -> None:
        self._scope = scope
        self._outer_receive = receive
        self._outer_send = send
        self._metrics = metrics
        self._received = 0
        self._status = 0
        self._asking: Session | None = None

    async def answer(self, app: ASGIApp, hosts: Collection[str], tokens: Tokens) -> None:
        begun = time.perf_counter()
        try:
            fault = refusal_of(self._scope, hosts) or await self._identify(tokens) or content_refusal_of(self._scope)
            if fault is None:
                await app(self._scope, self._receive, self._send)
            else:
                await self._refuse(fault)
        except _BodyTooLarge:
            await self._refuse(faults.BODY_TOO_LARGE)
        except Exception:  # the edge: whatever went wrong is logged whole, and answered as JSON, never as a trace
            _trouble.exception("%s %s failed", self._scope["method"], _path(self._scope))
            await self._refuse(faults.FAULT_OF_OURS)
        finally:
            self._tell(time.perf_counter() - begun)

    async def _identify(self, tokens: Tokens) -> Fault | None:
        if self._scope["path"] in OPEN_PATHS:
            return None
        token = token_in(Headers(scope=self._scope))
        try:
            self._asking = await to_thread.run_sync(tokens.session_of, token)
        except NotebookError as error:
            _trouble.error("%s", error)
            return faults.TOKENS_UNUSABLE
        if self._asking is None:
            return faults.NO_TOKEN
        state = self._scope.setdefault("state", {})
        state["session"] = self._asking
        state["is_current"] = lambda: self._is_current(tokens, token)
        return None

    def _is_current(self, tokens: Tokens, token: str) -> bool:
        try:
            return tokens.session_of(token) == self._asking
        except NotebookError:
            return False

    async def _refuse(self, fault: Fault) -> None:
        """Answer in place of the app, unless it has begun to."""
        if self._status:
            return
        refusal = answer(fault.status, fault.body())
        if fault is faults.NO_TOKEN:
            refusal.headers["WWW-Authenticate"] = 'Bearer realm="notebook"'
        if _has_body(Headers(scope=self._scope)):
            refusal.headers["Connection"] = "close"  # what is left of the body is not waited for
        await refusal(self._scope, self._outer_receive, self._send)

    async def _receive(self) -> Message:
        message = await self._outer_receive()
        self._received += len(message.get("body", b""))
        if self._received > LARGEST_BODY:
            raise _BodyTooLarge(faults.BODY_TOO_LARGE.status)
        return message

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _SECURITY.items():
                headers.setdefault(name, value)
            headers["Cache-Control"] = _SECURITY["Cache-Control"]
        await self._outer_send(message)

    def _tell(self, seconds: float) -> None:
        route = getattr(self._scope.get("route"), "path", "")
        self._metrics.answered(self._scope["method"], route, self._status, seconds)
        asking = self._asking.changed_by if self._asking else "-"
        client = (self._scope.get("client") or ("-",))[0]
        _access.info(
            "%s %s %s %s %d %.0f ms",
            client,
            asking,
            self._scope["method"],
            _path(self._scope),
            self._status,
            seconds * 1000,
        )


def refusal_of(scope: Scope, hosts: Collection[str]) -> Fault | None:
    """Why a request is refused by its head alone, whoever sent it. Pure."""
    headers = Headers(scope=scope)
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_TARGET:
        return faults.TARGET_TOO_LONG
    if sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEADERS:
        return faults.HEADERS_TOO_LARGE
    host = headers.getlist("host")
    if len(host) != 1 or host_name(host[0]) not in hosts:
        return faults.FOREIGN_HOST
    if not is_own_origin(headers.getlist("origin"), host[0]) or headers.get("sec-fetch-site") in _FOREIGN_SITES:
        return faults.FOREIGN_ORIGIN
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > LARGEST_BODY:
        return faults.BODY_TOO_LARGE
    return None


_FOREIGN_SITES = frozenset({"cross-site", "same-site"})


def content_refusal_of(scope: Scope) -> Fault | None:
    """Why the body of a request is not taken. Pure."""
    headers = Headers(scope=scope)
    if scope["method"] in _READING or (scope["method"] != "POST" and not _has_body(headers)):
        return None
    kind = headers.get("content-type", "").partition(";")[0].strip().casefold()
    if kind != "application/json" or headers.get("content-encoding", "identity").casefold() != "identity":
        return faults.NOT_JSON
    return None


def host_name(host: str) -> str:
    """The name in a Host header, as it is compared: without the port."""
    name, colon, port = host.casefold().rpartition(":")
    return name if colon and port.isdecimal() and not name.endswith(":") else host.casefold()


def is_own_origin(origins: Collection[str], host: str) -> bool:
    """Whether a request comes from no page at all, or from one of this server."""
    if not origins:
        return True
    (first, *more) = origins
    try:
        found = urlsplit(first)
    except ValueError:
        return False
    return not more and found.scheme in {"http", "https"} and found.netloc.casefold() == host.casefold()


def token_in(headers: Headers) -> str:
    """The bearer token; "" where there is none, or more than one."""
    given = headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if scheme.casefold() == "bearer" else ""


class _BodyTooLarge(HTTPException):
    """More came than was announced, or nothing was announced and too much came."""


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _path(scope: Scope) -> str:
    """As it came, percent-encoded: nothing in it ends a line of the log."""
    return (scope.get("raw_path") or b"").decode("ascii", "backslashreplace") or "/"
