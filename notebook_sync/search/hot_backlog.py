"""Giving hot memory the vectors that a recall does not wait for: those that a server makes, and those that are many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from notebook_sync.errors import BackendDown, TextRefused
from notebook_sync.mirror.base import LARGEST_LIMIT
from notebook_sync.refs.base import Model, Refs
from notebook_sync.search.base import Embedder, Matrix

# What no embedder refuses.
_HARMLESS = "note"


class HotBacklog:
    """Of one notebook. Any number of threads and processes may work on it at once."""

    def __init__(self, refs: Callable[[], Refs], embedder: Embedder) -> None:
        self._refs = refs
        self._embedder = embedder

    def catch_up(self) -> None:
        """Embed what is behind. Where hot memory or the embedder is away, the next time does it; and where the embedder
        fails at one text, it begins with that."""
        with suppress(BackendDown):
            dimensions = self._embedder.dimensions or self._embedder.embed([_HARMLESS]).shape[1]
            model = Model(self._embedder.model, dimensions)
            try:
                self._refs().embed(model, self._vectors, LARGEST_LIMIT)
            except _Failed as failed:
                self._refs().embed(model, self._vectors, failed.before)

    def _vectors(self, texts: Sequence[str]) -> Matrix:
        """A vector for each text, all zero for one that the embedder refuses. Raises _Failed, and BackendDown where it
        is away."""
        try:
            return self._embedder.embed(texts)
        except BackendDown as down:
            harmless = self._embedder.embed([_HARMLESS])
            if len(texts) == 1:
                if not isinstance(down, TextRefused):
                    raise _Failed(down, 0) from None
                return np.zeros_like(harmless)
        half = len(texts) // 2
        first = self._vectors(texts[:half])
        try:
            return np.concatenate([first, self._vectors(texts[half:])])
        except _Failed as failed:
            raise _Failed(failed, half + failed.before) from None


class _Failed(BackendDown):
    """At one text, though not at others; `before` it, so many were embedded."""

    def __init__(self, down: BackendDown, before: int) -> None:
        super().__init__(down.backend, down.reason)
        self.before = before
