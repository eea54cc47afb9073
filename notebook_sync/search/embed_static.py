"""Vectors of texts as sums of word vectors: offline, megabytes of text a second. Each depends on its text alone.

The table is in `static`: `words.txt` has parts of words, in the order in which they are joined, and `vectors.bin` a
vector for each, of numbers from 0 for -128 to 255 for 127. `tests/search/word_table.py` makes both of wordllama's.
"""

from __future__ import annotations

import math
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from pathlib import Path

from notebook_sync.search.embed import Rarity
from notebook_sync.search.vectors import Vector, pack_vector

SIZE = 256
_ZERO = 128
_TITLE = 0.5
# A word is letters and digits; of Han and kana, one character.
_ALONE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]{{1,40}}")
_REMEMBERED = 50_000
# So many numbers below 256 add up to one that fits into two bytes.
_AT_ONCE = 257
SPACE = "▁"  # before a word
_LANES = f"<{SIZE}H"


class WordTable:
    """A vector for each part of a word. Rows take memory when they are first used."""

    def __init__(self, folder: Path) -> None:
        self._vectors = (folder / "vectors.bin").read_bytes()
        parts = (folder / "words.txt").read_text(encoding="utf-8").split()
        self._tokens_by_text = {part: token for token, part in enumerate(parts)}
        if len(self._vectors) != SIZE * len(parts):
            raise ValueError(f"{len(parts)} words, {len(self._vectors)} bytes of vectors")
        self._known: dict[str, tuple[int, ...]] = {}
        self._lanes: dict[int, int] = {}

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """As `Embedder.embed`: the title's words and the others' in fixed shares."""
        titles: dict[str, list[float]] = {}  # which passages of a note share
        vectors = []
        for title, _, rest in (text.partition("\n") for text in texts):
            if title not in titles:
                titles[title] = _of_length(_TITLE, self._sum(_words(title)))
            halves = zip(titles[title], _of_length(1, self._sum(_words(rest))), strict=True)
            vectors.append(pack_vector([one + other for one, other in halves]))
        return vectors

    def embed_query(self, query: str, rarity: Rarity) -> Vector:
        """As `Embedder.embed_query`."""
        total = [0.0] * SIZE
        for word, count in Counter(_words(query)).items():
            weight = count * rarity(word)
            total = [before + weight * number for before, number in zip(total, self._sum([word]), strict=True)]
        return pack_vector(total)

    def _sum(self, words: Sequence[str]) -> list[int]:
        """The sum of the vectors of words."""
        tokens = self._tokens(words)
        total = [0] * SIZE
        for start in range(0, len(tokens), _AT_ONCE):
            some = tokens[start : start + _AT_ONCE]
            lanes = sum(map(self._lanes_of, some)).to_bytes(2 * SIZE, "little")
            shift = _ZERO * len(some)
            total = [before + lane - shift for before, lane in zip(total, struct.unpack(_LANES, lanes), strict=True)]
        return total

    def _lanes_of(self, token: int) -> int:
        """A vector as one integer, two bytes for each number: to add two of them adds all numbers at once, exactly."""
        if token not in self._lanes:
            wide = bytearray(2 * SIZE)
            wide[::2] = self._vectors[token * SIZE : (token + 1) * SIZE]
            self._lanes[token] = int.from_bytes(wide, "little")
        return self._lanes[token]

    def _tokens(self, words: Iterable[str]) -> list[int]:
        known = self._known
        if len(known) > _REMEMBERED:
            known = self._known = {}
        for word in words:
            if word not in known:
                tokens = (self._tokens_by_text.get(piece) for piece in self._pieces(word) if piece != SPACE)
                known[word] = tuple(token for token in tokens if token is not None)
        return list(chain.from_iterable(map(known.__getitem__, words)))

    def _pieces(self, word: str) -> list[str]:
        """A word cut by byte-pair encoding: the merges of this model are in the order of the tokens that they make. The
        package `tokenizers` cuts it so, too, but takes 70 ms to start."""
        known, pieces = self._tokens_by_text, [SPACE, *word]
        while merges := [(known[text], at) for at, text in enumerate(map("".join, pairwise(pieces))) if text in known]:
            _, at = min(merges)
            pieces[at : at + 2] = ["".join(pieces[at : at + 2])]
        return pieces


def lower(text: str) -> str:
    """A text as the table knows its words: else, Ferry and ferry would be as different as two words."""
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).lower()


def _words(text: str) -> list[str]:
    return WORD.findall(lower(text))


def _of_length(length: float, numbers: Sequence[int]) -> list[float]:
    """These numbers as a vector of this length, or all 0."""
    factor = length / (math.hypot(*numbers) or 1.0)
    return [number * factor for number in numbers]
