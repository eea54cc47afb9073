"""Token counts that are kept from one process to the next: a prompt that did not change needs no vocabulary."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from pathlib import Path

from notebook_sync.folder import replace_private


class CountFile:
    """A CountCache in one small JSON file: the counts used last, at most `limit`.

    A file that is missing, broken or not writable costs time, never an error. `save` writes it, if there is
    anything new. Several threads may share one; of several processes, the last to save wins. Anyone who can write
    the file can falsify counts, so it belongs where only the notebook's owner writes.
    """

    def __init__(self, path: str | Path, limit: int = 4096) -> None:
        self.path = Path(path)
        self.limit = limit
        self._lock = threading.Lock()
        self._counts = self._read()
        self._is_new = False

    def get(self, key: str) -> int | None:
        with self._lock:
            tokens = self._counts.pop(key, None)
            if tokens is not None:
                self._counts[key] = tokens  # used last, dropped last
            return tokens

    def put(self, key: str, tokens: int) -> None:
        with self._lock:
            self._counts[key] = tokens
            self._is_new = True
            if len(self._counts) > self.limit:
                del self._counts[next(iter(self._counts))]

    def save(self) -> None:
        """Write what is new. The file is replaced whole, so that a reader never sees half of it."""
        with self._lock, suppress(OSError):
            if self._is_new:
                replace_private(self.path, json.dumps(self._counts).encode())
                self._is_new = False

    def _read(self) -> dict[str, int]:
        try:
            counts = json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(counts, dict) or not all(type(tokens) is int and tokens >= 0 for tokens in counts.values()):
            return {}
        return dict(list(counts.items())[-self.limit :])
