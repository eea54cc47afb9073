"""File events from the operating system, as places to look at. They only say where: some are lost, none is ordered.

The one seam between this program and watchfiles. When the watcher dies (a name it cannot decode, a lost root, no more
watches to be had) it is built again, and once it stands the gap is told as a doubt: the whole notebook is to be looked
at.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from watchfiles import watch as watch_files

from notebook_sync import config
from notebook_sync.files.ignore import GITIGNORE, is_hidden, is_note_name

# watchfiles gathers for `_STEP_MS` after the first event, and for `_DEBOUNCE_MS` at most (its defaults: 50 and 1,600).
_STEP_MS = 1
_DEBOUNCE_MS = 10
# From here on a batch may be what an overflowing queue left over.
_MANY = 1000
_PROBE = ".notebook/watch.probe"
_ARM_SECONDS = 10.0
# An idle watcher yields this often; its first yield, with or without events, shows that it stands.
_IDLE_MS = 1000
_RESTART_SECONDS = (0.05, 5.0)


@dataclass(slots=True)
class Places:
    """Paths to look at, and why everything has to be looked at instead ("" if it need not; the last reason told).

    `new_settings`: notebook.toml was written to.
    """

    paths: set[str]
    doubt: str = ""
    new_settings: bool = False


class EventSource:
    """Watches one folder in a thread of its own."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._prefix = str(root) + os.sep
        self._batches: queue.SimpleQueue[set[str] | str | None] = queue.SimpleQueue()
        self._armed = threading.Event()
        self._closing = threading.Event()
        self._missed = ""
        self._is_strict = True
        self.shortfall = ""
        """Why some folders send no events, in words for people; "" when all do."""
        self._thread = threading.Thread(target=self._run, name="notebook-watch", daemon=True)

    @property
    def armed(self) -> bool:
        """Whether an event was seen to arrive. If not, only the timer finds changes."""
        return self._armed.is_set()

    def start(self) -> bool:
        """Begin; returns once an event is seen to arrive, or when none does in time; whether one was."""
        self._thread.start()
        probe = self._root / _PROBE
        deadline = time.monotonic() + _ARM_SECONDS
        with contextlib.suppress(OSError):
            while time.monotonic() < deadline and not self.armed:
                probe.touch(0o600)
                probe.write_text("A file event for this file shows that the watcher is armed.\n")
                self._armed.wait(0.02)
            probe.unlink()
        if not self.armed:
            self._missed = "the watcher began late"
        return self.armed

    def wake(self) -> None:
        """Let a waiting `wait` return. Safe in a signal handler."""
        self._batches.put(None)

    def close(self) -> None:
        self._closing.set()
        self.wake()

    def wait(self, seconds: float) -> Places:
        """The places of the next batch and of all that are already there; empty when `seconds` pass first.

        Of several doubts the last is told: one is enough for looking at everything.
        """
        found = Places(set())
        try:
            batch = self._batches.get(timeout=max(seconds, 0.0))
            while True:
                self._add(batch, found)
                batch = self._batches.get_nowait()
        except queue.Empty:
            return found

    def _add(self, batch: set[str] | str | None, found: Places) -> None:
        if isinstance(batch, str):
            found.doubt = batch
        elif batch:
            for path in batch:
                self._add_path(path, found)
            if len(found.paths) >= _MANY:
                found.doubt = "very many file events at once"

    def _add_path(self, path: str, found: Places) -> None:
        if not path.startswith(self._prefix):
            found.doubt = "the notebook's folder itself changed"
            return
        relative = path[len(self._prefix) :].replace(os.sep, "/")
        *folders, name = relative.split("/")
        if any(is_hidden(folder) for folder in folders):
            return
        if relative == config.FILE:
            found.new_settings = True
        if name == GITIGNORE:
            found.doubt = f"{relative} changed"
        elif not is_hidden(name) and (is_note_name(name) or not os.path.isfile(path)):  # noqa: PTH113 - hot path
            found.paths.add(relative)

    def _run(self) -> None:
        shortest, longest = _RESTART_SECONDS
        pause = shortest
        while not self._closing.is_set():
            try:
                for changes in watch_files(
                    self._root,
                    watch_filter=None,
                    step=_STEP_MS,
                    debounce=_DEBOUNCE_MS,
                    stop_event=self._closing,
                    rust_timeout=_IDLE_MS,
                    yield_on_timeout=True,
                    raise_interrupt=False,
                    ignore_permission_denied=not self._is_strict,
                ):
                    self._deliver({path for _, path in changes})
                    pause = shortest
            # Whatever ends the watcher, pyo3's panics and decoding errors included, it has to be built again.
            except BaseException as error:
                if self._is_strict and _says(error, "limit reached", "permission denied"):
                    # Told to overlook folders it may not watch, watchfiles overlooks its own limit in silence, too.
                    self._is_strict = False
                    self.shortfall = _AT_THE_LIMIT if _says(error, "limit reached") else ""
                    continue
                self._missed = f"the watcher ended ({type(error).__name__}: {error}) and was started again"
                self._closing.wait(pause)
                pause = min(pause * 2, longest)

    def _deliver(self, paths: set[str]) -> None:
        if not self._armed.is_set() and self._prefix + _PROBE in paths:
            self._armed.set()
        if self._missed:
            self._batches.put(self._missed)
            self._missed = ""
        if paths:
            self._batches.put(paths)


_AT_THE_LIMIT = (
    "this machine allows no more file watches, so some folders are only looked at by the timer; "
    "raise it: sysctl fs.inotify.max_user_watches=524288"
)


def _says(error: BaseException, *words: str) -> bool:
    return any(word in str(error).lower() for word in words)
