"""The notebook for asyncio programs: the same services and calls, each run in a worker thread."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from notebook_sync.notebook import Notebook
from notebook_sync.registry import Service

if TYPE_CHECKING:
    from notebook_sync.sync.watch import WatchEvent

_READING = ("prompt", "search", "read")
_THREADS = 8


class AsyncNotebook:
    """A notebook whose operations are awaited: `await nb.notes.read("pages/plan")`, `await nb.search("ferry")`.

    A cancelled read is abandoned; a write that has started finishes before the cancellation is passed on. At most
    `threads` calls run at once, a watch included; one that is cancelled while it waits for a thread never starts.
    """

    def __init__(self, notebook: Notebook, *, threads: int = _THREADS) -> None:
        self.notebook = notebook
        self._threads = ThreadPoolExecutor(threads, "notebook-sync")
        self._stops: set[threading.Event] = set()

    @classmethod
    async def open(cls, path: str | Path = ".", *, threads: int = _THREADS) -> AsyncNotebook:
        """The notebook at `path`; see `Notebook.open`."""
        return cls(await asyncio.to_thread(Notebook.open, path), threads=threads)

    @classmethod
    async def find(cls, start: str | Path = ".", *, adopt: bool = False) -> AsyncNotebook:
        """The notebook that `start` is in; see `Notebook.find`."""
        return cls(await asyncio.to_thread(Notebook.find, start, adopt=adopt))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.notebook, name)
        if isinstance(found, Service):
            return _AsyncService(found, self._threads)
        return _awaited(self._threads, found, is_read=name in _READING) if callable(found) else found

    async def watch(self) -> AsyncIterator[WatchEvent]:
        """Follow the files until the iterator or the notebook is closed. Raises FollowLocked."""
        loop, stop = asyncio.get_running_loop(), threading.Event()
        events: asyncio.Queue[WatchEvent | None] = asyncio.Queue()

        def follow() -> None:
            try:
                for event in self.notebook.admin.watch(stop=stop):
                    loop.call_soon_threadsafe(events.put_nowait, event)
            finally:
                loop.call_soon_threadsafe(events.put_nowait, None)

        self._stops.add(stop)
        following = asyncio.wrap_future(self._threads.submit(follow))
        try:
            while (event := await events.get()) is not None:
                yield event
            await following  # raises what the watch raised
        finally:
            stop.set()
            self._stops.discard(stop)
            await _end_of(following)

    async def close(self) -> None:
        """Wait for the calls that have started, end a watch, close files and connections."""
        for stop in self._stops:
            stop.set()
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self.notebook.close)

    async def __aenter__(self) -> AsyncNotebook:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


class _AsyncService:
    """One service, its methods awaited."""

    def __init__(self, service: Service, threads: ThreadPoolExecutor) -> None:
        self._service = service
        self._threads = threads

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._service, name)
        declared = getattr(method, "declared", None)
        is_read = declared is None or declared.effect == "read"
        return _awaited(self._threads, method, is_read=is_read) if callable(method) else method


def _awaited(
    threads: ThreadPoolExecutor, method: Callable[..., Any], *, is_read: bool
) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(method)
    async def run(*args: Any, **kwargs: Any) -> Any:
        job = threads.submit(method, *args, **kwargs)
        running = asyncio.wrap_future(job)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if job.cancel() or is_read:
                running.cancel()  # nobody waits for its result, not even a closed loop
            else:
                await _end_of(running)
            raise

    return run


async def _end_of(running: asyncio.Future[Any]) -> None:
    """Wait for the end, however often the waiting is cancelled."""
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            continue
