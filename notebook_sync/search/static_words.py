"""Vectors of texts from a table of word vectors: offline, on any machine, megabytes of text a second.

The table is that of the package wordllama, whose own code is not imported: that takes a second, and looking up and
adding needs none of it. A text's vector depends on that text alone, never on the notes beside it.
"""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from notebook_sync.errors import BackendDown
from notebook_sync.search.base import Matrix

if TYPE_CHECKING:
    from tokenizers import Tokenizer

DIMENSIONS = 256


class StaticWords:
    """What a text's words mean on average. Of a text of several lines, the first is what the others are about, and
    counts as much as all of them. The table is loaded once a process, at the first use."""

    model = f"wordllama-{DIMENSIONS}"
    dimensions = DIMENSIONS
    is_local = True
    # Two words, as of a boat's departure, are no more than 0.2 like the sentence that they are about.
    unrelated = 0.1

    def embed(self, texts: Sequence[str], *, seconds: float | None = None) -> Matrix:
        """A vector for each text, all zero for one without a word. Raises BackendDown where the table is missing."""
        table = _table()
        parts = [part for text in texts for part in _first_and_rest(text)]
        halves = _unit(table.sums(parts)).reshape(len(texts), 2, DIMENSIONS)
        return _unit(halves.sum(axis=1))

    def close(self) -> None:
        """Nothing is open."""


def _first_and_rest(text: str) -> tuple[str, str]:
    first, _, rest = text.strip().partition("\n")
    return first, rest


def _unit(vectors: Matrix) -> Matrix:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


# A word is letters and digits; of scripts that part no words, a letter. What stands between has no meaning of its own.
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]{{1,40}}")
_MOST_KNOWN = 50_000
# Tokens whose vectors are added at a time: of a passage all, of a huge text what the processor's cache holds.
_AT_ONCE = 1_000
# Below it are the bytes of letters that the vocabulary has not; the other is the space before a word, by itself.
_FIRST_TOKEN, _SPACE = 259, "▁"


class _Table:
    """A vector for each token of a vocabulary. The vectors' own lengths weigh them: frequent words have short ones."""

    def __init__(self, vectors: NDArray[np.float16], tokenizer: Tokenizer) -> None:
        self._vectors = vectors.astype(np.float32)
        self._tokenizer = tokenizer
        self._space = tokenizer.token_to_id(_SPACE)
        self._known: dict[str, tuple[int, ...]] = {}

    def sums(self, texts: Sequence[str]) -> Matrix:
        """The sum of the vectors of each text's tokens."""
        sums = np.zeros((len(texts), DIMENSIONS), np.float32)
        for at, text in enumerate(texts):
            tokens = list(self._tokens(text))
            for start in range(0, len(tokens), _AT_ONCE):
                sums[at] += np.add.reduce(self._vectors.take(tokens[start : start + _AT_ONCE], axis=0))
        return sums

    def _tokens(self, text: str) -> Iterable[int]:
        # Words without case, though the vocabulary knows it: Ferry and ferry are otherwise as different as two words.
        words = _WORD.findall((text if text.isascii() else unicodedata.normalize("NFC", text)).lower())
        known = self._known
        if len(known) > _MOST_KNOWN:
            known = self._known = {}
        for word in words:
            if word not in known:
                ids = self._tokenizer.encode(word, add_special_tokens=False).ids
                known[word] = tuple(token for token in ids if token >= _FIRST_TOKEN and token != self._space)
        return chain.from_iterable(map(known.__getitem__, words))


@cache
def _table() -> _Table:
    found = importlib.util.find_spec("wordllama")  # which does not import it
    if found is None or found.origin is None:
        raise BackendDown(_NAME, _MISSING.format("it is not installed"))
    folder = Path(found.origin).parent
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        vectors = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
        tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    except Exception as error:  # tokenizers raises Exception itself
        raise BackendDown(_NAME, _MISSING.format(error)) from None
    return _Table(vectors, tokenizer)


_NAME = "The table of word vectors"
_MISSING = (
    "the package wordllama cannot be read ({}); install wordllama 0.4 again, or say "
    'embeddings = "off" below [search] in notebook.toml'
)
