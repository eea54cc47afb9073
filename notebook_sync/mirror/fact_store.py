"""What all stores of facts do alike: questions that are answered from all rows at once, and what may be written.

Facts are few, some thousands of lines that a person looks through: none of these asks the database for more than them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from notebook_sync.errors import BackendDown, UsageError
from notebook_sync.files.facts import id_of, order_of
from notebook_sync.mirror.document import to_milliseconds
from notebook_sync.mirror.facts import DECAY_RATE, SCOPES, Alike, Embedding, Fact, Lacking, Place, Scope, standing

if TYPE_CHECKING:
    from notebook_sync.mirror.facts import Vector


class FactStore(ABC):
    """The part of `FactRows` that no database has to know of."""

    def __init__(self, embedder: Embedding | None = None, decay_rate: float = DECAY_RATE) -> None:
        """`decay_rate` is that of facts that have none of their own; `embedder` is asked for by a search alone, and
        gives None where there is none."""
        self._embedder = embedder or (lambda: None)
        self._decay_rate = decay_rate

    @abstractmethod
    def _rows(self, note_ids: Collection[str] | None) -> list[Fact]:
        """Rows with the place that they last had; all for None."""

    @abstractmethod
    def _places(self, note_ids: Collection[str] | None) -> list[Place]:
        """Where these facts stand; all places for None."""

    @abstractmethod
    def vectors(self, model: str) -> Mapping[str, Vector]: ...

    def places(self) -> list[Place]:
        return self._places(None)

    def get_note(self, note_id: str) -> Fact | None:
        return self.get_many([note_id]).get(note_id)

    def get_many(self, note_ids: Collection[str]) -> dict[str, Fact]:
        return {fact.note_id: fact for fact in self._facts(note_ids)} if note_ids else {}

    def rows(self) -> list[Fact]:
        return sorted(self._facts(None), key=lambda fact: fact.note_id)

    def all(self, scope: Scope = "notes", section: str = "") -> list[Fact]:
        if scope not in SCOPES:
            raise UsageError(f"facts have no scope {scope!r}; there are {', '.join(SCOPES)}")
        found = (fact for fact in self._facts(None) if fact.is_in(scope))
        wanted = (fact for fact in found if not section or fact.section.casefold() == section.casefold())
        return sorted(wanted, key=lambda fact: (order_of(fact.path), fact.line, fact.note_id))

    def get_recent_notes(self, limit: int = 20, section: str = "", scope: Scope = "notes") -> list[Fact]:
        found = sorted(self.all(scope, section), key=lambda fact: fact.updated_at, reverse=True)
        return found[: max(limit, 0)]

    def get_by_importance_range(
        self, low: float = 0.0, high: float = 1.0, limit: int = 50, scope: Scope = "notes"
    ) -> list[Fact]:
        found = [fact for fact in self.all(scope) if low <= fact.importance <= high]
        return sorted(found, key=lambda fact: -fact.importance)[: max(limit, 0)]

    def get_stale_notes(
        self, days: float = 30, limit: int = 50, *, now: datetime | None = None, scope: Scope = "notes"
    ) -> list[Fact]:
        until = moment(now) - timedelta(days=days)
        found = [fact for fact in self.all(scope) if _last_use(fact) <= until]
        return sorted(found, key=_last_use)[: max(limit, 0)]

    def search_similar(
        self, asked: str | Sequence[float] | Vector, limit: int = 10, section: str = "", scope: Scope = "notes"
    ) -> list[Alike]:
        facts = self.all(scope, section)
        found = self._by_meaning(asked, facts)
        if isinstance(asked, str):
            compared = {one.fact.note_id for one in found}
            found += _by_words(asked, [fact for fact in facts if fact.note_id not in compared])
        return sorted(found, key=lambda one: (-one.similarity, one.fact.note_id))[: max(limit, 0)]

    def without_vector(self, model: str, limit: int = 1000, *, dimensions: int | None = None) -> list[Fact]:
        known = self._vectors_of(model, dimensions)
        found = (fact for fact in self.all("all") if fact.note_id not in known)
        return sorted(found, key=lambda fact: fact.note_id)[: max(limit, 0)]

    def lacking(self, model: str, *, dimensions: int | None = None) -> Lacking:
        known = self._vectors_of(model, dimensions)
        facts = self.all("all")
        having = [known[fact.note_id] for fact in facts if fact.note_id in known]
        return Lacking(len(facts) - len(having), sum(not vector.any() for vector in having))

    def _vectors_of(self, model: str, dimensions: int | None) -> dict[str, Vector]:
        found = self.vectors(model)
        return {note_id: vector for note_id, vector in found.items() if dimensions in {None, len(vector)}}

    def _facts(self, note_ids: Collection[str] | None) -> list[Fact]:
        places: dict[str, list[Place]] = defaultdict(list)
        for place in self._places(note_ids):
            places[place.note_id].append(place)
        return [standing(row, places[row.note_id]) for row in self._rows(note_ids)]

    def _by_meaning(self, asked: str | Sequence[float] | Vector, facts: Sequence[Fact]) -> list[Alike]:
        embedder = self._embedder()
        if embedder is None and isinstance(asked, str):
            return []
        known = self.vectors(embedder.model if embedder else "")
        if isinstance(asked, str):  # which words can be compared with where vectors cannot
            known = {note_id: vector for note_id, vector in known.items() if vector.any()}
        facts = [fact for fact in facts if fact.note_id in known]
        if not facts:
            return []
        import numpy as np  # a tenth of a second that only a search by meaning waits for

        try:
            vector = (
                embedder.embed([asked])[0] if embedder and isinstance(asked, str) else np.asarray(asked, np.float32)
            )
        except BackendDown:
            return []
        facts = [fact for fact in facts if known[fact.note_id].shape == vector.shape]
        alike = cosines([known[fact.note_id] for fact in facts], vector)
        return [Alike(fact, value, "meaning") for fact, value in zip(facts, alike, strict=True)]


def cosines(vectors: Sequence[Vector], asked: Vector) -> list[float]:
    """How like each of the vectors is to the one asked for, all of one size: 0 where either has no direction."""
    if not vectors:
        return []
    import numpy as np

    matrix = np.nan_to_num(np.stack(vectors).astype(np.float64), posinf=0.0, neginf=0.0)
    sought = np.nan_to_num(asked.astype(np.float64), posinf=0.0, neginf=0.0)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(sought)
    values = np.divide(matrix @ sought, lengths, out=np.zeros(len(vectors)), where=lengths > 0)
    return [float(value) for value in np.clip(values, -1.0, 1.0)]


def moment(at: datetime | None) -> datetime:
    """A time as stores keep it, now for None; one without a zone is UTC."""
    if at is None:
        at = datetime.now(UTC)
    return to_milliseconds(at if at.tzinfo else at.replace(tzinfo=UTC))


def must_be_importance(importance: float) -> float:
    """The importance. Raises UsageError where it is none."""
    if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 <= importance <= 1:
        raise UsageError(f"importance is a number from 0 to 1, not {importance!r}")
    return float(importance)


def must_be_change(by: float) -> float:
    """The change of an importance. Raises UsageError where it is no number."""
    if isinstance(by, bool) or not isinstance(by, int | float) or not math.isfinite(by):
        raise UsageError(f"importance changes by a number, not by {by!r}")
    return float(by)


def must_be_whole(fact: Fact) -> Fact:
    """The fact as it can be kept, `unpinned` being the importance of one without a pin. Raises UsageError."""
    if fact.note_id != id_of(fact.content) or not fact.content.strip():
        raise UsageError(f"the id {fact.note_id!r} is not that of the fact's text, which is {id_of(fact.content)!r}")
    own = must_be_importance(fact.unpinned if fact.pinned else fact.importance)
    if fact.access_count < 0 or not math.isfinite(fact.decay_rate) or fact.decay_rate < 0:
        raise UsageError("a fact's access_count and decay_rate are numbers that are not negative")
    return replace(fact, unpinned=own)


def _last_use(fact: Fact) -> datetime:
    return fact.last_accessed or fact.created_at


def _by_words(text: str, facts: Sequence[Fact]) -> list[Alike]:
    from rapidfuzz import fuzz, process, utils

    texts = [fact.content for fact in facts]
    found = process.extract(text, texts, scorer=fuzz.WRatio, processor=utils.default_process, limit=None)
    return [Alike(facts[number], score / 100, "words") for _, score, number in found if score > 0]
