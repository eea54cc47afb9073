"""Following a notebook: events say where to look, the engine says what is there, timers find what events missed."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import notebook_sync.files.parse
import notebook_sync.sync.project  # noqa: F401 - both are loaded at the first change, which would wait for them
from notebook_sync.errors import FollowLocked, IndexOutdated, NotebookError
from notebook_sync.files.locks import FollowLock
from notebook_sync.sync.engine import Engine, Report
from notebook_sync.sync.events import EventSource

# The lock and the settings are looked at at least this often.
_TICK_SECONDS = 2.0
_LOCK_SECONDS = 3.0
_GRACE_SECONDS = 2.0
# After trouble a full look is tried again, later each time.
_PAUSES = (0.5, 30.0)


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """`kind`: ready, batch, published, trouble, recovered, prompt, reminder_due; `fields` are what `--json` prints."""

    kind: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The line that `watch --json` prints."""
        return {"event": self.kind, **self.fields}


# Called with the paths that changed, and when its time has come; returns events, and in how many seconds it is due.
Hook = Callable[[Collection[str]], tuple[Iterable[WatchEvent], float]]


class Watcher:
    """Follows one notebook. Iterate over `events()`; call `stop()` from anywhere, a signal handler included.

    `engine` is asked before each look, and returns another one after the settings changed. `work` is done in a thread,
    at once after each batch and when the seconds that it returns have passed: publishing and chores.
    """

    def __init__(
        self,
        engine: Callable[[], Engine],
        lock: FollowLock,
        *,
        hooks: Sequence[Hook] = (),
        work: Callable[[], tuple[Iterable[WatchEvent], float]] | None = None,
    ) -> None:
        self._engine_of = engine
        self._engine = engine()
        self._lock = lock
        self._hooks = dict.fromkeys(hooks, 0.0)
        self._work = work
        self._source = EventSource(self._engine.tree.root)
        self._is_stopping = threading.Event()
        self._has_work = threading.Event()
        self._done: queue.SimpleQueue[WatchEvent] = queue.SimpleQueue()
        self._faults: dict[str, str] = {}
        self._trouble, self._pause = "", _PAUSES[0]
        self._next_full = 0.0
        self._next_rehash = time.monotonic() + self._engine.settings.sync.full_hash_hours * 3600

    def stop(self) -> None:
        """End `events()` after the look in hand."""
        self._is_stopping.set()
        self._has_work.set()
        self._source.close()

    def events(self) -> Iterator[WatchEvent]:
        """What happens, until `stop`. Raises FollowLocked where another process follows this notebook."""
        if not self._lock.acquire(_LOCK_SECONDS):
            raise FollowLocked(self._lock.describe_holder())
        worker = threading.Thread(target=self._keep_working, name="notebook-sync work", daemon=True)
        try:
            has_events = self._source.start()
            if self._source.shortfall:
                yield WatchEvent("trouble", {"message": self._source.shortfall})
            yield from self._step(None)
            yield WatchEvent("ready", {"file_events": has_events})
            worker.start()
            while not self._is_stopping.is_set():
                yield from self._step(self._source.wait(self._due() - time.monotonic()))
        finally:
            self.stop()
            if worker.is_alive():
                worker.join(_GRACE_SECONDS)
            self._lock.release()

    def _step(self, places: Collection[str] | None) -> Iterator[WatchEvent]:
        """Look where events, timers or a doubt say; then ask the hooks that are due, and pass on what the work did."""
        # The lock's file may be deleted. A folder that is gone must not be made again for it.
        if not self._lock.holds() and self._engine.tree.root.is_dir() and not self._lock.acquire():
            raise FollowLocked(self._lock.describe_holder())
        now, engine, self._engine = time.monotonic(), self._engine, self._engine_of()
        # During trouble, an event may be of its end.
        if places is None or self._engine is not engine or now >= self._next_full or (places and self._trouble):
            is_thorough = now >= self._next_rehash
            if is_thorough:
                self._next_rehash = now + self._engine.settings.sync.full_hash_hours * 3600
            self._next_full = now + self._engine.settings.sync.reconcile_seconds
            yield from self._look(None, rehash=is_thorough)
        elif places or now >= self._due_look():
            yield from self._look(places)
        yield from self._ask_hooks(())
        while not self._done.empty():
            yield self._done.get()

    def _look(self, places: Collection[str] | None, *, rehash: bool = False) -> Iterator[WatchEvent]:
        """One look. Trouble is reported once, tried again later by a full look, and its end is reported."""
        report = Report()
        try:
            self._engine.look(places, rehash=rehash, report=report)
        except IndexOutdated:
            raise
        except (NotebookError, OSError) as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                self._lock.say(trouble=self._trouble)
                yield WatchEvent("trouble", {"message": self._trouble})
            # Jitter, so that processes which one server failed do not come back all at once.
            self._next_full = time.monotonic() + self._pause * random.uniform(0.5, 1.0)  # noqa: S311
            self._pause = min(self._pause * 2, _PAUSES[1])
        else:
            if places is None:
                ended, self._trouble, self._pause = self._trouble, "", _PAUSES[0]
                self._lock.say(trouble="", last_reconcile=datetime.now(UTC).isoformat(timespec="seconds"))
                if ended:
                    yield WatchEvent("recovered", {"message": ended})
        if report.paths or report.faults.items() - self._faults.items():
            yield WatchEvent("batch", {**report.as_dict(), "paths": report.paths})
            self._has_work.set()
            yield from self._ask_hooks(report.paths)
        old = {} if places is None else {path: why for path, why in self._faults.items() if path not in report.paths}
        self._faults = old | report.faults

    def _ask_hooks(self, paths: Collection[str]) -> Iterator[WatchEvent]:
        for hook, due in self._hooks.items():
            if paths or time.monotonic() >= due:
                events, seconds = hook(paths)
                self._hooks[hook] = time.monotonic() + seconds
                yield from events

    def _due_look(self) -> float:
        """When to look without an event; during trouble, at everything only."""
        return self._next_full if self._trouble else min(self._engine.due, self._next_full)

    def _due(self) -> float:
        return min(self._due_look(), *self._hooks.values(), time.monotonic() + _TICK_SECONDS)

    def _keep_working(self) -> None:
        while self._work is not None and not self._is_stopping.is_set():
            self._has_work.clear()
            events, seconds = self._work()
            for event in events:
                self._done.put(event)
                self._source.wake()
            self._has_work.wait(seconds)
