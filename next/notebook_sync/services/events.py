"""What the product did and refused, for the notebook's owner. Never the text of a note, and never an error."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from threading import Event as Flag
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import NotebookError
from notebook_sync.sessions import Session
from notebook_sync.store.rows import EVERYTHING, Is

if TYPE_CHECKING:
    from notebook_sync.services.core import Core

_LONGEST = 300
_SHOWN = ("id", "at", "kind", "session", "agent", "path")
_POLL_SECONDS = 0.2


class EventLog:
    """The events of a notebook, oldest first. The index keeps the newest 50,000."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def record(self, kind: str, session: Session, *, path: str = "", key: str = "", **fields: Any) -> None:
        """Record an event; one with the `key` of an earlier event is dropped. A log that cannot be written is no
        reason to fail what was done."""
        id = f"{time.time_ns():016x}{secrets.token_hex(4)}"
        row = {
            "id": id,
            "key": key or id,
            "at": datetime.now(UTC),
            "kind": kind,
            "session": session.kind,
            "agent": session.agent,
            "path": path[:_LONGEST],
            "fields": {name: each[:_LONGEST] if isinstance(each, str) else each for name, each in fields.items()},
        }
        with suppress(NotebookError):
            self._core.index.events.put([row])

    def read(self, since: str = "", limit: int = 50) -> list[dict[str, Any]]:
        """The newest `limit` events after the one with the id `since`, oldest first."""
        where = Is("id", ">", since) if since else EVERYTHING
        rows = self._core.index.events.find(where, order=("-id",), limit=limit)
        return [{**(row["fields"] or {}), **{name: row[name] for name in _SHOWN}} for row in reversed(rows)]

    def knows(self, id: str) -> bool:
        """Whether an event has this id."""
        return self._core.index.events.one(id) is not None

    def follow(self, stop: Flag, since: str = "") -> Iterator[dict[str, Any]]:
        """Events as any process records them, from now on or after `since`, until `stop` is set."""
        last = since or next((row["id"] for row in self.read(limit=1)), "0")
        while not stop.is_set():
            for event in self.read(last, 1000):
                last = event["id"]
                yield event
            stop.wait(_POLL_SECONDS)
