"""Which notes changed last, as the mirror knows it, asked in a way that never keeps a prompt waiting for longer than
one request may take."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from notebook_sync.errors import BackendDown, NotebookError
from notebook_sync.mirror.base import Filter, Mirror

# Notes for all to find. Runtime files and facts have parts of their own in a prompt, and channels are private.
_FOR_ALL = Filter(collections=("pages", "code_snippets", "research_notes", "memories"))


def recent_paths(mirror: Callable[[], Mirror], limit: int, timeout_seconds: float) -> list[str]:
    """The paths of the notes changed last, the newest first. Raises BackendDown, also when `mirror()` raises."""
    answers: SimpleQueue[list[str] | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(_paths(mirror(), limit))
        except Exception as error:
            answers.put(error)

    # Several requests that are each answered just in time would take several times as long. Nobody waits for a thread
    # that is late: it ends by itself, at the latest with the process.
    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=timeout_seconds)
    except Empty:
        raise BackendDown("the mirror", f"no answer within {timeout_seconds:g} seconds") from None
    if isinstance(answer, NotebookError) and not isinstance(answer, BackendDown):
        raise BackendDown("the mirror", str(answer)) from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _paths(mirror: Mirror, limit: int) -> list[str]:
    return [note["path"] for note in mirror.light(_FOR_ALL, limit) if note["path"]]
