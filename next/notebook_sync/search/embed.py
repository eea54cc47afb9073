"""The port of what makes vectors of texts, and which one the settings name.

A vector is float32 and of length 1, or all zeros for a text in which the model knows nothing: like no other text. This
module imports neither numpy nor a model, which most commands never need.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from notebook_sync.errors import BackendDown, MissingExtra
from notebook_sync.settings import SearchTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from notebook_sync.search.embed_static import WordTable

Matrix: TypeAlias = "NDArray[np.float32]"
Vector: TypeAlias = "NDArray[np.float32]"
# How rare a word is among the notes.
Rarity: TypeAlias = Callable[[str], float]


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

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row for each text, whose first line is its title."""

    def embed_query(self, query: str, rarity: Rarity) -> Vector:
        """The vector of a query. `rarity` weighs its words where the model adds up words."""


def embedder_of(settings: SearchTable, environ: Mapping[str, str] = os.environ) -> Embedder | None:
    """The embedder of the settings, None for "off". Nothing is loaded, and nobody asked, before it is used."""
    if settings.embeddings == "off":
        return None
    if settings.embeddings == "wordllama":
        return StaticEmbedder()
    from notebook_sync.search.embed_openai import OpenAiEmbedder

    return OpenAiEmbedder(settings, environ)


class StaticEmbedder:
    """wordllama's table of word vectors, whose files are read directly: importing that package takes a second and tries
    to download, and looking up and adding needs none of it."""

    model = "wordllama-256/1"
    is_local = True
    unrelated = 0.1

    def embed(self, texts: Sequence[str]) -> Matrix:
        """As `Embedder.embed`."""
        return self._table.embed(texts)

    def embed_query(self, query: str, rarity: Rarity) -> Vector:
        """As `Embedder.embed_query`."""
        return self._table.embed_query(query, rarity)

    @cached_property
    def _table(self) -> WordTable:
        try:
            from notebook_sync.search.embed_static import WordTable

            package = importlib.util.find_spec("wordllama")  # does not import it
            return WordTable(Path(package.origin or "").parent if package else Path())
        except (ImportError, FileNotFoundError):
            raise MissingExtra("search by meaning", "search") from None
        except Exception as error:  # tokenizers raises Exception itself
            raise BackendDown("wordllama's table", f"it cannot be read ({error})") from None
