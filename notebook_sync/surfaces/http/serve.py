"""`serve`: the HTTP application on a port of this machine, and the work that goes on meanwhile."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
import sys
import threading
import time

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.background import following, stopped_by_signals
from notebook_sync.surfaces.http.app import API, asgi

HEAD_SECONDS = 10
_END_SECONDS = 5
_DESCRIPTORS = 4096
_LONGEST_HEAD = 24 << 10
_BACKLOG = 2048
_LARGEST_PORT = 65_535
_ADVICE = "choose another --port, or 0 for a free one"


def serve(
    notebook: Notebook,
    *,
    host: str = "",
    port: int | None = None,
    watch: bool = True,
    dashboard: bool = True,
    public_url: str = "",
) -> int:
    """Serve until SIGINT or SIGTERM. Raises UsageError for a port or a public URL that cannot be used."""
    settings = notebook.settings.server
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("notebook_sync").setLevel(logging.INFO)
    _raise_descriptors()
    with _listening(host or settings.host, settings.port if port is None else port) as listener:
        name, bound = listener.getsockname()[:2]
        app = asgi(notebook, allowed_hosts=[host or settings.host], dashboard=dashboard, public_url=public_url)
        server = uvicorn.Server(config_of(app))
        shown = f"[{name}]" if ":" in name else name
        print(f"serving http://{shown}:{bound}{API} (Ctrl-C stops it)", flush=True)  # noqa: T201 - for its user
        if dashboard:
            print(_dashboard_line(notebook, bound), flush=True)  # noqa: T201 - for its user
        # While the server runs, the signals are uvicorn's, which repeats them afterwards.
        with stopped_by_signals(lambda: setattr(server, "should_exit", True)), following(notebook, is_on=watch):
            server.run(sockets=[listener])
    _leave()
    return 0


def _dashboard_line(notebook: Notebook, port: int) -> str:
    """How its user logs in to the dashboard. Where no link can be made, who has a cookie still gets in."""
    if not sys.stdout.isatty():  # a log, which holds no secret
        return f"dashboard: for a link that logs in, run: notebook-sync token link --port {port}"
    try:
        return f"dashboard {notebook.admin.login_link(port)} (counts once, for 10 minutes)"
    except NotebookError as error:
        return f"no login link for the dashboard: {error}"


def config_of(app: ASGIApp) -> uvicorn.Config:
    """How the application is served, whatever else is installed or set."""
    return uvicorn.Config(
        app,
        loop="asyncio",
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=HEAD_SECONDS,
        timeout_graceful_shutdown=_END_SECONDS,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
    )


class _Protocol(H11Protocol):
    """HTTP/1.1, closing a connection whose next request does not begin and arrive with all its headers in time."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._late is not None:
            self._late.cancel()

    def _await_head(self) -> None:
        is_waiting = self.conn.their_state is h11.IDLE
        if self._late is not None and not is_waiting:
            self._late.cancel()
            self._late = None
        elif self._late is None and is_waiting:
            self._late = self.loop.call_later(HEAD_SECONDS, self.transport.close)


def _listening(host: str, port: int) -> socket.socket:
    """A socket for a host and a port; who connects from now on is answered once the server has started."""
    if not 0 <= port <= _LARGEST_PORT:
        raise UsageError(f"there is no port {port}", next=_ADVICE)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise UsageError(f"cannot listen at {host}, port {port}: {error}", next=_ADVICE) from None


def _raise_descriptors() -> None:
    """Half-open clients hold descriptors: allow more of them than the usual 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _leave() -> None:
    """End the process although a worker thread is still busy: what it writes is complete or was not begun."""
    busy = [each for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]
    end = time.monotonic() + _END_SECONDS
    for thread in busy:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in busy):
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)
