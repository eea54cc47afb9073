"""An embedder for tests: every word has a place among the dimensions, so that texts with a word in common are alike."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence

import numpy as np

from notebook_sync.errors import BackendDown
from notebook_sync.search.base import Matrix


class Hashing:
    """`refuses`: what says of a text whether it cannot be embedded. `is_away`: whether nothing can."""

    is_local = True
    unrelated = 0.0

    def __init__(
        self, dimensions: int = 512, model: str = "hashing", refuses: Callable[[str], bool] | None = None
    ) -> None:
        self.model = model
        self.dimensions = dimensions
        self.refuses = refuses or (lambda _: False)
        self.is_away = False
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str], *, seconds: float | None = None) -> Matrix:
        self.asked.append(list(texts))
        if self.is_away:
            raise BackendDown("the embedder", "away")
        if any(map(self.refuses, texts)):
            raise BackendDown("the embedder", "refused")
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in re.findall(r"\w+", text.casefold()):
                row[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.dimensions] += 1
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=rows, where=lengths > 0)

    def close(self) -> None:
        pass
