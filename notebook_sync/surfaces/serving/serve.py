"""`serve` as a process: the HTTP API and MCP by uvicorn, the watch beside them, and an end within seconds of being
asked."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from notebook_sync.errors import UsageError
from notebook_sync.folder import FOLDER
from notebook_sync.logins import EVERYWHERE, LARGEST_PORT, Logins, in_url, is_local, url_of
from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.beside.embedding_thread import embedding_beside
from notebook_sync.surfaces.beside.following import Following
from notebook_sync.surfaces.beside.prefetching_process import prefetching
from notebook_sync.surfaces.http.errors import Answer, Fault
from notebook_sync.surfaces.http.events import Streams
from notebook_sync.surfaces.http.guard import LARGEST_HEADERS, LONGEST_TARGET
from notebook_sync.surfaces.mcp.http import mcp_app
from notebook_sync.surfaces.serving.app import http_app
from notebook_sync.tokens import Tokens

# What requests, streams and the watch still have, once the server is to end.
_GRACE_SECONDS = 2
# Further ones take the place of the oldest that answers nobody who is known.
MOST_CONNECTIONS = 256
_INCOMPLETE_BYTES = LARGEST_HEADERS + LONGEST_TARGET + (8 << 10)
_MALFORMED = Fault(400, "malformed", "that is no HTTP/1.1 request", "send a well-formed request with smaller headers")
_log = logging.getLogger(__name__)


def serve(notebook: Notebook, *, host: str, port: int, watch: bool, say: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. `say` is given the line that tells it is ready, and on a terminal the link to the
    dashboard. Raises UsageError for an address that cannot be listened at."""
    names = () if is_local(in_url(host)) or host in EVERYWHERE else (in_url(host),)
    if not is_local(in_url(host)):
        _log.warning("%s can be reached from other machines: tokens and notes pass there unencrypted", host)
    app = http_app(notebook, hosts=names, beside=[mcp_app(notebook, Tokens(notebook.root / FOLDER))])
    with _listening(host, port) as listener, embedding_beside(notebook) as embed, prefetching(notebook) as saved:

        def changed(paths: Collection[str]) -> None:
            embed()
            saved(paths)

        following = Following(notebook, watch=watch, changed=changed)
        bound = listener.getsockname()[1]

        def ready() -> None:
            say(f"serving on {url_of(host, bound)} ({following.state})")
            if sys.stdout.isatty():  # a link that lets in is for who looks at it, not for a log
                logins: Logins = app.state.logins
                say(f"dashboard: {logins.link(host, bound)} (good once, for ten minutes)")

        server = _Server(app, ready)
        with _ended_by_signals(server), following.running():
            server.run(sockets=[listener])


def leave() -> None:
    """End the process though a request is still at work, as a long reconcile: it may be broken off anywhere."""
    end = time.monotonic() + _GRACE_SECONDS
    at_work = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    for thread in at_work:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in at_work):
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


def config_of(app: ASGIApp) -> uvicorn.Config:
    """Everything that uvicorn would otherwise take from what happens to be installed or set."""
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=_Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,  # ours has no query in it
        proxy_headers=False,  # anybody may send X-Forwarded-For
        server_header=False,
        h11_max_incomplete_event_size=_INCOMPLETE_BYTES,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


class _Server(uvicorn.Server):
    """Uvicorn, which says when it is ready, and ends the streams before it ends."""

    def __init__(self, app: FastAPI, ready: Callable[[], None]) -> None:
        super().__init__(config_of(app))
        self._streams: Streams = app.state.streams
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # `serve` has them, from before the server runs until after

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._streams.end()  # else it would wait for them
        await super().shutdown(sockets)


class _Protocol(H11Protocol):
    """Of a request's head, the first byte and the last may be no further apart than two requests may. Connections have
    a limit, and those without a proof cannot keep others out."""

    connections: set[_Protocol]  # type: ignore[assignment]  # all of one class
    _late: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._since = self.loop.time()
        self._await_head()
        if len(self.connections) > MOST_CONNECTIONS:
            idle = (each for each in self.connections if not (each.transport.is_closing() or each.answers_somebody))
            min(idle, key=lambda each: each._since, default=self).transport.abort()

    @property
    def answers_somebody(self) -> bool:
        """Whether a request is under way of a session that has proved who it is."""
        return bool(self.cycle and not self.cycle.response_complete and "session" in self.scope["state"])

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._late is not None:
            self._late.cancel()

    def _await_head(self) -> None:
        if self._late is not None and self.conn.their_state is not h11.IDLE:
            self._late.cancel()
            self._late = None
        elif self._late is None and self.conn.their_state is h11.IDLE:
            self._late = self.loop.call_later(self.timeout_keep_alive, self.transport.close)

    def send_400_response(self, msg: str) -> None:
        """Also to what cannot be read as HTTP, the answer is JSON."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = bytes(Answer(_MALFORMED.body()).body)
            headers = [
                ("content-type", "application/json"),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


@contextlib.contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """Asked once, the server ends in order; asked twice, the process ends at once."""

    def ask(number: int, _: object) -> None:
        signal.signal(number, before[number])
        server.should_exit = True

    before: dict[int, Any] = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    if port > LARGEST_PORT:  # which the system would take for another port
        raise UsageError(f"there is no port {port}; choose one up to {LARGEST_PORT:,}, or 0 for a free one")
    listener: socket.socket | None = None
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise UsageError(
            f"cannot listen at {host}, port {port}: {error.strerror}; choose another --port, or 0 for a free one"
        ) from None
    with listener:
        yield listener
