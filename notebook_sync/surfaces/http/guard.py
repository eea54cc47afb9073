"""What every request passes before anything else sees it: size, Host, Origin, token, quota, body.

Every route is guarded alike. No token, no query and no body is ever logged.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import anyio
import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from notebook_sync.errors import (
    NotebookError,
    NotFound,
    NotPermitted,
    Refused,
    TooManyRequests,
    Unauthorized,
    UsageError,
)
from notebook_sync.model import SETTINGS_FILE
from notebook_sync.sessions import OWNER, Session

LARGEST_BODY: Final = 4 << 20
# Of a request that needs no token.
LARGEST_OPEN_BODY: Final = 8 << 10
BODY_SECONDS: Final = 10.0
LARGEST_HEADERS: Final = 16 << 10
LONGEST_TARGET: Final = 8 << 10
TURN_SECONDS: Final = 30.0
COSTLY_AT_ONCE: Final = 2
# The page that other sites lead a browser to. It shows nothing, and does nothing.
AUTHORIZE: Final = "/authorize"
COOKIE: Final = "notebook"

_SECURITY = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_SINGLE = ("host", "origin", "authorization", "content-length", "content-type", "cookie", "sec-fetch-site")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(?::\d{0,5})?")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_LONGEST_LENGTH = 12
_CLIENT_LEFT = 499
_access = logging.getLogger("notebook_sync.access")
_trouble = logging.getLogger("notebook_sync.http")

FAULT: Final = NotebookError("the server failed; its log says why")
SessionOf = Callable[[str], Session | None]
# open: needs no token. costly: may take seconds. stream: is answered without end.
Cost = Literal["open", "quick", "costly", "stream"]


class RequestTooLarge(Refused):
    """A part of a request is larger than the server accepts."""

    status = 413


class WrongMethod(UsageError):
    """A path that is asked for by another method; `allow` names those that it has."""

    status = 405


@dataclass(frozen=True, slots=True)
class Quota:
    """At most `total` at once, `each` for one agent, and the last `reserve` for the owner only."""

    total: int
    each: int
    reserve: int

    def allows(self, session: Session, held: Counter[Session]) -> bool:
        """Whether the session may have one more; all sessions of the owner count as one."""
        agents = held.total() - held[OWNER]
        is_free = held[session] < self.each and agents < self.total - self.reserve
        return held.total() < self.total and (session == OWNER or is_free)


REQUESTS: Final = Quota(total=32, each=8, reserve=8)
STREAMS: Final = Quota(total=64, each=8, reserve=16)
MCP_SESSIONS: Final = Quota(total=256, each=32, reserve=64)


class AuthBackend(Protocol):
    """How one kind of client proves who it is, and how it is refused."""

    # The type of the bodies that it sends.
    media_type: str

    def owns(self, path: str) -> bool:
        """Whether requests for this path are decided here."""

    def proof_in(self, method: str, headers: Headers) -> str:
        """What a request proves itself with, "" for nothing."""

    def session_of(self, proof: str) -> Session | None:
        """Who asks, None for a proof that is not valid."""

    def refusal(self, scope: Scope, error: NotebookError) -> Response:
        """The answer to an error. The guard adds the headers that every client reads."""


class BearerAuth:
    """Authentication of programs: a bearer token, JSON, and errors in the common shape. It owns every path."""

    media_type = "application/json"

    def __init__(self, session_of: SessionOf) -> None:
        self.session_of = session_of

    def owns(self, path: str) -> bool:
        """Every path."""
        return True

    def proof_in(self, method: str, headers: Headers) -> str:
        """The token."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    def refusal(self, scope: Scope, error: NotebookError) -> Response:
        """The error as JSON, in the common shape."""
        headers = {"WWW-Authenticate": "Bearer"} if error.status == Unauthorized.status else {}
        return json_response(error.as_json(), error.status, headers)


class Guard:
    """ASGI middleware. The first of `backends` that owns the path says who asks; `hosts` are host names besides
    loopback; `cost_of(method, path, headers)` says what an answer takes, `answered` is called with each. Paths are as
    the application sees them, wherever it is mounted."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        backends: Sequence[AuthBackend],
        hosts: Collection[str],
        cost_of: Callable[[str, str, Headers], Cost],
        answered: Callable[[str, str, int, float], None],
    ) -> None:
        self._app = app
        self._backends = tuple(backends)
        self._hosts = frozenset(host.casefold() for host in hosts)
        self._cost_of = cost_of
        self._answered = answered
        self._held: Mapping[Quota, Counter[Session]] = {REQUESTS: Counter(), STREAMS: Counter()}
        self._turns: defaultdict[Session, anyio.Semaphore] = defaultdict(lambda: anyio.Semaphore(COSTLY_AT_ONCE))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] != "http":
            await self._app(scope, receive, send)
        else:
            # With `app` the router raises what it cannot answer; handlers of a program that mounts us stay out.
            ours = {"app": self, "state": dict(scope.get("state", {})), "starlette.exception_handlers": ({}, {})}
            await self._answer({**scope, **ours}, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, status = time.perf_counter(), 0

        async def send_safely(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        # The path as it came, percent-encoded: nothing in it ends a line of the log.
        path = (scope.get("raw_path") or b"").decode("ascii", "backslashreplace") or "/"
        seen_path = scope["path"].removeprefix(scope.get("root_path", ""))
        backend = next(each for each in self._backends if each.owns(seen_path))
        try:
            await self._admit(backend, scope, receive, send_safely)
        except ClientDisconnect:
            pass
        except Exception as error:  # the edge: answered as JSON, never as a trace
            known = _known(error, path)
            if known is FAULT:
                _trouble.exception("%s %s failed", scope["method"], path)
            if not status:
                answer = backend.refusal(scope, known)
                answer.headers.update(_headers_of(known, is_read="is_whole" in scope["state"]))
                await answer(scope, receive, send_safely)
        finally:
            seconds, status = time.perf_counter() - begun, status or _CLIENT_LEFT
            session = scope["state"].get("session")
            who = session.changed_by if session else "-"
            self._answered(scope["method"], getattr(scope.get("route"), "path", ""), status, seconds)
            _access.info("%s %s %s %d %.0f ms", who, scope["method"], path, status, seconds * 1000)

    async def _admit(self, backend: AuthBackend, scope: Scope, receive: Receive, send: Send) -> None:
        headers, method = Headers(scope=scope), scope["method"]
        check_head(scope, headers, self._hosts)
        cost = self._cost_of(method, scope["path"].removeprefix(scope.get("root_path", "")), headers)
        if cost == "open":
            await self._app(scope, await _with_body(receive, headers, LARGEST_OPEN_BODY), send)
            return
        proof = backend.proof_in(method, headers)
        session = await anyio.to_thread.run_sync(backend.session_of, proof) if proof else None
        if session is None:
            raise Unauthorized("no valid token", next="send Authorization: Bearer TOKEN; see notebook-sync token show")
        scope["state"] |= {"session": session, "is_current": lambda: backend.session_of(proof) == session}
        if method not in ("GET", "HEAD", "DELETE", "OPTIONS"):
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != backend.media_type:
                raise UsageError(
                    f"the body must be {backend.media_type}", next=f"send Content-Type: {backend.media_type}"
                )
        # The quota also limits how many bodies are held in memory.
        async with self._place(OWNER if session.kind == "owner" else session, cost):
            with_body = await _with_body(receive, headers, LARGEST_BODY)
            scope["state"]["is_whole"] = True
            await self._app(scope, with_body, send)

    @asynccontextmanager
    async def _place(self, holder: Session, cost: Cost) -> AsyncIterator[None]:
        """Hold a part of the quota, and for what is costly a turn. Raises TooManyRequests where there is none."""
        quota = STREAMS if cost == "stream" else REQUESTS
        held, turns = self._held[quota], self._turns[holder] if cost == "costly" and holder != OWNER else None
        if not quota.allows(holder, held):
            raise TooManyRequests("too many requests of this session are in progress")
        held[holder] += 1
        async with AsyncExitStack() as place:
            place.callback(held.subtract, [holder])
            if turns:
                with anyio.move_on_after(TURN_SECONDS) as waiting:
                    await place.enter_async_context(turns)
                if waiting.cancelled_caught:
                    raise TooManyRequests(f"{COSTLY_AT_ONCE} costly requests of this session are in progress")
            yield


def check_head(scope: Scope, headers: Headers, hosts: Collection[str]) -> None:
    """Refuse a request by its head alone. Raises NotebookError."""
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_TARGET:
        raise RequestTooLarge(f"the request's target is longer than {LONGEST_TARGET:,} bytes")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEADERS:
        raise RequestTooLarge(f"the request's headers are longer than {LARGEST_HEADERS:,} bytes")
    for name in _SINGLE:
        if len(headers.getlist(name)) > 1:
            raise UsageError(f"the header {name} is given more than once")
    host = headers.get("host", "")
    if not is_own_host(host, hosts):
        advice = f"add it to server.allowed_hosts in {SETTINGS_FILE}, and restart the server"
        raise NotPermitted("This server does not answer to that Host", next=advice)
    is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
    if not is_own_origin(headers.get("origin"), host) or (is_foreign and not _is_arrival(scope, headers)):
        raise NotPermitted("Requests from pages of other sites are refused")


def _is_arrival(scope: Scope, headers: Headers) -> bool:
    """Whether a browser opens, in a tab of its own, the page that other sites lead to."""
    is_document = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return is_document and scope["method"] == "GET" and scope["path"] == AUTHORIZE


def is_own_host(host: str, hosts: Collection[str] = ()) -> bool:
    """Whether a Host header names loopback, `*.localhost`, or one of `hosts`."""
    name = host_name(host)
    return name in _LOOPBACK or name.endswith(".localhost") or (bool(name) and name.strip("[]") in hosts)


def host_name(host: str) -> str:
    """The name in a Host header, without the port; "" for what is no name."""
    found = _HOST.fullmatch(host.casefold())
    return found[1] if found else ""


def is_own_origin(origin: str | None, host: str) -> bool:
    """Whether a request comes from no page, or from a page of this server."""
    return origin is None or origin.casefold() in (f"http://{host.casefold()}", f"https://{host.casefold()}")


async def _with_body(receive: Receive, headers: Headers, largest: int) -> Receive:
    """What the application receives: the whole body, then what the client does. Raises RequestTooLarge, UsageError for
    a body that is too slow, ClientDisconnect."""
    too_large = RequestTooLarge(f"the body is larger than {largest:,} bytes")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > _LONGEST_LENGTH or int(length) > largest:
        raise too_large
    body, is_whole = bytearray(), False
    with anyio.move_on_after(BODY_SECONDS) as waiting:
        while not is_whole:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body += message.get("body", b"")
            if len(body) > largest:
                raise too_large
            is_whole = not message.get("more_body")
    if waiting.cancelled_caught:
        raise UsageError(f"the body did not arrive within {BODY_SECONDS:.0f} s")
    messages: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def receive_next() -> Message:
        return messages.pop() if messages else await receive()

    return receive_next


def _known(error: Exception, path: str) -> NotebookError:
    """The error as one of ours, for a request of this path. Of a fault of the program, an answer says nothing."""
    if isinstance(error, NotebookError):
        return error
    if isinstance(error, HTTPException):
        allow = (error.headers or {}).get("Allow")
        if allow:
            return WrongMethod(f"this route takes {allow}", allow=allow)
        return NotFound("route", path, next="see /api/v1/openapi.json")
    return FAULT


def _headers_of(error: NotebookError, *, is_read: bool) -> dict[str, str]:
    """What every client reads of an error. A request that is not read to its end ends its connection."""
    named = {"Retry-After": "retry_after", "Allow": "allow"}
    said = {name: str(error.fields[field]) for name, field in named.items() if field in error.fields}
    return said if is_read else {"Connection": "close", **said}


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(msgspec.json.encode(value), status, dict(headers or {}), "application/json")
