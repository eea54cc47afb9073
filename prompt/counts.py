"""Counting with a memory. A count that is kept is an exact one, of exactly this text in exactly this encoding."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from prompt.budget import count_tokens

# Of the hex digits of a SHA-256; 128 bits tell texts apart, and keep the file small.
KEY_DIGITS = 32


class CountCache(Protocol):
    """Where counts are kept between calls."""

    def get(self, key: str) -> int | None: ...

    def put(self, key: str, tokens: int) -> None: ...


class Counter:
    """Counts tokens in one encoding, asking `kept` before the vocabulary, which need not even be loaded then."""

    def __init__(self, encoding: str, kept: CountCache | None = None) -> None:
        self.encoding = encoding
        self._kept = kept

    def __call__(self, text: str) -> int:
        if self._kept is None:
            return count_tokens(text, self.encoding)
        key = sha256(f"{self.encoding}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:KEY_DIGITS]
        tokens = self._kept.get(key)
        if tokens is None:
            tokens = count_tokens(text, self.encoding)
            self._kept.put(key, tokens)
        return tokens


class CountFile:
    """A CountCache in one small JSON file: the counts used last, at most `limit`.

    A file that is missing, broken or not writable costs time, never an error. `save` writes it, if there is
    anything new. Several threads may share one; of several processes, the last to save wins. Whoever can write the
    file can falsify counts, so it belongs where only the notebook's owner writes.
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
            if not self._is_new:
                return
            beside = self.path.with_name(f".{self.path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
            try:
                beside.write_text(json.dumps(self._counts))
                beside.replace(self.path)
                self._is_new = False
            finally:
                beside.unlink(missing_ok=True)

    def _read(self) -> dict[str, int]:
        try:
            counts = json.loads(self.path.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(counts, dict) or not all(type(tokens) is int and tokens >= 0 for tokens in counts.values()):
            return {}
        return dict(list(counts.items())[-self.limit :])
