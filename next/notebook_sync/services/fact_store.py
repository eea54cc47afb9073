"""The flat-notes store of the original design, on facts: its calls under its argument names.

A note is a fact, and its text is in a file: what a call changes of it is an ordinary edit. Rows are
`{note_id, content, section, score, metadata}`; `score` is the similarity in `search_similar`, else the importance now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from notebook_sync.errors import EditFailed, MissingExtra, UsageError
from notebook_sync.files.fact_text import fact_id, fact_text
from notebook_sync.services.core import Core
from notebook_sync.services.documents import require_change
from notebook_sync.services.fact_changes import IMPORTANT, NOTES, Addition, Draft, Move, change_facts, one_line
from notebook_sync.services.fact_keeping import importance_of
from notebook_sync.services.fact_rows import FactRow, days_since, facts_of
from notebook_sync.services.view import View
from notebook_sync.services.writing import publish_now
from notebook_sync.sessions import OWNER, Session
from notebook_sync.store.rows import Is, both
from notebook_sync.sync.project import BASE, CORE_BASE

_OPERATION = "facts.store"
_METADATA = ("base", "access_count", "created_at", "last_accessed", "path", "line", "pin")

Row = dict[str, Any]


class FactStore:
    """The calls of one session. Facts that it does not see do not exist for it; archived ones are among the others."""

    def __init__(self, core: Core, session: Session = OWNER) -> None:
        self._core = core
        self._session = session
        self._view = View(core, session)

    # ---- notes

    def upsert_note(
        self,
        content: str,
        section: str = IMPORTANT,
        importance: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Write a fact with exactly this text, unless a file states it, and set what is given of it; its `note_id`.

        Raises UsageError for a text that is no fact.
        """
        require_change(self._core, self._view, NOTES, _OPERATION)
        weight = None if importance is None else importance_of(importance)
        addition = Addition(fact_text(content), one_line("section", section) or IMPORTANT)
        note_id = fact_id(addition.content)

        def decide(draft: Draft) -> None:
            if not facts_of(self._core, self._view, ids=[note_id]):
                draft.add(addition)

        change_facts(self._core, self._session, "fact_add", decide)
        given = {"base": weight, "metadata": None if metadata is None else dict(metadata)}
        self._set([note_id], {name: value for name, value in given.items() if value is not None})
        publish_now(self._core)
        return note_id

    def get_note(self, note_id: str) -> Row | None:
        """One fact, None for an unknown id."""
        return next(iter(self._rows(facts_of(self._core, self._view, ids=[note_id]))), None)

    def delete_note(self, note_id: str) -> bool:
        """Take a fact out of every file that states it; False for an unknown id. Raises EditFailed for one that no
        tool takes out, NotPermitted."""

        def decide(draft: Draft) -> bool:
            facts = facts_of(self._core, self._view, ids=[note_id])
            for fact in facts:
                require_change(self._core, self._view, fact.path, _OPERATION)
                if why := draft.move(Move(note_id, "")):
                    raise EditFailed(fact.path, f"the fact {note_id} stays: {why}", line=fact.line)
            return bool(facts)

        return change_facts(self._core, self._session, "fact_delete", decide).decided

    def get_recent_notes(self, limit: int = 20) -> list[Row]:
        """The facts that were made or changed last, the latest first."""
        times = dict(self._core.index.facts.tuples(("id", "updated_at")))
        facts = facts_of(self._core, self._view)
        facts.sort(key=lambda fact: times.get(fact.id) or fact.created_at, reverse=True)
        return self._rows(facts[: max(limit, 0)])

    # ---- finding

    def search_similar(self, query_embedding: Sequence[float], limit: int = 10, section: str = "") -> list[Row]:
        """The facts nearest to a vector of the notebook's own model, nearest first. Raises UsageError for a vector of
        other dimensions, or while embeddings are off."""
        meaning = self._core.searcher.meaning
        if meaning is None:
            raise UsageError("embeddings are off in notebook.toml", next="set search.embeddings")
        meaning.catch_up()
        vector = self._unit(query_embedding, meaning.embedder.model)
        facts = [fact for fact in facts_of(self._core, self._view) if not section or fact.section == section]
        near = meaning.cosines(vector, "facts", {fact.id for fact in facts}) if vector is not None else {}
        best = sorted((fact for fact in facts if near.get(fact.id, 0) > 0), key=lambda fact: (-near[fact.id], fact.id))
        return self._rows(best[: max(limit, 0)], near)

    def get_by_importance_range(self, min_importance: float = 0.0, max_importance: float = 1.0) -> list[Row]:
        """The facts whose importance now is in this range, both ends included, the most important first."""
        facts = [
            fact for fact in facts_of(self._core, self._view) if min_importance <= fact.importance <= max_importance
        ]
        return self._rows(sorted(facts, key=lambda fact: (-fact.importance, fact.id)))

    def get_stale_notes(self, days_threshold: float = 30) -> list[Row]:
        """The facts that were not used for so many days, the longest first. One that never was counts from its
        creation."""
        now = self._core.now()
        unused = {fact: days_since(fact.last_accessed or fact.created_at, now) for fact in self._seen()}
        stale = [fact for fact, days in unused.items() if days >= days_threshold]
        return self._rows(sorted(stale, key=lambda fact: (-unused[fact], fact.id)))

    # ---- use and importance

    def increment_access(self, note_id: str) -> bool:
        """Count one use; False for an unknown id."""
        return self._set([note_id], {"last_accessed": self._core.now()}, uses=1) == 1

    def update_importance(self, note_id: str, importance: float) -> bool:
        """Set the importance that a fact has before use and age; a pin in its file still counts first. False for an
        unknown id. Raises UsageError."""
        return self.bulk_update_importance([{"note_id": note_id, "importance": importance}]) == 1

    def bulk_update_importance(self, updates: Sequence[Mapping[str, Any]]) -> int:
        """Set several, each `{note_id, importance}`; how many there are. Raises UsageError before any is set."""
        try:
            wanted = {str(each["note_id"]): importance_of(each["importance"]) for each in updates}
        except (KeyError, TypeError):
            raise UsageError("each update is {note_id, importance}") from None
        with self._core.index.write():
            count = sum(self._set([note_id], {"base": weight}) for note_id, weight in wanted.items())
        publish_now(self._core)
        return count

    def clear_all(self) -> int:
        """Forget use, importance and metadata of all facts that the session may change; how many there are. Their
        texts stay in the files."""
        fresh: Row = {"access_count": 0, "last_accessed": None, "metadata": None}
        with self._core.index.write():
            seen = self._seen()
            count = self._set([fact.id for fact in seen if fact.core], {**fresh, "base": CORE_BASE})
            count += self._set([fact.id for fact in seen if not fact.core], {**fresh, "base": BASE})
        publish_now(self._core)
        return count

    # ---- helpers

    def _seen(self) -> list[FactRow]:
        return facts_of(self._core, self._view)

    def _set(self, ids: Sequence[str], values: Mapping[str, Any], uses: int = 0) -> int:
        """Set columns of the facts that the session may change; how many there are."""
        own = [fact.id for fact in facts_of(self._core, self._view, ids=ids) if self._view.may("write", fact.path)]
        counted = {"access_count": uses} if uses else {}
        return self._core.index.facts.update(Is("id", "in", own), set=values, inc=counted, stamp=not uses)

    def _rows(self, facts: Sequence[FactRow], scores: Mapping[str, float] | None = None) -> list[Row]:
        kept = dict(self._core.index.facts.tuples(("id", "metadata"), Is("id", "in", [fact.id for fact in facts])))
        return [
            {
                "note_id": fact.id,
                "content": fact.content,
                "section": fact.section,
                "score": round(fact.importance if scores is None else scores[fact.id], 4),
                "metadata": {**(kept.get(fact.id) or {}), **{name: getattr(fact, name) for name in _METADATA}},
            }
            for fact in facts
        ]

    def _unit(self, embedding: Sequence[float], model: str) -> Any:
        """The vector at length 1; None where no fact has a vector, or this one has no direction."""
        try:
            import numpy as np
        except ImportError:
            raise MissingExtra("search by meaning", "search") from None
        vectors = self._core.index.vectors
        known = vectors.find(
            both(Is("model", "=", model), Is("scales", "!=", b"")), limit=1, fields=("codes", "scales")
        )
        try:
            vector = np.asarray(embedding, np.float32).reshape(-1)
        except (TypeError, ValueError):
            raise UsageError("query_embedding is a list of numbers") from None
        size = len(known[0]["codes"]) * 4 // len(known[0]["scales"]) if known else vector.size
        if vector.size != size or not np.isfinite(vector).all():
            raise UsageError(f"query_embedding has {vector.size} numbers, and vectors of {model} have {size}")
        length = float(np.linalg.norm(vector))
        return vector / length if known and length else None
