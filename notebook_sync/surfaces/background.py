"""What servers do in threads: following the files, and blocking work; and how they are stopped by a signal."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio

from notebook_sync.errors import FollowLocked, NotebookError
from notebook_sync.files.locks import FollowLock
from notebook_sync.notebook import Notebook

_Result = TypeVar("_Result")
_WRITERS = 4
_RETRY_SECONDS = 5.0
_END_SECONDS = 5.0
_LOOKING = "the notes are still being looked through, so results may be incomplete"
_log = logging.getLogger("notebook_sync.follow")


class Threads:
    """The worker threads of one server. Writers wait for each other's lock, so only a few threads are theirs."""

    def __init__(self) -> None:
        self._writers = anyio.CapacityLimiter(_WRITERS)

    async def run(self, work: Callable[[], _Result], *, writes: bool = False) -> _Result:
        """Run `work` to its end, whether or not the client waits for it: a write that has begun is finished."""
        return await anyio.to_thread.run_sync(work, limiter=self._writers if writes else None)


@contextmanager
def following(notebook: Notebook, *, is_on: bool = True) -> Iterator[None]:
    """Sync at the start, follow the files and do the upkeep until the block ends; `core.lag` says what is missing."""
    stop = threading.Event()
    thread = threading.Thread(target=_follow, args=(notebook, stop), name="follow", daemon=True)
    if is_on:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        if is_on:
            thread.join(_END_SECONDS)


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` at the first SIGINT or SIGTERM. A second one does what it did before: it ends the process."""

    def handle(number: int, _frame: object) -> None:
        signal.signal(number, before[number])
        stop()

    before: dict[int, Any] = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def _follow(notebook: Notebook, stop: threading.Event) -> None:
    """Try for the follow lock every few seconds, and follow while it is held."""
    core, trouble = notebook.core, ""
    while not stop.is_set():
        before, trouble = trouble, ""
        try:
            core.lag = "" if FollowLock(core.place).holder() is not None else _LOOKING
            for event in notebook.admin.watch(stop=stop):
                if event.kind == "ready":
                    core.lag = ""
                elif event.kind == "trouble":
                    _log.warning("%s", event.fields["message"])
        except FollowLocked:
            core.lag = ""
        except NotebookError as error:
            core.lag = trouble = str(error)
        except Exception:  # the edge: a fault here must not end the server
            if not stop.is_set():
                _log.exception("following the files failed")
        if trouble and trouble != before:
            _log.warning("%s", trouble)
        stop.wait(_RETRY_SECONDS)
