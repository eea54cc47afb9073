"""How long somebody waits for a store that does not answer, and for how long it is then not asked again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from notebook_sync.errors import BackendDown, NotebookError

# So late a store that answers again is told, at the most.
SILENT_SECONDS = 10.0
_SOON_SECONDS = 1.0
_SOON_SHARE = 0.2

_Answer = TypeVar("_Answer")


def soon(timeout_seconds: float) -> float:
    """For how many seconds a writer may keep a file waiting for a store that is given so long for an answer."""
    return max(_SOON_SECONDS, timeout_seconds * _SOON_SHARE)


def answer_within(seconds: float, ask: Callable[[], _Answer]) -> _Answer:
    """What the mirror answers. Raises BackendDown, also when it does not in time, and for every other trouble."""
    answers: SimpleQueue[tuple[_Answer] | Exception] = SimpleQueue()

    def wait() -> None:
        try:
            answers.put((ask(),))
        except Exception as error:
            answers.put(error)

    # Several requests that are each answered just in time would take several times as long. Nobody waits for a thread
    # that is late: it ends by itself, at the latest with the process.
    threading.Thread(target=wait, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except Empty:
        raise BackendDown("the mirror", f"no answer within {seconds:g} seconds") from None
    if isinstance(answer, NotebookError) and not isinstance(answer, BackendDown):
        raise BackendDown("the mirror", str(answer)) from None
    if isinstance(answer, Exception):
        raise answer
    return answer[0]


class Silence:
    """Of one store, for any number of threads."""

    def __init__(self) -> None:
        self._until = 0.0
        self._trouble = ""

    def begin(self, trouble: str) -> None:
        """It did not answer, for this reason."""
        self._trouble, self._until = trouble, time.monotonic() + SILENT_SECONDS

    def end(self) -> None:
        """It answered."""
        self._until = 0.0

    @property
    def trouble(self) -> str:
        """Why it is not to be asked yet; "" when it may be."""
        return self._trouble if time.monotonic() < self._until else ""
