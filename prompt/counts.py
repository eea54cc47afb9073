"""Counting with a memory. A count that is kept is an exact one, of exactly this text in exactly this encoding."""

from __future__ import annotations

from hashlib import sha256
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
