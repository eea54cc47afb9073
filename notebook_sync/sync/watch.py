"""Following a notebook: events say where to look, the engine says what is there, timers find what events missed.

File events come from the operating system through watchfiles, and here alone. Some are lost, none is in order. When
watchfiles ends (a name that it cannot decode, a root that was lost or replaced, no more watches), it is started again,
and the gap is reported as a doubt: all is to be looked at.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from watchfiles import watch as watch_files

import notebook_sync.files.parse
import notebook_sync.sync.project  # noqa: F401 - both are loaded at the first change, which would wait for them
from notebook_sync.errors import FollowLocked, IndexOutdated, NotebookError
from notebook_sync.files.locks import FollowLock
from notebook_sync.files.names import GITIGNORE, is_hidden
from notebook_sync.files.private import FOLDER
from notebook_sync.sync.engine import Engine, Report

# The lock and the settings are looked at at least this often.
_TICK_SECONDS = 2.0
_LOCK_SECONDS = 3.0
_GRACE_SECONDS = 2.0
# After trouble a full look is tried again, later each time.
_PAUSES = (0.5, 30.0)
# watchfiles collects for `_STEP_MS` after the first event, and for `_DEBOUNCE_MS` at most (its defaults: 50 and 1,600).
_STEP_MS, _DEBOUNCE_MS = 1, 10
# From here on a batch may be what an overflowing queue has left.
_MANY = 1000
_PROBE = f"{FOLDER}/watch.probe"
_READY_SECONDS = 10.0
# A quiet watcher yields this often; it then looks whether the root is still the same folder.
_IDLE_MS = 1000
_RESTARTS = (0.05, 2.0)
_AT_THE_LIMIT = (
    "this machine allows no more file watches, so some folders are only looked at by the timer; "
    "raise the limit: sysctl fs.inotify.max_user_watches=524288"
)


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
            with contextlib.suppress(NotebookError, OSError):  # behind the events, since it waits for the disk
                self._engine.index.checkpoint()
            self._has_work.wait(seconds)


class EventSource:
    """Watches one folder in a thread of its own, from `start` to `close`. `shortfall` says why some folders send no
    events, "" where all do."""

    def __init__(self, root: Path) -> None:
        self.shortfall = ""
        self._root = root
        self._prefix = f"{root}{os.sep}"
        self._batches: queue.SimpleQueue[set[str] | None] = queue.SimpleQueue()  # None: some events may be lost
        self._is_ready = threading.Event()
        self._is_closing = threading.Event()
        self._is_strict = True

    def start(self) -> bool:
        """Watch; return once an event was seen to arrive, False where none does in time: only the timer is left."""
        threading.Thread(target=self._run, name="notebook-sync watch", daemon=True).start()
        probe, deadline = self._root / _PROBE, time.monotonic() + _READY_SECONDS
        with contextlib.suppress(OSError):
            while time.monotonic() < deadline and not (self._is_ready.is_set() or self._is_closing.is_set()):
                probe.touch(0o600)
                self._is_ready.wait(0.02)
            probe.unlink()
        return self._is_ready.is_set()

    def wake(self) -> None:
        """Let a waiting `wait` return. Safe in a signal handler."""
        self._batches.put(set())

    def close(self) -> None:
        """Stop watching. Safe in a signal handler."""
        self._is_closing.set()
        self.wake()

    def wait(self, seconds: float) -> set[str] | None:
        """The places of the next batch and of all that are there already, none when `seconds` pass first; None where
        everything has to be looked at."""
        paths: set[str] = set()
        is_doubtful = False
        with contextlib.suppress(queue.Empty):
            batch = self._batches.get(timeout=max(seconds, 0.0))
            while True:
                is_doubtful |= batch is None or len(batch) >= _MANY
                paths |= batch or set()
                batch = self._batches.get_nowait()
        names = {path.removeprefix(self._prefix) for path in paths if path.startswith(self._prefix)}
        if is_doubtful or len(names) < len(paths) or any(name.endswith(GITIGNORE) for name in names):
            return None
        return {name for name in names if not any(map(is_hidden, name.split("/")))}

    def _run(self) -> None:
        pause, is_after_gap = _RESTARTS[0], False
        while not self._is_closing.is_set():
            identity = self._identity()
            try:
                for changes in watch_files(
                    self._root,
                    watch_filter=None,
                    step=_STEP_MS,
                    debounce=_DEBOUNCE_MS,
                    stop_event=self._is_closing,
                    rust_timeout=_IDLE_MS,
                    yield_on_timeout=True,
                    raise_interrupt=False,
                    ignore_permission_denied=not self._is_strict,
                ):
                    self._deliver(None if is_after_gap else {path for _, path in changes})
                    pause, is_after_gap = _RESTARTS[0], False
                    if self._identity() != identity:
                        break
            # Whatever ends the watcher, panics of Rust and decoding errors included, it has to be started again.
            except BaseException as error:
                reason = str(error).lower()
                if self._is_strict and ("limit reached" in reason or "denied" in reason):
                    # A watcher that may ignore folders it cannot watch ignores its own limit silently, too.
                    self._is_strict = False
                    self.shortfall = _AT_THE_LIMIT if "limit reached" in reason else ""
                    continue
            is_after_gap = True
            self._deliver(None)
            self._is_closing.wait(pause)
            pause = min(pause * 2, _RESTARTS[1])

    def _deliver(self, paths: set[str] | None) -> None:
        if paths and self._prefix + _PROBE in paths:
            self._is_ready.set()
        if paths is None or paths:
            self._batches.put(paths)

    def _identity(self) -> tuple[int, int] | None:
        with contextlib.suppress(OSError):
            found = self._root.stat()
            return found.st_dev, found.st_ino
        return None
