"""Which embedder the settings ask for. It loads and asks nothing before its first use."""

from __future__ import annotations

import os
from collections.abc import Mapping

from notebook_sync.search.base import Embedder
from notebook_sync.search.embedder_openai import OF_OPENAI, OpenAiEmbedder
from notebook_sync.search.static_words import StaticWords
from notebook_sync.settings import SearchSettings


def open_embedder(settings: SearchSettings, environ: Mapping[str, str] = os.environ) -> Embedder | None:
    """The embedder of these settings, None where they say "off"."""
    if settings.embeddings == "off":
        return None
    if settings.embeddings.startswith(OF_OPENAI):
        return OpenAiEmbedder(settings, environ)
    return StaticWords()
