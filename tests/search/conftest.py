"""An empty index, notes as sync writes them to it, and an embedder that needs no model."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.search.embed import Embedder, TextRefused
from notebook_sync.search.query import Found
from notebook_sync.search.terms import search_columns
from notebook_sync.search.vectors import Vector, pack_vector
from notebook_sync.search.words import WordAnalyzer
from notebook_sync.store.index import Index
from notebook_sync.store.rows import Row
from prompt.outline import Outline
from tests.search.embedding_server import EmbeddingServer, embedding_server

ANALYZER = WordAnalyzer()


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An empty index."""
    with closing(Index(tmp_path / "index.db", ANALYZER)) as made:
        yield made


def ids(found: Found) -> list[str]:
    """The ids of what was found, in order."""
    return [hit.id.removeprefix("pages/") for hit in found.hits]


def sections_of(content: str) -> list[list[Any]]:
    """The sections of a text without frontmatter, as rows hold them."""
    return [
        [each.title, each.level, each.anchor, content.count("\n", 0, each.start) + 1, each.start, each.end]
        for each in Outline(content).sections
    ]


def document(path: str, content: str, *, audience: str = "", status: str = "draft") -> Row:
    """The row of a note; its title is the first heading, else the file's name."""
    sections = sections_of(content)
    title = sections[0][0] if sections else path.rpartition("/")[2].removesuffix(".md")
    return {
        "id": path.removesuffix(".md"),
        "path": path,
        "collection": "pages",
        "audience": audience,
        "title": title,
        "summary": "",
        "status": status,
        "word_count": len(content.split()),
        "updated_at": datetime(2026, 3, 1, tzinfo=UTC),
        "digest": content,
        "content": content,
        "sections": sections,
        **search_columns(ANALYZER, content, title=title, sections=sections),
    }


def fact(id: str, content: str, *, audience: str = "") -> Row:
    """The row of a fact."""
    return {"id": id, "content": content, "audience": audience, **search_columns(ANALYZER, content)}


def add(index: Index, notes: Mapping[str, str], *, audience: str = "") -> None:
    """Put notes by path."""
    index.documents.put([document(path, content, audience=audience) for path, content in notes.items()])


class FakeEmbedder(Embedder):
    """Texts that share words, cut to four letters, are alike. `before` is called with the texts of each call, and may
    raise; texts that hold `refused` are refused."""

    model = "fake"
    unrelated = 0.0

    def __init__(self, *, is_local: bool = True, refused: str = "\0") -> None:
        self.is_local = is_local
        self.refused = refused
        self.before: Callable[[Sequence[str]], None] = lambda _texts: None
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.before(texts)
        self.asked += texts
        if any(self.refused in text for text in texts):
            raise TextRefused("a server", "it refuses this")
        words = (Counter(zlib.crc32(word[:4].encode()) % 64 for word in ANALYZER.terms(text)) for text in texts)
        return [pack_vector([counts[at] for at in range(64)]) for counts in words]
