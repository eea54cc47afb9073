"""The notebook's event log: one JSON object a line in `.notebook/events.jsonl`, appended by any number of processes.

Tells what happened and who did it, never what a note says. It may be deleted at any time, and failing to write to it
never stops what it would have told.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from notebook_sync.folder import open_private
from notebook_sync.sessions import Session

FILE = "events.jsonl"
OLDER = "events.1.jsonl"
# The kind of what a watch brought into the mirror.
CHANGED = "changed"
LARGEST_BYTES = 4 << 20
_LONGEST_TEXT = 300
_POLL_SECONDS = 0.1
_CHUNK = 1 << 20

Event = dict[str, Any]


class Events:
    """The log in `folder`, the notebook's `.notebook`. An event is `{id, at, kind, session, agent, …}`, its id in order
    of time; `largest_bytes` is when the log is put aside, as the one older one that is kept."""

    def __init__(self, folder: Path, *, largest_bytes: int = LARGEST_BYTES) -> None:
        self._path = folder / FILE
        self._older = folder / OLDER
        self._largest_bytes = largest_bytes

    def record(self, kind: str, session: Session, **fields: Any) -> Event | None:
        """Append one event; long texts in it are cut. None where nothing could be written."""
        now = time.time_ns()
        event: Event = {
            "id": f"{now:016x}{os.urandom(4).hex()}",
            "at": datetime.fromtimestamp(now // 1_000_000 / 1000, UTC).isoformat(timespec="milliseconds"),
            "kind": kind,
            "session": session.kind,
            "agent": session.agent,
            **{name: _cut(value) for name, value in fields.items()},
        }
        try:
            self._append(json.dumps(event, ensure_ascii=True, default=str).encode())
        except OSError:
            return None
        return event

    def read(self, since: str = "", limit: int = 1000) -> list[Event]:
        """The last `limit` events that came after the one with the id `since`, oldest first; of all for ""."""
        found = self._all()
        if since:
            after = next((at + 1 for at, event in enumerate(found) if event["id"] == since), None)
            found = found[after:] if after is not None else [event for event in found if event["id"] > since]
        return found[-limit:] if limit > 0 else []

    def knows(self, event_id: str) -> bool:
        """Whether an event with this id is in the log: one that was put aside and replaced is not."""
        return any(event["id"] == event_id for event in self._all())

    def _all(self) -> list[Event]:
        return [event for path in (self._older, self._path) for event in _events_in(path)]

    def tail(self) -> Tail:
        """Reads on from now: what is recorded later is new to it."""
        return Tail(self._path)

    def follow(self, stop: threading.Event) -> Iterator[Event]:
        """Each event recorded from now on, until `stop` is set."""
        with contextlib.closing(self.tail()) as tail:
            yield from _followed(tail, stop)

    def _append(self, line: bytes) -> None:
        fd = open_private(self._path, os.O_APPEND)
        try:
            size = os.fstat(fd).st_size
            # A line that somebody could not finish stays a line of its own.
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            os.write(fd, (b"\n" if torn else b"") + line + b"\n")
            if size > self._largest_bytes and os.fstat(fd).st_ino == self._path.stat().st_ino:
                self._path.replace(self._older)
        finally:
            os.close(fd)


class Tail:
    """What is new in a log since the last look, also when the log was put aside or deleted meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open: list[_Reader] = []
        self._turn()
        for reader in self._open:
            reader.skip()

    def new(self) -> list[Event]:
        """The events recorded since the last call."""
        # A log that was put aside is read once more: its last writer may have opened it before.
        ended = self._open[:-1]
        self._turn()
        found = [event for reader in self._open for event in reader.new()]
        for reader in ended:
            reader.close()
        self._open = [reader for reader in self._open if reader not in ended]
        return found

    def close(self) -> None:
        """Release the files. Twice is allowed."""
        while self._open:
            self._open.pop().close()

    def _turn(self) -> None:
        """Open the log where it is another file than the last one read."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return
        is_known = bool(self._open) and os.path.sameopenfile(fd, self._open[-1].fd)
        if is_known or not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
        else:
            self._open.append(_Reader(fd))


class _Reader:
    """Whole lines of one open file, each once."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._rest = b""

    def skip(self) -> None:
        os.lseek(self.fd, 0, os.SEEK_END)

    def new(self) -> list[Event]:
        while chunk := os.read(self.fd, _CHUNK):
            self._rest += chunk
        whole, newline, rest = self._rest.rpartition(b"\n")
        if newline:
            self._rest = rest
        return [event for line in whole.splitlines() if (event := _event(line)) is not None]

    def close(self) -> None:
        os.close(self.fd)


def _followed(tail: Tail, stop: threading.Event) -> Iterator[Event]:
    while not stop.is_set():
        yield from tail.new()
        stop.wait(_POLL_SECONDS)


def _events_in(path: Path) -> list[Event]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return []
    return [event for line in lines if (event := _event(line)) is not None]


def _event(line: bytes) -> Event | None:
    """The event of a line; None for one that was not finished."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("id"), str) else None


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return value[: _LONGEST_TEXT - 1] + "…"
    return value
