"""Who wrote what a tool writes, told before it stands in the file: whoever mirrors it first knows whom to name.

It is forgotten once it is mirrored. What cannot be kept here names the owner, and stops no write.
"""

from __future__ import annotations

import contextlib
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from notebook_sync.folder import make_folder, replace_private

FOLDER = "authors"
# Of one note, while the mirror is away: only the last is ever looked for.
_KEPT = 3

_Told = list[list[str]]


class Authors:
    """The authors of one notebook's latest texts; `folder` is its `.notebook`. The digest "" is that of a note which is
    taken away, known until something is written there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER

    def of(self, path: str, digest: str) -> str:
        """Who wrote, or is about to write, what has this digest to the note at `path`; "" where that is not known."""
        return dict(self._told(path)).get(digest, "")

    def announce(self, path: str, digest: str, changed_by: str) -> None:
        """A tool is about to write what has this digest to the note at `path`."""
        self._tell(path, [*self._others(path, digest), [digest, changed_by]][-_KEPT:])

    def forget(self, path: str, digest: str) -> None:
        """It is mirrored, or was not written after all."""
        self._tell(path, self._others(path, digest))

    def _others(self, path: str, digest: str) -> _Told:
        return [one for one in self._told(path) if one[0] not in ("", digest)]

    def _told(self, path: str) -> _Told:
        try:
            with open(self._file_of(path), "rb") as opened:  # noqa: PTH123 - asked for each file of a first sync
                told: Any = json.loads(opened.read(1 << 16))
            return [[str(digest), str(changed_by)] for digest, changed_by in told]
        except (OSError, ValueError, TypeError):
            return []

    def _tell(self, path: str, told: _Told) -> None:
        with contextlib.suppress(OSError):
            if told:
                make_folder(self._folder)
                replace_private(Path(self._file_of(path)), json.dumps(told).encode())
            else:
                Path(self._file_of(path)).unlink(missing_ok=True)

    def _file_of(self, path: str) -> str:
        return f"{self._folder}/{sha256(path.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}"
