"""What a server does in the background: it syncs, follows the files, and reports reminders that fall due.

What both find goes into the event log, so that every stream tells it, of whatever process.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator

from notebook_sync.errors import NotebookError, WatchLocked
from notebook_sync.folder import FOLDER
from notebook_sync.notebook import Notebook
from notebook_sync.sync.lock import watcher
from notebook_sync.sync.upkeep import keep_up
from notebook_sync.sync.watch import Batch, Event, Ready, Recovered, Trouble, Watch
from prompt.errors import PromptError

_GRACE_SECONDS = 2.0
_LOOK_SECONDS = 0.02
_DUE_SECONDS = 20.0
# When another process watches: how often it is asked for the lock, so that somebody watches when that one ends.
_AGAIN_SECONDS = 10.0
_log = logging.getLogger(__name__)


class Following:
    """For one notebook. `watch`: also follow the files, and not only tell of reminders; `changed` is called with the
    paths of notes that have."""

    def __init__(self, notebook: Notebook, *, watch: bool, changed: Callable[[Collection[str]], None]) -> None:
        self._notebook = notebook
        self._wanted = watch
        self._changed = changed
        self._watch: Watch | None = None
        self._stopping = threading.Event()
        self._trouble = ""
        self._is_synced = False

    @property
    def behind(self) -> str:
        """Why results may be incomplete; "" where they are not."""
        if self._trouble:
            return f"the files are not followed, so results may be out of date: {self._trouble}"
        return "" if self._is_synced else "the first sync is still running, so results may be incomplete"

    @property
    def state(self) -> str:
        """Who follows the files, in words."""
        if not self._wanted:
            return "the files are not followed"
        told, end = None, time.monotonic() + _GRACE_SECONDS
        while not told and not self._trouble and time.monotonic() < end:  # the thread has just been started
            told = watcher(self._notebook.root / FOLDER)
            self._stopping.wait(0.0 if told else _LOOK_SECONDS)
        if self._trouble:
            return "the files are not followed; the log says why"
        if told is None or told.get("pid") == os.getpid():
            return "following the files"
        return f"process {told.get('pid', '?')} follows the files"

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Do so meanwhile, in threads that end with the process, however long what they do takes."""
        works = [self._tell_due, self._follow if self._wanted else self._do_chores]
        threads = [threading.Thread(target=work, name=f"serve{work.__name__}", daemon=True) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            if self._watch is not None:
                self._watch.stop()
            for thread in threads:
                thread.join(_GRACE_SECONDS)

    def _follow(self) -> None:
        is_told = False
        while not self._stopping.is_set():
            try:
                self._watch = self._notebook.watch()
                if self._stopping.is_set():
                    return
                for event in self._watch.events():
                    self._trouble = ""
                    self._tell(event)
            except WatchLocked as locked:
                self._is_synced = True  # by the process that watches
                if not is_told:
                    _log.warning("%s; until then this server goes on without", locked)
                is_told = True
            except NotebookError as error:
                if self._trouble != str(error):
                    _log.error("the files are not followed: %s", error)
                self._trouble = str(error)
            except Exception:  # a thread that ended here would follow nothing unseen; logged whole
                _log.exception("the files are not followed")
            self._stopping.wait(_AGAIN_SECONDS)

    def _tell(self, event: Event) -> None:
        match event:
            case Trouble(message):
                _log.warning("trouble: %s", message)
            case Recovered(message):
                _log.info("recovered: %s", message)
            case Ready():
                self._is_synced = True
                _log.info("following the files")
            case Batch(report):
                self._changed(report.paths)

    def _do_chores(self) -> None:
        """What a watch does beside following."""
        keep_up(self._notebook.do_chores, self._stopping)

    def _tell_due(self) -> None:
        while not self._stopping.is_set():
            try:
                self._notebook.prompts.tell_due()
            except (NotebookError, PromptError) as error:
                _log.warning("reminders cannot be told of: %s", error)
            except Exception:  # as above: logged whole, and tried again
                _log.exception("reminders cannot be told of")
            self._stopping.wait(_DUE_SECONDS)
