"""Server-sent events, and numbers for Prometheus. Labels are bounded: never a path or a name of a note."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from http import HTTPMethod

import anyio
import msgspec
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from sse_starlette import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response

from notebook_sync.errors import NotebookError, NotPermitted
from notebook_sync.notebook import Notebook
from notebook_sync.registry import REFUSAL, as_json
from notebook_sync.services.core import Core
from notebook_sync.services.view import View
from notebook_sync.sessions import Session
from notebook_sync.store.rows import Is, Row

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_METHODS = frozenset(HTTPMethod)
_POLL_SECONDS = 0.2
_PING_SECONDS = 15
_SLOW_SECONDS = 30.0
_PAGE = 1000
_COMMON = ("id", "at", "kind", "session", "agent", "path")


def sent_as_events(events: AsyncIterator[dict[str, str]]) -> Response:
    """An answer without end; a client that takes nothing for long is dropped."""
    return EventSourceResponse(events, ping=_PING_SECONDS, send_timeout=_SLOW_SECONDS)


async def stream_events(core: Core, request: Request) -> Response:
    """The event log as server-sent events: those that the session may see, as they are recorded, until the client
    leaves or its token ends. A client that comes back with Last-Event-ID misses nothing."""
    session: Session = request.state.session
    if session.kind == "external":
        raise NotPermitted("Events are not available in this conversation")
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    return sent_as_events(_events(core, session, request.headers.get("last-event-id", ""), request.state.is_current))


async def _events(
    core: Core, session: Session, last: str, is_current: Callable[[], bool]
) -> AsyncIterator[dict[str, str]]:
    newest = await anyio.to_thread.run_sync(core.events.newest)
    since, version = min(last, newest) if last else newest, -1
    yield {"comment": "ready"}  # events from now on are sent
    while True:
        before, version = version, await anyio.to_thread.run_sync(core.index.version)
        rows = await anyio.to_thread.run_sync(_after, core, since) if version != before else []
        for row in rows:
            since = row["id"]
            if not await anyio.to_thread.run_sync(_may_see, core, session, row):
                continue
            if not await anyio.to_thread.run_sync(is_current):
                return
            event = {**(row["fields"] or {}), **{name: row[name] for name in _COMMON}}
            yield {"id": since, "event": row["kind"], "data": msgspec.json.encode(as_json(event)).decode()}
        if len(rows) == _PAGE:
            version = -1
        await anyio.sleep(_POLL_SECONDS)


def _after(core: Core, since: str) -> list[Row]:
    return core.index.events.find(Is("id", ">", since), order=("id",), limit=_PAGE)


def _may_see(core: Core, session: Session, row: Row) -> bool:
    """The owner sees all; an agent its own events and edits, where it may read the notes that they name whole."""
    if session.kind == "owner":
        return True
    view, fields = View(core, session), row["fields"] or {}
    paths = filter(None, (row["path"], fields.get("moved_from"), fields.get("moved_to")))
    may_read = all(view.may("read", path) and not view.sees_in_part(path) for path in paths)
    is_own = bool(session.agent) and row["agent"] == session.agent and row["session"] == session.kind
    return may_read and (is_own or (row["kind"] == "edit" and bool(row["path"])))


class Metrics:
    """What the server was asked, and how the notebook is at the moment of the scrape."""

    def __init__(self, notebook: Notebook) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "notebook_http_requests", "Requests answered", ("method", "route", "status"), registry=registry
        )
        self._seconds = Histogram(
            "notebook_http_request_seconds",
            "Time until an answer was sent",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._notebook = notebook

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer; `route` is the path of the route as it is declared, "" for none."""
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route or "none", str(status)).inc()
        self._seconds.labels(route or "none").observe(seconds)

    async def answer(self, request: Request) -> Response:
        """The numbers in Prometheus' text format, for the owner."""
        if request.state.session.kind != "owner":
            raise NotPermitted(REFUSAL)
        text = await anyio.to_thread.run_sync(self._text)
        return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    def _text(self) -> str:
        """Without the numbers of the notebook while its index cannot be asked."""
        try:
            numbers = self._notebook.admin.numbers()
        except NotebookError:
            numbers = {}
        gauges = (
            f"# HELP notebook_{name} {help_text}\n# TYPE notebook_{name} gauge\nnotebook_{name} {value}\n"
            for name, (help_text, value) in numbers.items()
        )
        return generate_latest(self._registry).decode() + "".join(gauges)
