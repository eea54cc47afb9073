"""What a model once answered, a small file each: the first answer stays, in whichever process it came.

It can be lost without losing a note. What cannot be kept here stops nothing.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from notebook_sync.folder import make_folder

_MOST_KEPT = 500
_LONGEST = 1 << 16


class KeptAnswers:
    """Of one notebook; `own` is its `.notebook`, `name` the folder in it. Any number of threads and processes."""

    def __init__(self, own: Path, name: str) -> None:
        self._folder = own / name

    def get(self, key: str) -> str | None:
        """What is kept by this key, a hexadecimal digest."""
        try:
            with (self._folder / key).open("rb") as opened:
                return opened.read(_LONGEST).decode()
        except (OSError, UnicodeDecodeError):
            return None

    def keep(self, key: str, answer: str) -> None:
        """Keep an answer by a key that has none."""
        with suppress(OSError):
            make_folder(self._folder)
            self._drop_the_oldest()
            fd, temporary = tempfile.mkstemp(dir=self._folder)
            try:
                with os.fdopen(fd, "wb") as opened:
                    opened.write(answer.encode(errors="replace"))
                os.link(temporary, self._folder / key)  # which takes nobody's place, as a rename would
            finally:
                Path(temporary).unlink(missing_ok=True)

    def _drop_the_oldest(self) -> None:
        ages: list[tuple[int, Path]] = []
        for file in self._folder.iterdir():
            with suppress(FileNotFoundError):  # others keep and drop at the same time
                ages.append((file.stat().st_mtime_ns, file))
        for _, file in sorted(ages)[: max(len(ages) - _MOST_KEPT + 1, 0)]:
            file.unlink(missing_ok=True)
