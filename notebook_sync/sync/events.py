"""File events from the operating system, as places to look at. They only say where: some are lost, none is in order.

The one seam between this program and watchfiles. When the watcher ends (a name that it cannot decode, a root that was
lost or replaced, no more watches), it is started again, and the gap is reported as a doubt: all is to be looked at.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from pathlib import Path

from watchfiles import watch as watch_files

from notebook_sync.files.names import GITIGNORE, is_hidden
from notebook_sync.files.private import FOLDER

# watchfiles collects for `_STEP_MS` after the first event, and for `_DEBOUNCE_MS` at most (its defaults: 50 and 1,600).
_STEP_MS, _DEBOUNCE_MS = 1, 10
# From here on a batch may be what an overflowing queue has left.
_MANY = 1000
_PROBE = f"{FOLDER}/watch.probe"
_READY_SECONDS = 10.0
# A quiet watcher yields this often; it then looks whether the root is still the same folder.
_IDLE_MS = 1000
_PAUSES = (0.05, 2.0)
_AT_THE_LIMIT = (
    "this machine allows no more file watches, so some folders are only looked at by the timer; "
    "raise the limit: sysctl fs.inotify.max_user_watches=524288"
)


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
        pause, is_after_gap = _PAUSES[0], False
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
                    pause, is_after_gap = _PAUSES[0], False
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
            pause = min(pause * 2, _PAUSES[1])

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
