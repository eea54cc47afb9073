"""The port of what is known of memories: what their notes say of themselves, how they are linked, how they are used.

Glossary

memory    a note in `memories/`: what its frontmatter says is in the mirror's row of the note, written with it
link      one of its `relations`, from it to another memory; the other need not be there
usage     how often a memory was used and when last; of the program, in no file; a rebuild keeps it
score     what a memory counted for when scores were last computed, 0 to 1
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from notebook_sync.files.memories import DEFAULT_PRIORITY, KINDS, PARTS, RELATIONS
from notebook_sync.mirror.document import askable

__all__ = [
    "DEFAULT_PRIORITY",
    "KINDS",
    "PARTS",
    "RELATIONS",
    "UNSCORED",
    "Link",
    "Memory",
    "MemoryRows",
    "Sought",
    "folded",
    "marks",
]

UNSCORED = 0.5
"""What a memory counts for among others until its score was computed: about what a new one gets."""


@dataclass(frozen=True, slots=True)
class Link:
    """`confidence` from 0 to 1; `source` is who says so, `synthesis_id` in which synthesis, "" where in none."""

    type: str
    to: str
    confidence: float = 1.0
    reasoning: str = ""
    source: str = ""
    synthesis_id: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory without its text. `kind` is one of KINDS, "" for one that has no structure; `agent` is "" where nobody
    is known to have said it; `created_from` tells what `created_at` was taken from: frontmatter, git or file; `missing`
    are those of PARTS that its text lacks."""

    id: str
    path: str
    title: str
    summary: str
    kind: str
    domain: str
    tags: tuple[str, ...]
    agent: str
    priority: int
    needs_review: bool
    provenance: str | None
    status: str
    created_at: datetime
    created_from: str
    updated_at: datetime
    version: int
    digest: str
    relations: tuple[Link, ...] = ()
    accesses: int = 0
    last_accessed: datetime | None = None
    score: float | None = None
    missing: tuple[str, ...] = ()

    @property
    def is_structured(self) -> bool:
        """Whether it is of a kind and has every part."""
        return bool(self.kind) and not self.missing


@dataclass(frozen=True, slots=True)
class Sought:
    """What memories are sought by. Those of `only_domains`, where any are named, with none of `without_tags`, and, with
    `own_words`, none where somebody else's words stand; those first that match the most of the rest. Letters count
    alike whether they are capitals or not."""

    tags: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    only_domains: frozenset[str] = frozenset()
    without_tags: frozenset[str] = frozenset()
    own_words: bool = False


def folded(text: str) -> str:
    """A domain or tag as it is compared."""
    return " ".join(text.split()).casefold()


def marks(of: str, texts: Iterable[str]) -> list[str]:
    """What memories are sought by, as stores keep it: `of` is d for domains, k for kinds, t for tags, p for provenance.

    A lone surrogate is in none that is kept.
    """
    return sorted({f"{of}:{askable(' '.join(text.split()).casefold())}" for text in texts if text})


class MemoryRows(Protocol):
    """Beside the mirror's rows, in its store. May be used from several threads and processes.

    Every method may raise BackendDown; no adapter lets a driver's own error out.
    """

    def of(self, ids: Collection[str]) -> dict[str, Memory]:
        """These memories, by id; those that are no memories, or gone, are left out."""

    def sought(self, sought: Sought, limit: int) -> list[Memory]:
        """Those that match best first (a domain counts as two tags, a kind as one), of even ones those with the highest
        score (UNSCORED where there is none), then by id. All that may be found are, also those that match nothing."""

    def all(self) -> Iterator[Memory]:
        """Every memory, in id order, streamed."""

    def for_review(self) -> Iterator[Memory]:
        """Those that wait for a review, in id order, streamed; no others are read for that."""

    def linking_to(self, ids: Collection[str]) -> dict[str, list[tuple[str, Link]]]:
        """By id, the links to each of these: from which memory, and how."""

    def used(self, ids: Collection[str], at: datetime) -> None:
        """Count a use of each that there is."""

    def put_scores(self, scores: Mapping[str, float], at: datetime) -> None:
        """Keep these scores, and forget usage and scores of memories that have been gone for a year. `at` is now."""

    def restore_usage(self, usage: Sequence[tuple[str, int, datetime | None]]) -> None:
        """`(id, accesses, last accessed)`: what an import knows of memories that have no usage yet."""

    def close(self) -> None:
        """Release connections. Twice is allowed."""
