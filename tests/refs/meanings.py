"""Meanings that a test can read: each axis is a few words that mean the same."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from notebook_sync.refs.base import Meaning, Model
from notebook_sync.search.base import Matrix

AXES = (
    "ferry boat vessel",
    "late delayed",
    "harbour port quay",
    "key lock",
    "lamp light",
    "odile",
    "ines",
    "storm gale",
)


class Axes:
    """`made` is every text that was embedded."""

    def __init__(self, name: str = "axes", dimensions: int = len(AXES)) -> None:
        self.model = Model(name, dimensions)
        self.made: list[str] = []

    def embed(self, texts: Sequence[str]) -> Matrix:
        self.made += texts
        rows = np.zeros((len(texts), self.model.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            words = set(re.findall(r"\w+", text.casefold()))
            row[: len(AXES)] = [not words.isdisjoint(axis.split()) for axis in AXES]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=rows, where=lengths > 0)

    def meaning(self, query: str, *, is_local: bool = True) -> Meaning:
        """What a query means; of a server, nothing else is asked meanwhile."""
        (vector,) = Axes(self.model.name, self.model.dimensions).embed([query])
        return Meaning(self.model, vector, 0.1, self.embed if is_local else None)
