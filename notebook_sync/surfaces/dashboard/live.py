"""What happens in the notebook, told to open pages as server-sent events: what kind and where, never what is said."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Final

from anyio import to_thread
from fastapi import Header, Request
from fastapi.responses import EventSourceResponse
from fastapi.sse import ServerSentEvent

from notebook_sync.surfaces.dashboard.asking import pages_router
from notebook_sync.surfaces.http.events import Streams

pages = pages_router()
PATH: Final = "/live"
_RETRY_MS = 1_000
# How soon a page learns that its cookie counts no more, and the server that nobody reads a stream.
_BEAT_SECONDS = 3.0


@pages.get(PATH, response_class=EventSourceResponse)
async def live(
    request: Request, last_event_id: Annotated[str, Header(max_length=64)] = ""
) -> AsyncIterator[ServerSentEvent]:
    """Each event from now on, or since `Last-Event-ID`, while the cookie counts."""
    streams: Streams = request.app.state.streams
    yield ServerSentEvent(comment="following", retry=_RETRY_MS)
    async for event in streams.follow(last_event_id, _BEAT_SECONDS):
        if not await to_thread.run_sync(request.state.is_current, limiter=streams.limiter):
            return
        if event is None:
            yield ServerSentEvent(comment="nothing happened")
            continue
        told = {"kind": event["kind"], "path": event.get("path", ""), "agent": event["agent"]}
        yield ServerSentEvent(data=told, id=event["id"])
