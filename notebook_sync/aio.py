"""The notebook for asyncio programs: the same services and calls, each run in a worker thread."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from notebook_sync.notebook import Notebook
from notebook_sync.registry import Service

if TYPE_CHECKING:
    from notebook_sync.sync.watch import WatchEvent

_READING = ("prompt", "search", "read")
# Methods of services that yield until their argument `stop` is set.
_REPORTING = ("watch", "follow_events")
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
            return _AsyncService(found, self)
        return self._awaited(found, is_read=name in _READING) if callable(found) else found

    def watch(self) -> AsyncIterator[WatchEvent]:
        """Follow the files until the iterator or the notebook is closed. Raises FollowLocked."""
        events: AsyncIterator[WatchEvent] = self.admin.watch()
        return events

    async def close(self) -> None:
        """Wait for the calls that have started, end a watch, close files and connections."""
        for stop in self._stops:
            stop.set()
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self.notebook.close)

    async def _reported(self, method: Callable[..., Iterator[Any]], *args: Any) -> AsyncIterator[Any]:
        """What `method` yields in a thread of its own, until this iterator is closed or its stop is set."""
        loop, stop = asyncio.get_running_loop(), threading.Event()
        waiting: asyncio.Queue[tuple[Any, ...]] = asyncio.Queue()

        def follow() -> None:
            try:
                for each in method(*args, stop=stop):
                    loop.call_soon_threadsafe(waiting.put_nowait, (each,))
            finally:
                loop.call_soon_threadsafe(waiting.put_nowait, ())

        self._stops.add(stop)
        following = asyncio.wrap_future(self._threads.submit(follow))
        try:
            while found := await waiting.get():
                yield found[0]
            await following  # raises what the method raised
        finally:
            stop.set()
            self._stops.discard(stop)
            await _end_of(following)

    def _awaited(self, method: Callable[..., Any], *, is_read: bool) -> Callable[..., Awaitable[Any]]:
        """`method`, run in a thread and awaited."""

        @functools.wraps(method)
        async def run(*args: Any, **kwargs: Any) -> Any:
            job = self._threads.submit(method, *args, **kwargs)
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

    async def __aenter__(self) -> AsyncNotebook:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


class _AsyncService:
    """One service, its methods awaited; those that report without end are asynchronous iterators."""

    def __init__(self, service: Service, notebook: AsyncNotebook) -> None:
        self._service, self._notebook = service, notebook

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._service, name)
        if name in _REPORTING:
            return functools.partial(self._notebook._reported, method)
        declared = getattr(method, "declared", None)
        is_read = declared is None or declared.effect == "read"
        return self._notebook._awaited(method, is_read=is_read) if callable(method) else method


async def _end_of(running: asyncio.Future[Any]) -> None:
    """Wait for the end, however often the waiting is cancelled."""
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            continue
