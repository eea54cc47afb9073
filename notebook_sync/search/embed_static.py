"""Vectors of texts as sums of word vectors: offline, megabytes of text a second. Each depends on its text alone."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from pathlib import Path

import msgspec
import numpy as np

from notebook_sync.search.embed import Matrix, Rarity, Vector

_TITLE = 0.5
# A word is letters and digits; of Han and kana, one character.
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]{{1,40}}")
_REMEMBERED = 50_000
# Below it are single bytes of letters that the vocabulary lacks; the other is the space before a word.
_FIRST_TOKEN, _SPACE = 259, "▁"


class WordTable:
    """A vector for each token of a vocabulary, from the files of wordllama's package. Rows take memory when they are
    first used."""

    def __init__(self, package: Path) -> None:
        path = package / "weights" / "l2_supercat_256.safetensors"
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            (tensor,) = json.loads(file.read(size)).values()
        self._stored = np.memmap(
            path, np.float16, mode="r", offset=8 + size + tensor["data_offsets"][0], shape=tuple(tensor["shape"])
        )
        self._vectors = np.zeros(self._stored.shape, np.float32)
        self._is_ready = np.zeros(len(self._stored), bool)
        vocabulary = package / "tokenizers" / "l2_supercat_tokenizer_config.json"
        model = msgspec.json.decode(vocabulary.read_bytes(), type=dict[str, msgspec.Raw])["model"]
        known = msgspec.json.decode(model, type=dict[str, msgspec.Raw])["vocab"]
        self._tokens_by_text = msgspec.json.decode(known, type=dict[str, int])
        self._known: dict[str, tuple[int, ...]] = {}

    def embed(self, texts: Sequence[str]) -> Matrix:
        """As `Embedder.embed`: the title's words and the others' in fixed shares."""
        parts = [part for text in texts for part in text.partition("\n")[::2]]
        sums = np.array([self._sum(_WORD.findall(_lower(part))) for part in parts], np.float32)
        halves = _unit(sums.reshape(len(parts), self._vectors.shape[1]))
        return _unit(_TITLE * halves[0::2] + halves[1::2])

    def embed_query(self, query: str, rarity: Rarity) -> Vector:
        """As `Embedder.embed_query`."""
        total = np.zeros((1, self._vectors.shape[1]), np.float32)
        for word in _WORD.findall(_lower(query)):
            total += rarity(word) * self._sum([word])
        vector: Vector = _unit(total)[0]
        return vector

    def _sum(self, words: Iterable[str]) -> Vector:
        tokens = np.array(self._tokens(words), np.intp)
        new = tokens[~self._is_ready[tokens]]
        if new.size:
            rows = self._stored[new].astype(np.float32)
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            # A frequent word's vector is short. Divided by the root of its length, it still weighs less than others.
            self._vectors[new] = rows / np.sqrt(np.where(lengths > 0, lengths, 1))
            self._is_ready[new] = True
        total: Vector = np.add.reduce(self._vectors.take(tokens, axis=0))
        return total

    def _tokens(self, words: Iterable[str]) -> list[int]:
        known = self._known
        if len(known) > _REMEMBERED:
            known = self._known = {}
        for word in words:
            if word not in known:
                tokens = [self._tokens_by_text.get(piece, 0) for piece in self._pieces(word) if piece != _SPACE]
                known[word] = tuple(token for token in tokens if token >= _FIRST_TOKEN)
        return list(chain.from_iterable(map(known.__getitem__, words)))

    def _pieces(self, word: str) -> list[str]:
        """A word cut by byte-pair encoding: the merges of this model are in the order of the tokens that they make. The
        package `tokenizers` cuts it so, too, but takes 70 ms to start."""
        known, pieces = self._tokens_by_text, [_SPACE, *word]
        while merges := [(known[text], at) for at, text in enumerate(map("".join, pairwise(pieces))) if text in known]:
            _, at = min(merges)
            pieces[at : at + 2] = ["".join(pieces[at : at + 2])]
        return pieces


def _lower(text: str) -> str:
    # The vocabulary knows case: Ferry and ferry would be as different as two words.
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).lower()


def _unit(vectors: Matrix) -> Matrix:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)
