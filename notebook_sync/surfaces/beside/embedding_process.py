"""Embedding beside a watch, in a process of its own that ends when nothing is behind: arrays and a table of words would
double what a watch takes of memory, which goes on for weeks.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

from notebook_sync.surfaces.beside.process import ProcessBeside

# A burst of saves is embedded at once, and who never stops saving is embedded all the same.
_QUIET_SECONDS, _LONGEST_SECONDS = 3.0, 60.0
_AGAIN_SECONDS = (10.0, 300.0)
_GRACE_SECONDS = 1.0


class EmbeddingProcess:
    """Builds missing embeddings of the notebook at `root` some seconds after each call of `changed`, while the block
    lasts. What fails is tried again, later each time; `status` says why."""

    def __init__(self, root: Path) -> None:
        self._process = ProcessBeside(root)
        self._asked, self._closing = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="embedding", daemon=True)

    def __enter__(self) -> EmbeddingProcess:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """What is under way, the next run goes on with."""
        self._closing.set()
        self._asked.set()
        self._process.close()
        self._thread.join(_GRACE_SECONDS)

    def changed(self) -> None:
        """Notes may be behind."""
        self._asked.set()

    def _follow(self) -> None:
        pause, longest = _AGAIN_SECONDS
        while self._asked.wait() and not self._closing.is_set():
            self._until_quiet()
            if self._process.run("embed") == 0:
                pause = _AGAIN_SECONDS[0]
            else:
                self._closing.wait(pause)
                pause = min(2 * pause, longest)
                self._asked.set()

    def _until_quiet(self) -> None:
        end = time.monotonic() + _LONGEST_SECONDS
        while self._asked.is_set() and time.monotonic() < end:
            self._asked.clear()
            self._closing.wait(_QUIET_SECONDS)
        self._asked.clear()
