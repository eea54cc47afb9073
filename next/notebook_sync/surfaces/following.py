"""Following the files while a server runs: in a thread, unless another process of this notebook does it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from notebook_sync.errors import FollowLocked, NotebookError
from notebook_sync.files.locks import FollowLock
from notebook_sync.notebook import Notebook

_RETRY_SECONDS = 5.0
_END_SECONDS = 5.0
_LOOKING = "the notes are still being looked through, so results may be incomplete"
_log = logging.getLogger("notebook_sync.follow")


@contextmanager
def following(notebook: Notebook, *, is_on: bool = True) -> Iterator[None]:
    """Sync at the start, follow the files and do the upkeep until the block ends; `core.lag` says what is missing."""
    if not is_on:
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_follow, args=(notebook, stop), name="follow", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_END_SECONDS)


def _follow(notebook: Notebook, stop: threading.Event) -> None:
    """Try for the follow lock every few seconds, and follow while it is held."""
    core, trouble = notebook.core, ""
    while not stop.is_set():
        before, trouble = trouble, ""
        try:
            core.lag = "" if FollowLock(core.place).holder() is not None else _LOOKING
            for event in notebook.admin.watch(stop=stop):
                if event.kind == "ready":
                    core.lag = ""
                elif event.kind == "trouble":
                    _log.warning("%s", event.fields["message"])
        except FollowLocked:
            core.lag = ""
        except NotebookError as error:
            core.lag = trouble = str(error)
        except Exception:  # the edge: a fault here must not end the server
            if stop.is_set():
                return
            _log.exception("following the files failed")
        if trouble != before and trouble:
            _log.warning("%s", trouble)
        stop.wait(_RETRY_SECONDS)
