"""A watching process, seen from outside: when was it ready, when had it seen a change, how much memory does it hold."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

PATIENCE = 120.0


class Follower:
    """Runs a command that prints one JSON object a line: `ready`, then a `batch` with `paths` after each change."""

    def __init__(self, arguments: list[str], environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        self._events: queue.SimpleQueue[tuple[float, dict[str, Any]]] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Follower:
        self._reader.start()
        try:
            while self._next(time.perf_counter() + PATIENCE)[1].get("event") != "ready":
                pass
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def wait_for(self, paths: Collection[str]) -> float:
        """The moment at which every one of `paths` had been in a batch read since the last call."""
        missing = set(paths)
        deadline = time.perf_counter() + PATIENCE
        while True:
            moment, event = self._next(deadline)
            missing.difference_update(event.get("paths", ()))
            if not missing:
                return moment

    def forget(self, quiet: float = 0.3) -> None:
        """Drop what was printed so far, once nothing more has come for `quiet` seconds."""
        while True:
            try:
                self._events.get(timeout=quiet)
            except queue.Empty:
                return

    def held(self) -> float:
        """Megabytes resident now."""
        return int(psutil.Process(self._process.pid).memory_info().rss) / 1e6

    def peak(self) -> float:
        """Megabytes resident at most, so far."""
        return high_water(self._process.pid)

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        if self._process.stdout:
            self._process.stdout.close()

    def _next(self, deadline: float) -> tuple[float, dict[str, Any]]:
        try:
            moment, event = self._events.get(timeout=max(0.0, deadline - time.perf_counter()))
        except queue.Empty:
            raise TimeoutError(f"{self._process.args!r} said nothing of it in {PATIENCE:g} s") from None
        if event.get("event") == "ended":
            raise RuntimeError(f"{self._process.args!r} ended with {self._process.wait()}")
        return moment, event

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._events.put((time.perf_counter(), json.loads(line)))
        self._events.put((time.perf_counter(), {"event": "ended"}))


def high_water(pid: int) -> float:
    """The most that a process has had resident, in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(kilobytes) * 1024 / 1e6


def peak_of(arguments: list[str]) -> float:
    """Run a command to its end; the most that it and the processes it starts held at once, in megabytes.

    What processes share is counted once, by their proportional set sizes.
    """
    process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    parent = psutil.Process(process.pid)
    peak = 0.0
    while process.poll() is None:
        try:
            family = [parent, *parent.children(recursive=True)]
            peak = max(peak, sum(member.memory_full_info().pss for member in family) / 1e6)
            peak = max(peak, high_water(process.pid))
        except (psutil.Error, OSError, StopIteration):
            continue  # one of them ended between two looks
        time.sleep(0.05)  # between two samples of a process that runs; nothing is waited for
    if process.returncode != 0:
        raise RuntimeError(f"{arguments!r} ended with {process.returncode}")
    return peak
