"""Facts kept: added, reinforced, archived, restored, promoted. What is known already is not written twice.

Below them are the calls of the original design's flat-notes store, under its argument names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import asdict

from notebook_sync.errors import EditFailed, NotFound, UsageError
from notebook_sync.files.fact_text import ARCHIVE, HINTS, as_bullet, fact_id, fact_text
from notebook_sync.model import CORE_FACTS
from notebook_sync.search.vectors import Vector, pack_vector
from notebook_sync.services.core import PROPOSED, Core, publish_now
from notebook_sync.services.documents import require_change
from notebook_sync.services.fact_changes import (
    IMPORTANT,
    NOTES,
    Draft,
    Outcome,
    change_facts,
    one_line,
    outcome_of,
    record_kept,
    strengthen,
    view_to_change,
)
from notebook_sync.services.fact_rows import (
    DECLINED,
    ChangedFact,
    FactRow,
    Likeness,
    asked,
    days_unused,
    declined,
    equally,
    fact_row,
    facts_of,
    likeness_of,
    named,
    nearest,
    no_such_fact,
)
from notebook_sync.services.sameness import contradicts, difference
from notebook_sync.services.view import View
from notebook_sync.services.writing import Saved
from notebook_sync.sessions import OWNER, Session
from notebook_sync.store.rows import Is
from notebook_sync.sync.project import BASE, CORE_BASE

_METADATA = ("base", "access_count", "created_at", "last_accessed", "path", "line", "pin")


def add_fact(
    core: Core, session: Session, content: str, *, section: str, importance: str | float | None
) -> ChangedFact:
    """Add a fact to notes.md, or reinforce the one that says the same, which is restored if it was archived.

    What the owner says of its importance is written in its place, what an agent says is only kept in its row.
    """
    view = view_to_change(core, session, "fact_add")
    weight = None if importance is None else importance_of(importance)
    pin = weight if session.kind == "owner" else None
    text, heading = fact_text(content), one_line("section", section) or IMPORTANT
    as_bullet(text, pin=pin)  # a text that is no fact is refused before anything is asked
    likeness = likeness_of(core, text)

    def decide(draft: Draft) -> Outcome:
        return draft.keep(text, heading, _known(core, view, likeness), pin)

    kept, saved = change_facts(core, session, "fact_add", decide)
    record_kept(core, session, kept, weight)
    publish_now(core)
    return _answer(core, view, kept, saved, likeness)


def reinforce_fact(core: Core, session: Session, name: str) -> ChangedFact:
    """Count a use of one fact, and let it count for more: named by id, text, or a text that is near enough."""
    view = view_to_change(core, session, "fact_reinforce")
    text, facts, likeness = asked(name, "name a fact"), facts_of(core, view), None
    try:
        fact = named(text, facts)
    except NotFound:
        likeness = likeness_of(core, text)
        fact = _meant(core, likeness, [fact for fact in facts if not fact.archived])
    if fact.archived:
        raise UsageError("this fact is archived", next=f"restore it with: notebook-sync fact restore {fact.id}")
    strengthen(core, session, fact.id)
    publish_now(core)
    return _answer(core, view, outcome_of(fact, "reinforced"), Saved(()), likeness)


def archive_fact(core: Core, session: Session, name: str, *, reason: str) -> ChangedFact:
    """Move a fact to archive.md. One that is there stays as it is."""
    view = View(core, session)

    def decide(draft: Draft) -> Outcome:
        return _put(view, draft, named(name, facts_of(core, view)), "archived", ARCHIVE)

    why = one_line("reason", reason) or f"archived by {session.changed_by}"
    return _answer(core, view, *change_facts(core, session, "fact_archive", decide, reason=why))


def restore_fact(core: Core, session: Session, name: str) -> ChangedFact:
    """Move a fact from archive.md to where it came from."""
    view = View(core, session)

    def decide(draft: Draft) -> Outcome:
        fact = named(name, facts_of(core, view))
        if not fact.archived:
            raise UsageError(f"this fact is not archived: it is in {fact.path}, line {fact.line}")
        return _put(view, draft, fact, "restored", *draft.home_of(fact.id))

    return _answer(core, view, *change_facts(core, session, "fact_restore", decide))


def promote_fact(core: Core, session: Session, name: str, *, section: str) -> ChangedFact:
    """Move a fact to core.md. A session that may not write there proposes it: an event tells the owner."""
    view, heading = View(core, session), one_line("section", section)
    require_change(core, view, NOTES, "fact promote")

    def decide(draft: Draft) -> Outcome:
        fact = named(name, facts_of(core, view))
        if fact.core or view.may("write", CORE_FACTS):
            return _put(view, draft, fact, "promoted", CORE_FACTS, heading or draft.section_in_core(fact.section))
        if why := Draft(core, OWNER).why_stays(fact.id, CORE_FACTS):
            raise _stays(fact, why)
        return outcome_of(fact, "proposed")

    done, saved = change_facts(core, session, "fact_promote", decide)
    if done.action == "proposed":
        core.events.record(PROPOSED, session, path=done.path, fact=done.id)
    return _answer(core, view, done, saved)


def leave_fact(core: Core, session: Session, name: str, *, leave: bool) -> ChangedFact:
    """Propose a fact for core.md no more, or again. Nothing moves."""
    view = view_to_change(core, session, "fact promote", CORE_FACTS)
    fact = named(name, facts_of(core, view))
    with core.index.write():
        row = core.index.facts.get([fact.id], heavy=False)[fact.id]
        kept = {key: value for key, value in (row["metadata"] or {}).items() if key != DECLINED}
        changed = kept | ({DECLINED: True} if leave else {})
        core.index.facts.update(Is("id", "=", fact.id), set={"metadata": changed or None}, stamp=True)
    publish_now(core)
    return ChangedFact(**asdict(fact), action="left" if leave else "proposed", warnings=[])


def importance_of(hint: str | float) -> float:
    """The importance that a hint names (core, high, medium, low), or that a number is. Raises UsageError."""
    try:
        known = HINTS.get(str(hint).strip().casefold())
        value = float(hint) if known is None else known
    except ValueError:
        value = math.nan
    if isinstance(hint, bool) or not 0 <= value <= 1:
        raise UsageError(f"importance is {', '.join(HINTS)} or a number from 0 to 1, not {hint!r}")
    return value


def _known(core: Core, view: View, likeness: Likeness) -> FactRow | None:
    """The fact that says this: the same text, archived or not, else the nearest one that says the same."""
    own, least = fact_id(likeness.text), core.settings.memory.duplicate
    facts = [fact for fact in facts_of(core, view) if fact.id == own or not fact.archived]
    close = (fact for fact, near in nearest(core, likeness, facts) if fact.id == own or near >= least)
    return next((fact for fact in close if fact.id == own or not difference(fact.content, likeness.text)), None)


def _meant(core: Core, likeness: Likeness, facts: Sequence[FactRow]) -> FactRow:
    """The fact that is like a text, and does not deny it. Raises NotFound."""
    ranked, least = nearest(core, likeness, facts), core.settings.memory.reinforced
    for fact, near in ranked:
        if near >= least and not contradicts(fact.content, likeness.text):
            return fact
    raise no_such_fact(likeness.text, [fact for fact, _ in ranked])


def _put(view: View, draft: Draft, fact: FactRow, action: str, path: str, section: str = "") -> Outcome:
    """Move a fact, unless it is there. Raises NotPermitted, and EditFailed for one that no tool moves."""
    if fact.path != path:
        for each in (fact.path, path):
            require_change(view.core, view, each, f"fact {action}")
        if why := draft.move(fact.id, path, section):
            raise _stays(fact, why)
    return outcome_of(fact, action, path, section)


def _stays(fact: FactRow, why: str) -> EditFailed:
    return EditFailed(fact.path, f"the fact {fact.id} stays where it is: {why}", line=fact.line)


def _answer(core: Core, view: View, done: Outcome, saved: Saved, likeness: Likeness | None = None) -> ChangedFact:
    """The fact as the index has it now; where the index does not follow, as it will be."""
    place = {"path": done.path, "section": done.section, "line": 0, "pin": None}
    stated = fact_row({"id": done.id, "content": done.content, "provenance": ""}, place, core.now())
    fact = next(iter(facts_of(core, view, ids=[done.id])), stated)
    warnings = [*saved.warnings, *(said for each in saved.changes for said in each.warnings)]
    if likeness and likeness.degraded:
        warnings.append(f"compared with other facts by words alone: {likeness.degraded}")
    return ChangedFact(**asdict(fact), action=done.action, warnings=warnings)


class FactStore:
    """The flat-notes store of the original design, on facts, for the owner; archived facts are among the others.

    A note is a fact, and its text is in a file: what a call changes of it is an ordinary edit. Rows are
    `{note_id, content, section, score, metadata}`; `score` is the similarity in `search_similar`, else the importance
    now.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

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
        weight = None if importance is None else importance_of(importance)
        text, heading = fact_text(content), one_line("section", section) or IMPORTANT
        note_id = fact_id(text)

        def decide(draft: Draft) -> None:
            if not draft.places(note_id):
                draft.add(text, heading)

        change_facts(self._core, OWNER, "fact_add", decide)
        left = dict.fromkeys([DECLINED] if declined(self._core, [note_id]) else [], True)
        given = {"base": weight, "metadata": None if metadata is None else {**metadata, **left}}
        self._set([note_id], **{name: value for name, value in given.items() if value is not None})
        publish_now(self._core)
        return note_id

    def get_note(self, note_id: str) -> dict[str, Any] | None:
        """One fact, None for an unknown id."""
        return next(iter(self._rows(self._facts([note_id]))), None)

    def delete_note(self, note_id: str) -> bool:
        """Take a fact out of every file that states it; False for an unknown id. Raises EditFailed for one that no
        tool takes out."""

        def decide(draft: Draft) -> bool:
            facts = self._facts([note_id])
            for fact in facts:
                if why := draft.move(note_id, ""):
                    raise _stays(fact, why)
            return bool(facts)

        return change_facts(self._core, OWNER, "fact_delete", decide)[0]

    def get_recent_notes(self, limit: int = 20) -> list[dict[str, Any]]:
        """The facts that were made or changed last, the latest first."""
        times = dict(self._core.index.facts.tuples(("id", "updated_at")))
        facts = sorted(self._facts(), key=lambda fact: times.get(fact.id) or fact.created_at, reverse=True)
        return self._rows(facts[: max(limit, 0)])

    def search_similar(
        self, query_embedding: Sequence[float], limit: int = 10, section: str = ""
    ) -> list[dict[str, Any]]:
        """The facts nearest to a vector of the notebook's own model, nearest first. Raises UsageError for a vector of
        other dimensions, or where there is no model."""
        meaning = self._core.searcher.meaning
        known, why = meaning.of("fact", equally) if meaning else (None, "embeddings are off in notebook.toml")
        if meaning is None or known is None:
            raise UsageError(f"nothing can be found by meaning: {why}", next="set search.embeddings")
        meaning.catch_up()
        facts = {fact.id: fact for fact in self._facts() if section in ("", fact.section)}
        near = meaning.vectors["facts"].cosines(_packed(query_embedding, len(known)), facts.keys())
        best = sorted((id for id, cosine in near.items() if cosine > 0), key=lambda id: (-near[id], id))
        return self._rows([facts[id] for id in best[: max(limit, 0)]], near)

    def get_by_importance_range(self, min_importance: float = 0.0, max_importance: float = 1.0) -> list[dict[str, Any]]:
        """The facts whose importance now is in this range, both ends included, the most important first."""
        facts = [fact for fact in self._facts() if min_importance <= fact.importance <= max_importance]
        return self._rows(sorted(facts, key=lambda fact: (-fact.importance, fact.id)))

    def get_stale_notes(self, days_threshold: float = 30) -> list[dict[str, Any]]:
        """The facts that were not used for so many days, the longest first."""
        unused = {fact: days_unused(fact, self._core.now()) for fact in self._facts()}
        stale = [fact for fact, days in unused.items() if days >= days_threshold]
        return self._rows(sorted(stale, key=lambda fact: (-unused[fact], fact.id)))

    def increment_access(self, note_id: str) -> bool:
        """Count one use; False for an unknown id."""
        used, now = Is("id", "=", note_id), self._core.now()
        return self._core.index.facts.update(used, set={"last_accessed": now}, inc={"access_count": 1}) == 1

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
            count = sum(self._set([note_id], base=weight) for note_id, weight in wanted.items())
        publish_now(self._core)
        return count

    def clear_all(self) -> int:
        """Forget use, importance and metadata of all facts; how many there are. Their texts stay in the files."""
        fresh: dict[str, Any] = {"access_count": 0, "last_accessed": None, "metadata": None}
        with self._core.index.write():
            facts = self._facts()
            for base, is_core in ((CORE_BASE, True), (BASE, False)):
                self._set([fact.id for fact in facts if fact.core is is_core], **fresh, base=base)
        publish_now(self._core)
        return len(facts)

    def _facts(self, ids: Sequence[str] | None = None) -> list[FactRow]:
        return facts_of(self._core, View(self._core, OWNER), ids=ids)

    def _set(self, ids: Sequence[str], **values: Any) -> int:
        return self._core.index.facts.update(Is("id", "in", ids), set=values, stamp=True)

    def _rows(self, facts: Sequence[FactRow], scores: Mapping[str, float] | None = None) -> list[dict[str, Any]]:
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


def _packed(embedding: Sequence[float], size: int) -> Vector:
    """The vector of these numbers. Raises UsageError."""
    try:
        numbers = [float(number) for number in embedding]
    except (TypeError, ValueError, OverflowError):
        raise UsageError("query_embedding is a list of numbers") from None
    if len(numbers) != size or not all(map(math.isfinite, numbers)):
        raise UsageError(f"query_embedding has {len(numbers)} numbers, and vectors of this notebook have {size}")
    return pack_vector(numbers)
