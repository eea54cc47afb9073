"""The opt-in second stage: a model of sentences, whose similarity is added to the score of what the search found.

It changes the order, never what is found. Its vectors are made in the background; where they, the model or its server
are missing, the score is the first stage's, and the answer says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from notebook_sync.errors import BackendDown, MissingExtra
from notebook_sync.search.embed import Embedder, Matrix, OpenAiEmbedder, Rarity, Vector
from notebook_sync.settings import SearchTable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MOST_TOKENS, _BATCH, _THREADS = 160, 32, 2


def second_stage_of(settings: SearchTable, root: Path, environ: Mapping[str, str] = os.environ) -> Embedder | None:
    """The embedder of `search.second_stage`, None for "". A relative folder is in the notebook. Nothing is loaded, and
    nobody asked, before it is used."""
    kind, _, name = settings.second_stage.partition(":")
    if kind == "openai":
        return OpenAiEmbedder(replace(settings, embeddings=settings.second_stage), environ)
    return OnnxEmbedder(root / Path(name).expanduser()) if kind == "onnx" else None


class OnnxEmbedder:
    """A model of sentences in a folder with `model.onnx` and `tokenizer.json`, as exported from a transformer: it takes
    token ids and a mask, and answers with a vector for each text, or for each token, of which the mean counts."""

    is_local = True
    unrelated = 0.0

    def __init__(self, folder: Path) -> None:
        self._files = folder / "model.onnx", folder / "tokenizer.json"
        sizes = "/".join(str(file.stat().st_size) for file in self._files if file.is_file())
        # Another model in the same folder makes other vectors.
        self.model = f"onnx:{folder}:{sizes}"

    def embed(self, texts: Sequence[str]) -> Matrix:
        """As `Embedder.embed`; of a long text, the first 160 tokens count."""
        import numpy as np  # of the extra, as all that makes vectors

        by_length = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found: Matrix = np.zeros((len(texts), 1), np.float32)
        for start in range(0, len(texts), _BATCH):
            batch = by_length[start : start + _BATCH]
            vectors = self._vectors([texts[at] for at in batch])
            if found.shape[1] != vectors.shape[1]:
                found = np.zeros((len(texts), vectors.shape[1]), np.float32)
            found[batch] = vectors
        return found

    def embed_query(self, query: str, rarity: Rarity) -> Vector:
        """As `Embedder.embed_query`; the model knows itself what is rare."""
        vector: Vector = self.embed([query])[0]
        return vector

    def _vectors(self, texts: list[str]) -> Matrix:
        import numpy as np

        tokenizer, session = self._loaded
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
        lengths = np.linalg.norm(answer, axis=1, keepdims=True)
        return np.asarray(answer / np.where(lengths > 0, lengths, 1), np.float32)

    @cached_property
    def _loaded(self) -> tuple[Tokenizer, Any]:
        try:
            import onnxruntime  # as large as the rest of the product together
            from tokenizers import Tokenizer
        except ImportError:
            raise MissingExtra("the second stage of search", "search,onnx") from None
        model, vocabulary = map(str, self._files)
        try:
            tokenizer: Tokenizer = Tokenizer.from_file(vocabulary)
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
