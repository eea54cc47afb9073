"""Commands of this program in processes of their own, beside one that goes on: what they take of memory ends with them,
and whoever is waited for waits for none of them."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from notebook_sync.own_process import own_environment

_RUNS = "notebook_sync.surfaces.cli.run_beside"
_LATER = 10
# A command may have a bridge to end, which takes up to eight.
_GRACE_SECONDS = 12.0

_log = logging.getLogger(__name__)


class ProcessBeside:
    """One at a time, for the notebook at `root`, behind all else that this machine does."""

    def __init__(self, root: Path) -> None:
        self._command = (sys.executable, "-P", "-m", _RUNS, "-C", str(root))
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()
        self._is_closed = False

    def run(self, *arguments: str) -> int:
        """How the command ended; below 0 where it could not be started, which is logged, or was stopped."""
        with self._starting:
            if self._is_closed:
                return -1
            try:
                self._process = subprocess.Popen(
                    (*self._command, *arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=own_environment(),
                )
            except OSError as error:
                _log.warning("%s could not be started: %s", " ".join(arguments), error.strerror)
                return -1
        with suppress(OSError):  # it may have ended already
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _LATER)
        return self._process.wait()

    def close(self) -> None:
        """Break off what is under way, and wait while it ends what it has started; it is ended where that takes too
        long. Nothing is started any more."""
        with self._starting:
            self._is_closed = True
            process = self._process
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
