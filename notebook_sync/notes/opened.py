"""Tells the daily stream which notes agents open, behind the answer: no read waits for hot memory, or fails with it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import datetime, tzinfo

from notebook_sync.files.note import SHARED_COLLECTIONS, Ref
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.mirror.base import Document
from notebook_sync.patience import Silence
from notebook_sync.permissions import is_private
from notebook_sync.refs.base import Refs
from notebook_sync.sessions import Session

OPENED = "opened"
_MOST_KNOWN = 10_000
_MOST_WAITING = 100
_LONGEST_END_SECONDS = 1.0

_Key = tuple[str, int, str, str]


class Opened:
    """What was opened in one notebook: told once for each version of a note, agent and day. For any number of threads;
    `refs` is asked in one of its own."""

    def __init__(self, timezone: tzinfo, refs: Callable[[], Refs]) -> None:
        self._timezone = timezone
        self._refs = refs
        self._lock = threading.Lock()
        self._known: dict[_Key, None] = {}
        self._waiting: deque[tuple[_Key, Ref]] = deque()
        self._thread: threading.Thread | None = None
        self._silence = Silence()

    def tell(self, document: Document, session: Session) -> None:
        """An agent was shown this document. Of a person, and of whoever acts on someone else's message, nothing is
        told. Returns at once and raises nothing."""
        if not session.agent or session.kind == "external" or document["collection"] not in SHARED_COLLECTIONS:
            return
        if is_private(document["path"]):  # under another spelling of their folder
            return
        ref = _ref(document, session.agent)
        key = (ref.id, ref.version, ref.agent, datetime.now(self._timezone).date().isoformat())
        with self._lock:
            if key in self._known or self._silence.trouble or len(self._waiting) >= _MOST_WAITING:
                return
            self._known[key] = None
            if len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
            self._waiting.append((key, ref))
            if self._thread is None:
                # A store that hangs keeps no program from ending.
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()

    def settle(self) -> None:
        """Let what waits be told, for as long as a store that answers takes."""
        with self._lock:
            working = self._thread
        if working is not None:
            working.join(_LONGEST_END_SECONDS)

    def _work(self) -> None:
        while (some := self._next()) is not None:
            key, ref = some
            try:
                self._refs().write([ref])
            except Exception as error:
                # A driver whose connection is closed while it waits raises whatever it comes upon.
                self._fall_silent(key, str(error) or "no answer")

    def _next(self) -> tuple[_Key, Ref] | None:
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            self._thread = None
            return None

    def _fall_silent(self, key: _Key, trouble: str) -> None:
        """What was not told is told when it is next opened, once hot memory is asked again."""
        with self._lock:
            self._silence.begin(trouble)
            for untold in (key, *(waiting for waiting, _ in self._waiting)):
                self._known.pop(untold, None)
            self._waiting.clear()


def _ref(document: Document, agent: str) -> Ref:
    metadata = document["metadata"]
    return Ref(
        id=document["id"],
        title=document["title"],
        summary=document["summary"],
        collection=document["collection"],
        updated_at=metadata["updated_at"],
        status=metadata["status"],
        version=metadata["version"],
        digest=document["source"]["digest"],
        agent=agent,
        path=document["path"],
        action=OPENED,
        provenance=EXTERNAL if document["external"] else None,
    )
