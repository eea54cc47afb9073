"""What proved something once and does so no more: links that were followed, and cookies that were logged out.

Each is an empty file in `.notebook/spent`, so that all servers of a notebook know of it, and one that starts later.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from notebook_sync.errors import NotebookError
from notebook_sync.folder import make_folder

FOLDER: Final = "spent"
# A file says until when only after it is made, and another that adds must not take it away before.
_MAKING_SECONDS: Final = 60


class Spent:
    """`own` is the notebook's `.notebook`. For any number of threads and processes."""

    def __init__(self, own: Path) -> None:
        self._own = own
        self._folder = own / FOLDER

    def add(self, proof: str, until: int) -> bool:
        """Whether it was not spent before. It is known until then, in seconds since the epoch, after which it proves
        nothing anyway. Raises NotebookError where that cannot be written."""
        try:
            make_folder(self._folder)
            self._forget()
            (path := self._path(proof)).touch(0o600, exist_ok=False)
            os.utime(path, (until, until))
        except FileExistsError:
            return False
        except OSError as error:
            raise NotebookError(
                f"{self._folder}: {error.strerror}; make {self._own} writable, or log in with the owner's token"
            ) from None
        return True

    def __contains__(self, proof: str) -> bool:
        return self._path(proof).exists()

    def _path(self, proof: str) -> Path:
        return self._folder / sha256(proof.encode("utf-8", "replace")).hexdigest()

    def _forget(self) -> None:
        now = time.time()
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):  # others forget, too
                if path.stat().st_mtime < now - _MAKING_SECONDS:
                    path.unlink()
