"""One event for each reminder that falls due, however many processes look, and across restarts.

What was told is kept in `.notebook/told.json`. Where that is lost, what is still due is told once more.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from notebook_sync.events import Events
from notebook_sync.folder import lock, open_private
from notebook_sync.notes.runtime.due import Due
from notebook_sync.sessions import Session

FILE = "told.json"
_KEPT = 2000


class Telling:
    """Tells of one notebook's reminders; `folder` is its `.notebook`."""

    def __init__(self, folder: Path, events: Events) -> None:
        self._folder = folder
        self._events = events

    def tell(self, reminders: Sequence[Due]) -> list[Due]:
        """Record an event for each of them that is due, has a day, and was not told of; which those are.

        None where another process tells at this moment, or nothing can be written.
        """
        pressing = [one for one in reminders if one.is_due and one.when is not None]
        told: list[Due] = []
        if not pressing:
            return told
        with contextlib.suppress(OSError), self._known() as known:
            for one in pressing:
                if one.occurrence not in known and self._record(one):
                    known.append(one.occurrence)
                    told.append(one)
        return told

    def _record(self, one: Due) -> bool:
        """The event names the reminder; what it says stands in the file."""
        event = self._events.record(
            "reminder_due",
            Session.owner(),
            occurrence=one.occurrence,
            when=one.when.isoformat() if one.when else None,
            state=one.state,
            line=one.line,
            section=one.section,
        )
        return event is not None

    @contextlib.contextmanager
    def _known(self) -> Iterator[list[str]]:
        """The occurrences that were told of, to be added to by one process at a time. Raises OSError."""
        fd = open_private(self._folder / FILE)
        try:
            if not lock(fd):
                raise BlockingIOError
            known = _occurrences(os.pread(fd, 1 << 20, 0))
            before = list(known)
            try:
                yield known
            finally:
                if known != before:
                    raw = json.dumps(known[-_KEPT:]).encode()
                    os.pwrite(fd, raw, 0)
                    os.ftruncate(fd, len(raw))
        finally:
            os.close(fd)


def _occurrences(raw: bytes) -> list[str]:
    try:
        found = json.loads(raw)
    except ValueError:
        return []
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
