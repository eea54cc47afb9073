"""What makes vectors of texts, and which one the settings name.

A text in which the model knows nothing has the vector that is like no other. This module imports no model, which most
commands never need.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from notebook_sync.errors import BackendDown, missing_extra
from notebook_sync.files.state import expanded
from notebook_sync.search.vectors import Vector, pack_vector
from notebook_sync.settings import SearchTable, mask_secrets

if TYPE_CHECKING:
    from notebook_sync.search.embed_static import WordTable

# How rare a word is among the notes.
Rarity: TypeAlias = Callable[[str], float]

TABLE = Path(__file__).with_name("static")
OPENAI = "https://api.openai.com/v1"
# Most models read 8,192 tokens of a text, and the small ones fewer. 32 vectors of 4,096 numbers are 3 MB of JSON.
_LONGEST_TEXT, _BATCH = 8_000, 32
_LARGEST_ANSWER = 32 << 20
_LARGEST_NUMBER = 1e9
_MOST_TOKENS, _THREADS = 160, 2
_TEXT_REFUSED = (400, 413, 415, 422)


class TextRefused(BackendDown):
    """The server answers, and takes no such text."""


class Embedder(Protocol):
    """Makes vectors. May be used by several threads.

    `model` says how: vectors of two models are never compared. `is_local`: no server is asked. `unrelated`: texts that
    have nothing in common are less alike than this. Methods raise BackendDown where there is no answer, TextRefused
    where the server takes no such text, MissingExtra where a package is missing.
    """

    model: str
    is_local: bool
    unrelated: float

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """One for each text, whose first line is its title."""

    def embed_query(self, query: str, rarity: Rarity) -> Vector:
        """The vector of a query. `rarity` weighs its words where the model adds up words; others know what is rare."""
        return self.embed([query])[0]


def embedder_of(settings: SearchTable, environ: Mapping[str, str] = os.environ) -> Embedder | None:
    """The embedder of the settings, None for "off". Nothing is loaded, and nobody asked, before it is used."""
    if settings.embeddings == "off":
        return None
    if settings.embeddings == "wordllama":
        return StaticEmbedder()
    return OpenAiEmbedder(settings, environ)


def second_stage_of(settings: SearchTable, root: Path, environ: Mapping[str, str] = os.environ) -> Embedder | None:
    """The embedder of `search.second_stage`, None for "". It changes the order of what a search found, never what is
    found: its cosines are added to the scores. A relative folder is in the notebook."""
    kind, _, name = settings.second_stage.partition(":")
    if kind == "openai":
        return OpenAiEmbedder(replace(settings, embeddings=settings.second_stage), environ)
    return OnnxEmbedder(root / expanded(name)) if kind == "onnx" else None


class StaticEmbedder:
    """wordllama's table of word vectors, of which this package has what texts need."""

    model = "wordllama-256/2"
    is_local = True
    unrelated = 0.1

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """As `Embedder.embed`."""
        return self._table().embed(texts)

    def embed_query(self, query: str, rarity: Rarity) -> Vector:
        """As `Embedder.embed_query`."""
        return self._table().embed_query(query, rarity)

    @staticmethod
    @cache
    def _table() -> WordTable:
        """The table, which a process reads once."""
        from notebook_sync.search.embed_static import WordTable  # most commands never need it

        try:
            return WordTable(TABLE)
        except (OSError, ValueError) as error:
            raise BackendDown("the table of word vectors", f"it cannot be read ({error})") from None


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Answer(msgspec.Struct):
    data: list[_Embedding]


class OpenAiEmbedder(Embedder):
    """Vectors from any server that speaks as OpenAI's does: `embeddings = "openai:MODEL"` at `base_url`, and nothing is
    sent anywhere else. No message repeats what the server said, which is text of others, and none holds the key."""

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

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """As `Embedder.embed`; of a long text, the beginning counts."""
        cleaned = [text[:_LONGEST_TEXT].encode(errors="replace").decode().strip("\0 \n") for text in texts]
        wanted = [text for text in cleaned if text]
        batches = [wanted[start : start + _BATCH] for start in range(0, len(wanted), _BATCH)]
        vectors = [vector for batch in batches for vector in self._vectors(batch)]
        sizes = {len(vector) for vector in vectors} or {1}
        if len(sizes) > 1:
            raise self._wrong()
        answers = iter(vectors)
        return [next(answers) if text else bytes(*sizes) for text in cleaned]

    def _vectors(self, texts: list[str]) -> list[Vector]:
        """What the server answers, in the order of the texts."""
        body = {"model": self._wanted, "input": texts, "encoding_format": "float"}
        try:
            rows = sorted(msgspec.json.decode(self._post(body), type=_Answer).data, key=attrgetter("index"))
        except (msgspec.MsgspecError, RecursionError):
            raise self._wrong() from None
        usable = (0 < max(map(abs, row.embedding), default=0.0) <= _LARGEST_NUMBER for row in rows)
        if [row.index for row in rows] != [*range(len(texts))] or not all(usable):
            raise self._wrong()
        return [pack_vector(row.embedding) for row in rows]

    def _post(self, body: dict[str, Any]) -> bytes:
        with missing_extra("an embedding server", "llm"):
            import httpx2  # takes a tenth of a second, and most commands ask no server
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


class OnnxEmbedder(Embedder):
    """A model of sentences in a folder with `model.onnx` and `tokenizer.json`, as exported from a transformer: it takes
    token ids and a mask, and answers with a vector for each text, or for each token, of which the mean counts."""

    is_local = True
    unrelated = 0.0

    def __init__(self, folder: Path) -> None:
        self._files = folder / "model.onnx", folder / "tokenizer.json"
        sizes = "/".join(str(file.stat().st_size) for file in self._files if file.is_file())
        # Another model in the same folder makes other vectors.
        self.model = f"onnx:{folder}:{sizes}"

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """As `Embedder.embed`; of a long text, the first 160 tokens count."""
        by_length = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found: dict[int, Vector] = {}
        for start in range(0, len(texts), _BATCH):
            batch = by_length[start : start + _BATCH]
            found |= zip(batch, self._vectors([texts[at] for at in batch]), strict=True)
        return [found[at] for at in range(len(texts))]

    def _vectors(self, texts: list[str]) -> list[Vector]:
        tokenizer, session = self._loaded
        import numpy as np  # of onnxruntime

        encoded = tokenizer.encode_batch([text.encode(errors="replace").decode() for text in texts])
        mask = np.array([each.attention_mask for each in encoded], np.int64)
        inputs = {
            "input_ids": np.array([each.ids for each in encoded], np.int64),
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(mask),
        }
        try:
            wanted = {each.name: inputs[each.name] for each in session.get_inputs()}
            answer = np.asarray(session.run(None, wanted)[0], np.float32)
        except Exception as error:  # onnxruntime's own errors have no common class
            raise self._unusable(error) from None
        if answer.ndim == 3:
            answer = (answer * mask[:, :, None]).sum(axis=1) / np.maximum(mask.sum(axis=1, keepdims=True), 1)
        if answer.ndim != 2 or len(answer) != len(texts) or not np.isfinite(answer).all():
            raise self._unusable(f"its answer has the shape {answer.shape}")
        return [pack_vector(numbers) for numbers in answer.tolist()]

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        with missing_extra("the second stage of search", "search,onnx"):
            import onnxruntime  # as large as the rest of the product together
            from tokenizers import Tokenizer
        model, vocabulary = map(str, self._files)
        try:
            tokenizer = Tokenizer.from_file(vocabulary)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = _THREADS
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # both packages raise their own
            raise self._unusable(error) from None
        tokenizer.enable_truncation(_MOST_TOKENS)
        tokenizer.enable_padding()
        return tokenizer, session

    def _unusable(self, reason: object) -> BackendDown:
        said = str(reason).partition("\n")[0][:200]
        return BackendDown(f"the model in {self._files[0].parent}", f"it needs model.onnx and tokenizer.json ({said})")
