"""Of which records of other programs memories were made in this notebook: so one that a person deleted since does not
come in again with its export. Holds no text; where it is lost, records come in again as if they were new."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from pathlib import Path

from notebook_sync.errors import NotebookError
from notebook_sync.folder import open_private

_FILE = "imported"
_RECORD = re.compile(rb"^m[0-9a-f]{15}$", re.MULTILINE)


class ImportLog:
    """A file in `folder`, the notebook's own: a line for each record, by what tells it from every other. To be written
    by one at a time."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE

    def records(self) -> frozenset[str]:
        """All that there are. Raises NotebookError."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            with os.fdopen(fd, "rb") as file:
                return frozenset(found.decode() for found in _RECORD.findall(file.read()))
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise NotebookError(
                f"{self._path}: {error.strerror}; it tells what was imported before: mend it, or take it away"
            ) from None

    def add(self, records: Collection[str]) -> None:
        """Add these, durably. Raises OSError."""
        if not records:
            return
        with os.fdopen(open_private(self._path, os.O_APPEND), "ab") as file:
            # A line end first: the last line may have been cut off.
            file.write(b"\n" + b"".join(f"{record}\n".encode() for record in sorted(records)))
            file.flush()
            os.fsync(file.fileno())
