"""What every request passes before anything else sees it: Host, Origin, sizes, token, content type.

Whatever is mounted behind it is guarded alike. A path is open only if its door says so; who asks is decided by what
that door takes for a proof, and stands in the request's state as `session`; `is_current()` there tells whether that
counts still, and `place` counts it. No proof, no query and no body is ever logged.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from anyio import CapacityLimiter, Semaphore, current_time, fail_after, to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from notebook_sync.errors import NotebookError
from notebook_sync.logins import is_local
from notebook_sync.sessions import Session
from notebook_sync.surfaces.http import errors as faults
from notebook_sync.surfaces.http.doors import Door, has_body, host_name
from notebook_sync.surfaces.http.errors import Fault
from notebook_sync.surfaces.http.metrics import Metrics
from notebook_sync.surfaces.http.quotas import COSTLY_AT_ONCE, REQUESTS, STREAMS, Place, Quota

LARGEST_BODY: Final = 4 << 20
# Of a request that nobody has to prove anything for.
LARGEST_OPEN_BODY: Final = 8 << 10
BODY_SECONDS: Final = 10.0
LARGEST_HEADERS: Final = 16 << 10
LONGEST_TARGET: Final = 8 << 10

_SECURITY = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# Threads that look at proofs: who waits for a database that hangs does not hold up who needs none.
_THREADS = 2
_access = logging.getLogger("notebook_sync.access")
_trouble = logging.getLogger("notebook_sync.http")


@dataclass(frozen=True, slots=True)
class GuardedApp:
    """An app that is served at a path, and what has to run while it is served. Its requests have passed the guard."""

    path: str
    app: ASGIApp
    running: Callable[[], AbstractAsyncContextManager[object]]


class Guard:
    """ASGI middleware. `hosts` are the names, without a port, that the server answers to besides loopback; of `doors`,
    the first that owns a path is asked, and the last owns all. GET of the paths `streams` is answered without end."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        doors: Sequence[Door],
        hosts: Collection[str],
        metrics: Metrics,
        streams: Collection[str] = (),
    ) -> None:
        self._app = app
        self._streams = frozenset(streams)
        self._held: dict[Quota, Counter[Session]] = {quota: Counter() for quota in (REQUESTS, STREAMS)}
        self._turns: dict[Session, Semaphore] = defaultdict(lambda: Semaphore(COSTLY_AT_ONCE))
        self._doors = doors
        self._hosts = frozenset(host.casefold() for host in hosts)
        self._metrics = metrics
        self._limiter = CapacityLimiter(_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": faults.NO_WEBSOCKET})
        elif scope["type"] != "http":
            await self._app(scope, receive, send)
        else:
            door = next(door for door in self._doors if door.owns(scope["path"]))
            request = _Request(scope, receive, send, self._metrics, door, self._limiter)
            await request.answer(self._within_quota, self._hosts)

    async def _within_quota(self, scope: Scope, receive: Receive, send: Send) -> None:
        session: Session | None = scope.get("state", {}).get("session")
        if session is None:
            await self._app(scope, receive, send)
            return
        is_stream = scope["method"] == "GET" and scope["path"] in self._streams
        quota, refusal = (STREAMS, faults.STREAMS_FULL) if is_stream else (REQUESTS, faults.TOO_MANY_REQUESTS)
        held = self._held[quota]
        if not quota.allows(session, held):
            raise _Refused(refusal)
        scope["state"]["place"] = place = Place(session, held, self._turns[session])
        with place:
            await self._app(scope, receive, send)


class _Request:
    """One request on its way through."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, metrics: Metrics, door: Door, limiter: CapacityLimiter
    ) -> None:
        self._scope = scope
        self._limiter = limiter
        self._door = door
        self._outer_receive = receive
        self._outer_send = send
        self._metrics = metrics
        self._received = 0
        self._is_whole = not has_body(Headers(scope=scope))
        self._is_open = door.is_open(scope["path"])
        self._largest_body = LARGEST_OPEN_BODY if self._is_open else LARGEST_BODY
        self._body_until = 0.0
        self._status = 0
        self._asking: Session | None = None

    async def answer(self, app: ASGIApp, hosts: Collection[str]) -> None:
        begun = time.perf_counter()
        try:
            fault = refusal_of(self._scope, hosts, self._largest_body) or await self._identify()
            fault = fault or self._door.content_refusal_of(self._scope)
            if fault is None:
                await app(self._scope, self._receive, self._send)
            else:
                await self._refuse(fault)
        except _Refused as refused:
            await self._refuse(refused.fault)
        except ClientDisconnect:
            pass
        except Exception:  # the edge: whatever went wrong is logged whole, and answered as JSON, never as a trace
            _trouble.exception("%s %s failed", self._scope["method"], _path(self._scope))
            await self._refuse(faults.FAULT_OF_OURS)
        finally:
            self._tell(time.perf_counter() - begun)

    async def _identify(self) -> Fault | None:
        if self._is_open:
            return None
        proof = self._door.proof_in(self._scope)
        try:
            self._asking = await to_thread.run_sync(self._door.session_of, proof, limiter=self._limiter)
        except NotebookError as error:
            _trouble.error("%s", error)
            return faults.TOKENS_UNUSABLE
        if self._asking is None:
            return faults.NO_TOKEN
        state = self._scope.setdefault("state", {})
        state["session"] = self._asking
        state["is_current"] = lambda: self._is_current(proof)
        return None

    def _is_current(self, proof: str) -> bool:
        try:
            return self._door.session_of(proof) == self._asking
        except NotebookError:
            return False

    async def _refuse(self, fault: Fault) -> None:
        """Answer in place of the app, unless it has begun to."""
        if self._status:
            return
        await self._door.refusal(self._scope, fault)(self._scope, self._outer_receive, self._send)

    async def _receive(self) -> Message:
        if self._is_whole:
            return await self._outer_receive()
        self._body_until = self._body_until or current_time() + BODY_SECONDS
        try:
            with fail_after(self._body_until - current_time()):
                message = await self._outer_receive()
        except TimeoutError:
            raise _Refused(faults.BODY_TOO_SLOW) from None
        self._received += len(message.get("body", b""))
        if self._received > self._largest_body:
            raise _Refused(faults.BODY_TOO_LARGE)
        self._is_whole = not message.get("more_body")
        return message

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _SECURITY.items():
                headers.setdefault(name, value)
            if not self._is_whole:
                headers["Connection"] = "close"  # what is left of the body is not waited for
            if not self._is_open:  # what only some may see, nobody keeps
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


def refusal_of(scope: Scope, hosts: Collection[str], largest_body: int) -> Fault | None:
    """Why a request is refused by its head alone, whoever sent it. Pure."""
    headers = Headers(scope=scope)
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > LONGEST_TARGET:
        return faults.TARGET_TOO_LONG
    if sum(len(name) + len(value) for name, value in scope["headers"]) > LARGEST_HEADERS:
        return faults.HEADERS_TOO_LARGE
    host = headers.getlist("host")
    if len(host) != 1 or not (host_name(host[0]) in hosts or is_local(host_name(host[0]))):
        return faults.FOREIGN_HOST
    if not is_own_origin(headers.getlist("origin"), host[0]) or headers.get("sec-fetch-site") in _FOREIGN_SITES:
        return faults.FOREIGN_ORIGIN
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > largest_body:
        return faults.BODY_TOO_LARGE
    return None


_FOREIGN_SITES = frozenset({"cross-site", "same-site"})


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


class _Refused(HTTPException):
    """A refusal that only the body or the quota decides. The framework answers it where it meets it first."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.status)
        self.fault = fault


def _path(scope: Scope) -> str:
    """As it came, percent-encoded: nothing in it ends a line of the log."""
    return (scope.get("raw_path") or b"").decode("ascii", "backslashreplace") or "/"
