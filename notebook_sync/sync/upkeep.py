"""What is done now and then beside following files: in a thread, so that no save waits for it, and for as long as
whoever asked for it goes on. What goes wrong with it ends nothing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_GRACE_SECONDS = 2.0
_AGAIN_SECONDS = 10.0
_log = logging.getLogger(__name__)


@contextmanager
def kept_up(upkeep: Callable[[], float]) -> Iterator[None]:
    """`keep_up` meanwhile, in a thread that ends with the process, however long what it does takes."""
    stopping = threading.Event()
    thread = threading.Thread(target=keep_up, args=(upkeep, stopping), name="upkeep", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(_GRACE_SECONDS)


def keep_up(upkeep: Callable[[], float], stopping: threading.Event) -> None:
    """Do it again and again, each time in as many seconds as it tells, until `stopping` is set."""
    while not stopping.is_set():
        seconds = _AGAIN_SECONDS
        try:
            seconds = upkeep()
        except Exception:  # a thread that ended here would do nothing unseen; logged whole, and tried again
            _log.exception("the upkeep failed")
        stopping.wait(seconds)
