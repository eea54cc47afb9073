"""The event log as server-sent events: one reader of the log for any number of streams.

A stream that falls behind is ended rather than kept waiting in memory; its client comes again with the id of the last
event it had, and misses nothing that the log still has.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

from anyio import CapacityLimiter, to_thread

from notebook_sync.events import Event, Events
from notebook_sync.surfaces.http.metrics import Metrics

_MOST_WAITING = 1000
_THREADS = 4
_POLL_SECONDS = 0.1


class Streams:
    """The open streams of one server. For one event loop.

    `limiter` is for what they wait for: requests that keep every other thread busy do not hold up the streams.
    """

    def __init__(self, events: Events, metrics: Metrics) -> None:
        self._events = events
        self._metrics = metrics
        self._waiting: set[asyncio.Queue[Event | None]] = set()
        self._ended = False
        self.limiter = CapacityLimiter(_THREADS)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow the log meanwhile."""
        reading = asyncio.create_task(self._read())
        try:
            yield
        finally:
            self.end()
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading

    def end(self) -> None:
        """End every stream after what it has; no other one begins."""
        self._ended = True
        for queue in list(self._waiting):
            self._end(queue)

    async def follow(self, since: str, seconds: float | None) -> AsyncIterator[Event | None]:
        """The events after the one with the id `since`, "" for those from now on, until `end`; with `seconds`, None
        whenever nothing happened for so long."""
        queue: asyncio.Queue[Event | None] = asyncio.Queue(_MOST_WAITING)
        if self._ended:
            return
        self._waiting.add(queue)
        self._metrics.streams.set(len(self._waiting))
        try:
            missed = (
                await to_thread.run_sync(self._events.read, since, sys.maxsize, limiter=self.limiter) if since else []
            )
            for event in missed:
                yield event
            known = {event["id"] for event in missed}
            while True:
                try:
                    event_or_end = await asyncio.wait_for(queue.get(), seconds)
                except TimeoutError:
                    yield None
                    continue
                if event_or_end is None:
                    return
                if event_or_end["id"] not in known:
                    yield event_or_end
        finally:
            self._waiting.discard(queue)
            self._metrics.streams.set(len(self._waiting))

    async def _read(self) -> None:
        tail = await to_thread.run_sync(self._events.tail, limiter=self.limiter)
        with contextlib.closing(tail):
            while True:
                with contextlib.suppress(OSError):  # looked at again in a moment
                    for event in await to_thread.run_sync(tail.new, limiter=self.limiter):
                        self._tell(event)
                await asyncio.sleep(_POLL_SECONDS)

    def _tell(self, event: Event) -> None:
        for queue in list(self._waiting):
            try:
                queue.put_nowait(event)
            except asyncio.QueueFull:
                self._end(queue)

    def _end(self, queue: asyncio.Queue[Event | None]) -> None:
        self._waiting.discard(queue)
        while queue.full():  # nothing may follow what it did not get
            queue.get_nowait()
        queue.put_nowait(None)
