"""Vectors from any server that speaks as OpenAI's does, local or not. Its answers are validated before they are used.

No message repeats what the server said, which is text of others, and none holds the key.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from notebook_sync.errors import BackendDown, MissingExtra
from notebook_sync.search.embed import Matrix, Rarity, TextRefused, Vector
from notebook_sync.settings import SearchTable, mask_secrets

OPENAI = "https://api.openai.com/v1"
# Most models read 8,192 tokens of a text, and the small ones fewer. 32 vectors of 4,096 numbers are 3 MB of JSON.
_LONGEST_TEXT, _BATCH = 8_000, 32
_LARGEST_ANSWER = 32 << 20
_LARGEST_NUMBER = 1e9
_TEXT_REFUSED = (400, 413, 415, 422)


class OpenAiEmbedder:
    """`embeddings = "openai:MODEL"` at `base_url`. Nothing is sent anywhere else."""

    is_local = False
    unrelated = 0.0

    def __init__(self, settings: SearchTable, environ: Mapping[str, str]) -> None:
        self._wanted = settings.embeddings.removeprefix("openai:")
        self._url = settings.base_url.strip().rstrip("/") or OPENAI
        self._key = environ.get(settings.api_key_env, "").strip()
        self._seconds = settings.timeout_seconds
        place = mask_secrets(self._url)
        self._name = f"the embedding server at {place}"
        # Two servers may have two models of one name.
        self.model = f"{settings.embeddings}@{place}"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """As `Embedder.embed`; of a long text, the beginning counts."""
        import numpy as np

        cleaned = [text[:_LONGEST_TEXT].encode(errors="replace").decode().strip("\0 \n") for text in texts]
        wanted = [at for at, text in enumerate(cleaned) if text]
        batches = [wanted[start : start + _BATCH] for start in range(0, len(wanted), _BATCH)]
        answers = [self._vectors([cleaned[at] for at in batch]) for batch in batches]
        sizes = {answer.shape[1] for answer in answers} or {1}
        if len(sizes) > 1:
            raise self._wrong()
        found = np.zeros((len(texts), *sizes), np.float32)
        for batch, answer in zip(batches, answers, strict=True):
            found[batch] = answer
        return found

    def embed_query(self, query: str, rarity: Rarity) -> Vector:
        """As `Embedder.embed_query`; the model knows itself what is rare."""
        vector: Vector = self.embed([query])[0]
        return vector

    def _vectors(self, texts: list[str]) -> Matrix:
        """What the server answers, each of length 1, in the order of the texts."""
        import numpy as np

        try:
            rows = json.loads(self._post({"model": self._wanted, "input": texts, "encoding_format": "float"}))["data"]
            by_index = {int(row["index"]): row["embedding"] for row in rows}
            vectors = np.array([by_index[at] for at in range(len(texts))], np.float64)
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
            raise self._wrong() from None
        if len(rows) != len(texts) or vectors.ndim != 2 or not (np.abs(vectors) <= _LARGEST_NUMBER).all():
            raise self._wrong()
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (lengths > 0).all():
            raise self._wrong()
        return np.asarray(vectors / lengths, np.float32)

    def _post(self, body: dict[str, Any]) -> bytes:
        try:
            import httpx2  # takes a tenth of a second, and most commands ask no server
        except ImportError:
            raise MissingExtra("an embedding server", "llm") from None
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        until = time.monotonic() + self._seconds
        answer = bytearray()
        try:
            with httpx2.stream(
                "POST", f"{self._url}/embeddings", json=body, headers=headers, timeout=self._seconds
            ) as response:
                for piece in response.iter_bytes():
                    answer += piece
                    # The timeout is for each piece, and a server may send one now and then for ever.
                    if len(answer) > _LARGEST_ANSWER or time.monotonic() > until:
                        raise BackendDown(self._name, "its answer is too large, or takes too long")
        except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
            raise BackendDown(self._name, type(error).__name__) from None
        if response.status_code in _TEXT_REFUSED:
            raise TextRefused(self._name, f"it refuses a text, or has no model {self._wanted!r}")
        if response.status_code != 200:
            raise BackendDown(self._name, f"status {response.status_code}; are search.base_url and api_key_env right?")
        return bytes(answer)

    def _wrong(self) -> BackendDown:
        reason = f"it answered something else than one vector for each text; does {self._wanted!r} make embeddings?"
        return BackendDown(self._name, reason)
