"""Does what is due by the clock: each chore once in so many hours for a notebook, by whichever process looks first.

When a chore was last done is the time of a file in `.notebook`. Where that is lost, it is done once more, which may
change nothing.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from notebook_sync.errors import NotebookError
from notebook_sync.folder import lock, open_private
from prompt.errors import PromptError

_AN_HOUR = 3600.0
# Nobody sleeps for longer: another process may have failed meanwhile, and a clock may be set.
_LONGEST_SECONDS = 600.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Chore:
    """`file` is the name of the one whose time tells when it was last done; `trouble` is what is logged where it could
    not be; `do` does it, and tells whether it is done until it is due again."""

    file: str
    trouble: str
    do: Callable[[], bool]


class Upkeep:
    """For one notebook; `folder` is its `.notebook`."""

    def __init__(self, folder: Path, hours: float, chores: Sequence[Chore]) -> None:
        self._folder = folder
        self._seconds = hours * _AN_HOUR
        self._chores = chores

    def look(self) -> float:
        """Do what it is time for; in how many seconds to look again. What goes wrong is logged, and tried again. Raises
        nothing that a file or a store can do."""
        return min(self._look_at(chore) for chore in self._chores)

    def _look_at(self, chore: Chore) -> float:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            fd = open_private(self._folder / chore.file)
            stack.callback(os.close, fd)
            if not lock(fd):  # another process does it
                return min(self._seconds, _LONGEST_SECONDS)
            stat = os.fstat(fd)
            since = time.time() - stat.st_mtime
            if stat.st_size and 0 <= since < self._seconds:
                return min(self._seconds - since, _LONGEST_SECONDS)
            if _tried(chore):
                os.pwrite(fd, b"1\n", 0)
                os.utime(fd)
        return min(self._seconds, _LONGEST_SECONDS)


def _tried(chore: Chore) -> bool:
    try:
        return chore.do()
    except (NotebookError, PromptError) as error:
        _log.warning("%s: %s", chore.trouble, error)
        return False
