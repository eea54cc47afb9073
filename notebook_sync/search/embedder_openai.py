"""Vectors from any server that speaks as OpenAI's does, local or not. What it answers is checked before it is believed.

No message repeats what the server said, which are somebody else's words.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from notebook_sync.address import Address
from notebook_sync.errors import BackendDown, ConfigError, TextRefused
from notebook_sync.openai_server import OPENAI, OpenAiServer
from notebook_sync.search.base import Matrix
from notebook_sync.settings import SearchSettings

OF_OPENAI = "openai:"


class OpenAiEmbedder:
    """`embeddings = "openai:MODEL"`. `dimensions` is 0 until the first answer tells."""

    is_local = False
    unrelated = 0.0

    def __init__(self, settings: SearchSettings, environ: Mapping[str, str]) -> None:
        self._asked_for = settings.embeddings.removeprefix(OF_OPENAI)
        self._server = OpenAiServer(
            "The embedding server",
            "search",
            base_url=settings.base_url,
            api_key_env=settings.api_key_env,
            timeout_seconds=settings.timeout_seconds,
            environ=environ,
        )
        self._lock = Lock()
        # Two servers may mean two models by one name.
        self.model = f"{settings.embeddings}@{Address.of(settings.base_url.strip() or OPENAI).place}"
        self.dimensions = 0

    def embed(self, texts: Sequence[str], *, seconds: float | None = None) -> Matrix:
        """A vector for each text, all zero for one of white space alone. Raises BackendDown.

        `timeout_seconds` is for each batch, `seconds` for all of them. Of a long text, the beginning counts.
        """
        askable = [_askable(text) for text in texts]
        rows: dict[int, Matrix] = {}
        for batch in _batches(askable):
            begun = time.monotonic()
            rows |= zip(batch, self._vectors([askable[at] for at in batch], seconds), strict=True)
            seconds = None if seconds is None else max(0.0, seconds - (time.monotonic() - begun))
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for at, row in rows.items():
            found[at] = row
        return found

    def close(self) -> None:
        """Let the connections go."""
        self._server.close()

    def _vectors(self, texts: list[str], seconds: float | None) -> Matrix:
        """What the server answers, of length 1 each, in the order of the texts."""
        given = self._given(texts, seconds)
        if len(given) != len(texts):
            raise self._wrong(f"{len(given):,} vectors for {len(texts):,} texts")
        try:
            by_index = {int(one["index"]): one["embedding"] for one in given}
            vectors = np.array([by_index[at] for at in range(len(texts))], np.float64)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise self._wrong("something else than one vector of numbers for each text") from None
        if vectors.ndim != 2 or not vectors.size or not (np.abs(vectors) <= _LARGEST_NUMBER).all():
            raise self._wrong("vectors of no numbers, or of endless ones")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (lengths > 0).all():
            raise self._wrong("a vector of zeros")
        with self._lock:
            self.dimensions = self.dimensions or vectors.shape[1]
        if vectors.shape[1] != self.dimensions:
            raise self._wrong(f"vectors of {vectors.shape[1]:,} dimensions after such of {self.dimensions:,}")
        return np.asarray(vectors / lengths, np.float32)

    def _given(self, texts: list[str], seconds: float | None) -> list[Any]:
        body = {"model": self._asked_for, "input": texts, "encoding_format": "float"}
        try:
            reply = self._server.post("/embeddings", body, seconds=seconds)
        except ConfigError as error:  # words are searched all the same
            raise BackendDown(self._server.name, str(error)) from None
        if reply.declined:
            down = self._down(f"it takes no such texts ({reply.declined}); is {self._asked_for!r} one of its models")
            raise TextRefused(down.backend, down.reason)
        try:
            given = json.loads(reply.body)["data"]
        except (ValueError, KeyError, TypeError, RecursionError):
            given = None
        if not isinstance(given, list):
            raise self._wrong("something else than vectors")
        return given

    def _wrong(self, what: str) -> BackendDown:
        return self._down(f"it answered {what}; does {self._asked_for!r} make embeddings, and is base_url right")

    def _down(self, reason: str) -> BackendDown:
        return BackendDown(self._server.name, f"{reason}? See embeddings and base_url below [search] in notebook.toml")


# Models read 8,192 tokens of a text as a rule, and fewer of those that are small.
_LONGEST = 8_000
# An answer is as long as its vectors: 32 of 4,096 dimensions are 3 MB of JSON.
_TEXTS = 32
_CHARACTERS = 40_000
_LARGEST_NUMBER = 1e9


def _askable(text: str) -> str:
    """The text as JSON in UTF-8 can hold it and a model will take it."""
    return text[:_LONGEST].encode(errors="replace").decode().replace("\0", " ").strip()


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """Which texts are asked for at a time, by number; none that is empty."""
    batch: list[int] = []
    characters = 0
    for at, text in enumerate(texts):
        if not text:
            continue
        if batch and (len(batch) == _TEXTS or characters + len(text) > _CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(at)
        characters += len(text)
    if batch:
        yield batch
