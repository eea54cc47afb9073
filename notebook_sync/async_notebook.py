"""The notebook for asyncio hosts: each method of `Notebook`, to be awaited. The work is done in threads of its own, so
that the event loop never waits for a disk or a server. Nothing is decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

import anyio
from anyio import to_thread

from notebook_sync.errors import BackendDown, NotebookError
from notebook_sync.notebook import Notebook
from notebook_sync.operations.registry import OPERATIONS, Service

if TYPE_CHECKING:
    from notebook_sync.settings import Settings
    from notebook_sync.sync.watch import Event, Watch

# More would only wait for one another: for the disk, for SQLite's one writer, for a connection.
_THREADS = 16
# Longer than a store is waited for by default, so that a read which was given up has ended before stores are closed.
_CLOSING_SECONDS = 10.0

_Asked = ParamSpec("_Asked")
_Told = TypeVar("_Told")


def _awaited(
    method: Callable[Concatenate[Notebook, _Asked], _Told], *, given_up: bool
) -> Callable[Concatenate[AsyncNotebook, _Asked], Coroutine[Any, Any, _Told]]:
    @functools.wraps(method)
    async def ask(notebook: AsyncNotebook, /, *args: _Asked.args, **kwargs: _Asked.kwargs) -> _Told:
        return await notebook._in_thread(
            functools.partial(method, notebook.notebook, *args, **kwargs), given_up=given_up
        )

    return ask


def _reads(
    method: Callable[Concatenate[Notebook, _Asked], _Told],
) -> Callable[Concatenate[AsyncNotebook, _Asked], Coroutine[Any, Any, _Told]]:
    """Who cancels such a call no longer waits for it: what it does may be done at any time, and twice."""
    return _awaited(method, given_up=True)


def _writes(
    method: Callable[Concatenate[Notebook, _Asked], _Told],
) -> Callable[Concatenate[AsyncNotebook, _Asked], Coroutine[Any, Any, _Told]]:
    """A call that is cancelled once it has begun comes to its end first: nobody is left to guess whether it did."""
    return _awaited(method, given_up=False)


def _made(make: Callable[_Asked, _Told]) -> Callable[_Asked, Coroutine[Any, Any, _Told]]:
    """What needs no open notebook."""

    @functools.wraps(make)
    async def ask(*args: _Asked.args, **kwargs: _Asked.kwargs) -> _Told:
        return await to_thread.run_sync(functools.partial(make, *args, **kwargs))

    return ask


def _service(name: str) -> property:
    """A service of the notebook, each operation to be awaited."""
    return property(lambda notebook: AsyncService(notebook, getattr(notebook.notebook, name)))


class AsyncNotebook:
    """An open notebook, for any number of tasks of one event loop; as many processes as like may share its folder and
    its servers. Close it, or have it from `opened`:

        async with AsyncNotebook.opened("~/notebook") as notebook:
            found = await notebook.search("small")

    `notebook` is the one that its threads use, for what needs no thread, as `settings`.
    """

    def __init__(self, notebook: Notebook, *, threads: int = _THREADS) -> None:
        self.notebook = notebook
        self._limiter = anyio.CapacityLimiter(threads)
        self._reading: set[asyncio.Future[Any]] = set()
        self._writing: set[asyncio.Future[Any]] = set()
        self._followed: set[_Followed] = set()

    @classmethod
    async def open(cls, path: str | Path, *, threads: int = _THREADS) -> AsyncNotebook:
        """The notebook at `path`, of which at most `threads` calls are carried out at once. As `Notebook.open`."""
        return cls(await to_thread.run_sync(Notebook.open, path), threads=threads)

    @classmethod
    async def find(cls, start: Path, *, threads: int = _THREADS) -> AsyncNotebook:
        """The notebook whose notebook.toml is nearest, in `start` or above it. Raises NotANotebook."""
        return cls(await to_thread.run_sync(Notebook.find, start), threads=threads)

    @classmethod
    @contextlib.asynccontextmanager
    async def opened(cls, path: str | Path, *, threads: int = _THREADS) -> AsyncIterator[AsyncNotebook]:
        """The notebook at `path`, its stores opened and their indexes made, and closed at the end.

        A server that does not answer keeps no host from starting: files and prompts need none, and the indexes are
        made once it does. Raises as `open`.
        """
        async with await cls.open(path, threads=threads) as notebook:
            await notebook._in_thread(functools.partial(_open_stores, notebook.notebook))
            yield notebook

    async def __aenter__(self) -> AsyncNotebook:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End what is followed, let what was begun end, and release what was opened. Twice is allowed.

        A write comes to its end however long it takes; a read is waited for no longer than a store is.
        """
        for followed in list(self._followed):
            followed.stop()
        with anyio.CancelScope(shield=True):  # a host that is cancelled closes all the same
            for followed in list(self._followed):
                await followed.close()
            while self._writing:
                await asyncio.wait(self._writing)
            if self._reading:
                await asyncio.wait(self._reading, timeout=_CLOSING_SECONDS)
            await to_thread.run_sync(self.notebook.close, limiter=anyio.CapacityLimiter(1))

    @property
    def root(self) -> Path:
        """The notebook's folder."""
        return self.notebook.root

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.notebook.settings

    init = staticmethod(_made(Notebook.init))
    import_archive = staticmethod(_made(Notebook.import_archive))

    # Files → mirror → refs.

    sync = _reads(Notebook.sync)

    async def watch(self) -> AsyncGenerator[Event, None]:
        """What happens to the files, as it reaches mirror and refs, until who iterates is cancelled or stops; the watch
        is over then, or at the latest when the notebook is closed. Raises WatchLocked, as `Watch.events`."""
        followed = _Followed(await self._in_thread(self.notebook.watch))
        self._followed.add(followed)
        try:
            while (event := await followed.next()) is not None:
                yield event
        finally:
            followed.stop()
            self._followed.discard(followed)
            with anyio.CancelScope(shield=True):
                await followed.close()

    # Reading.

    find_path = _reads(Notebook.find_path)
    read = _reads(Notebook.read)
    section = _reads(Notebook.section)
    list = _reads(Notebook.list)
    linking_to = _reads(Notebook.linking_to)
    broken_links = _reads(Notebook.broken_links)
    shelf = _reads(Notebook.shelf)
    search = _reads(Notebook.search)
    search_report = _reads(Notebook.search_report)

    # Editing, and what was edited.

    edit = _writes(Notebook.edit)
    edit_all = _writes(Notebook.edit_all)
    files = _reads(Notebook.files)
    file = _reads(Notebook.file)
    delete = _writes(Notebook.delete)
    rename = _writes(Notebook.rename)
    undo = _writes(Notebook.undo)
    history = _reads(Notebook.history)
    diff = _reads(Notebook.diff)
    version = _reads(Notebook.version)
    refuse = _writes(Notebook.refuse)

    # What agents do beside that.

    create = _writes(Notebook.create)
    update = _writes(Notebook.update)
    do_chores = _writes(Notebook.do_chores)

    # The services.

    services = ("admin", "prompts", "facts", "memories", "context", "stream", "channels")
    admin, prompts, facts, memories, context, stream, channels = map(_service, services)

    # The prompt.

    prompt = _reads(Notebook.prompt)

    # Looking after the notebook.

    async def _in_thread(self, work: Callable[[], _Told], *, given_up: bool = True) -> _Told:
        call = _Call(work)
        task = asyncio.ensure_future(to_thread.run_sync(call, limiter=self._limiter))
        under_way = self._reading if given_up else self._writing
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        task.add_done_callback(_heard)
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            if call.is_taken_back():
                task.cancel()
            elif not given_up:
                await _ended(task)
            raise
        return task.result()


class AsyncService:
    """A service of a notebook, each method to be awaited. What is no operation counts as a write."""

    def __init__(self, notebook: AsyncNotebook, service: Service) -> None:
        self._notebook = notebook
        self._service = service

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        method = getattr(self._service, name)
        declared = getattr(method, "declared", None)
        reads = declared is not None and OPERATIONS[declared["words"]].effect == "read"

        @functools.wraps(method)
        async def ask(*args: Any, **kwargs: Any) -> Any:
            return await self._notebook._in_thread(functools.partial(method, *args, **kwargs), given_up=reads)

        return ask


class _Call(Generic[_Told]):
    """Work that a thread begins, or that is taken back before one does."""

    def __init__(self, work: Callable[[], _Told]) -> None:
        self._work = work
        self._decided = threading.Lock()

    def __call__(self) -> _Told:
        if not self._decided.acquire(blocking=False):
            raise NotebookError("this call was taken back before it began")
        return self._work()

    def is_taken_back(self) -> bool:
        """Whether no thread has begun it; none will then."""
        return self._decided.acquire(blocking=False)


def _heard(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()  # of a call that was given up, nobody else asks for it, which asyncio would complain of


async def _ended(task: asyncio.Future[Any]) -> None:
    """Return when the task is done, whoever cancels the one that waits."""
    with anyio.CancelScope(shield=True):  # of anyio; asyncio's own knows no shield, only exceptions
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])


class _Followed:
    """A watch whose events are had one at a time, each from a thread."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._events = watch.events()
        # Held while the generator runs, which a cancelled `next` leaves running: it may not be closed meanwhile.
        self._running = threading.Lock()
        # One for `next`, one for `close`, which waits for it.
        self._limiter = anyio.CapacityLimiter(2)

    async def next(self) -> Event | None:
        """The next event; None when there are no more."""
        return await to_thread.run_sync(self._next, abandon_on_cancel=True, limiter=self._limiter)

    def stop(self) -> None:
        """Let the watch come to its end."""
        self._watch.stop()

    async def close(self) -> None:
        """Return when it has. Twice is allowed."""
        await to_thread.run_sync(self._close, limiter=self._limiter)

    def _next(self) -> Event | None:
        with self._running:
            return next(self._events, None)

    def _close(self) -> None:
        with self._running:
            self._events.close()


def _open_stores(notebook: Notebook) -> None:
    with contextlib.suppress(BackendDown):
        notebook.mirror.store_id()
    with contextlib.suppress(BackendDown):
        notebook.refs.owner()
