"""What a session is told of facts, and what of that counts as a use of them.

A fact of a file that the session may not read is to it as one that is not there: in answers, and in what they count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from notebook_sync.errors import BackendDown, EditFailed, NoSuchFact, UsageError
from notebook_sync.files.excerpt import shorten
from notebook_sync.files.facts import LONGEST, Bullet, fact_text, id_of, order_of
from notebook_sync.files.frontmatter import storable
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.mirror.facts import SCOPES, Fact, FactRows
from notebook_sync.notes.fact_life import OWNER, REINFORCED, effective, is_stale
from notebook_sync.notes.facts.alike import contradiction, difference, words_of
from notebook_sync.notes.facts.book import NOTES
from notebook_sync.notes.facts.near import FactNear
from notebook_sync.notes.facts.reach import FactReach, Seen
from notebook_sync.notes.guard import Guard
from notebook_sync.permissions import CORE_FACTS
from notebook_sync.search.query_meaning import Ranked
from notebook_sync.sessions import Session
from notebook_sync.settings import MemorySettings

QUERY, VERIFY, REINFORCE = "fact_search", "fact_verify", "fact_reinforce"
CONFIRMED, RELATED, NEW = "CONFIRMED", "RELATED", "NEW"

# `list` names a method here, so the type needs a name of its own.
Row = dict[str, Any]
Rows = list[Row]
_MATCHES = 5
# What it adds to a fact's rank in a search to have all words of the query in it: names and numbers mean little else.
_BY_WORDS = 0.3
_SHORTEST_PREFIX = 6
_LONGEST_CANDIDATE = 120


class Facts:
    """The facts of one notebook, as sessions ask for them."""

    def __init__(
        self,
        settings: MemorySettings,
        guard: Guard,
        reach: FactReach,
        near: FactNear,
        rows: Callable[[], FactRows],
    ) -> None:
        self._settings = settings
        self._guard = guard
        self._reach = reach
        self._near = near
        self._rows = rows

    def list(self, session: Session, *, scope: str, section: str, stale: bool, limit: int) -> Rows:
        """The facts of a scope, those first that count for most now. Nothing counts as used by that.

        Raises UsageError, NotPermitted, BackendDown.
        """
        now = datetime.now(UTC)
        seen = self._seen(session, scope)
        wanted = [
            fact
            for fact in seen.facts
            if (not section or fact.section.casefold() == section.strip().casefold())
            and (not stale or is_stale(fact, now, self._settings))
        ]
        wanted.sort(key=lambda fact: (-effective(fact, now), order_of(fact.path), fact.line))
        return [row_of(fact, now, seen.external) for fact in wanted[: max(limit, 0)]]

    def search(self, query: str, session: Session, *, scope: str, limit: int) -> Ranked:
        """The facts most like `query`, best first: rows with `similarity`, 0 to 1. Words that they share with it count
        too for the order.

        By an agent, the best one is used by that, and each other that is related. Raises as `list`.
        """
        query = _asked(query, "say what to look for")
        now = datetime.now(UTC)
        seen = self._seen(session, scope)
        words = words_of(query)
        near = self._near.text(query)
        alike = near.to([(fact.note_id, fact.content) for fact in seen.facts])
        found = [
            (similarity + _BY_WORDS * len(words & words_of(fact.content)) / (len(words) or 1), similarity, fact)
            for fact, (similarity, _) in zip(seen.facts, alike, strict=True)
        ]
        found = sorted((one for one in found if one[0] > 0), key=lambda one: (-one[0], one[2].note_id))
        found = found[: max(limit, 0)]
        self._used(
            session,
            [
                fact.note_id
                for place, (_, similarity, fact) in enumerate(found)
                if not place or similarity >= self._settings.related
            ],
        )
        return Ranked(
            [{**row_of(fact, now, seen.external), "similarity": round(similarity, 4)} for _, similarity, fact in found],
            near.trouble,
        )

    def verify(self, text: str, session: Session) -> Row:
        """`{verdict, similarity, matches, degraded}`: CONFIRMED where a fact says this, RELATED where one comes near,
        else NEW; `degraded` is why words alone were compared, else "".

        By an agent, the fact that confirms is used by that. Raises as `list`.
        """
        text = _asked(text, "say what is to be verified")
        now = datetime.now(UTC)
        seen = self._seen(session, "all")
        known = [fact for fact in seen.facts if not fact.is_archived]
        near = self._near.text(text)
        alike = near.to([(fact.note_id, fact.content) for fact in known])
        found = [
            (1.0 if fact.note_id == id_of(text) else similarity, fact)
            for fact, (similarity, _) in zip(known, alike, strict=True)
        ]
        found = sorted((one for one in found if one[0] >= self._settings.related), key=lambda one: -one[0])
        says = [one for one in found if one[0] >= self._settings.confirmed]
        confirmed = next((one for one in says if not difference(one[1].content, text, near.means)), None)
        if confirmed is not None:
            found = [confirmed, *(one for one in found if one is not confirmed)]
            self._used(session, [confirmed[1].note_id])
        best = max((similarity for similarity, _ in alike), default=0.0)
        return {
            "verdict": CONFIRMED if confirmed else RELATED if found else NEW,
            "similarity": round(found[0][0] if found else best, 4),
            "matches": [
                {**row_of(fact, now, seen.external), "similarity": round(similarity, 4)}
                for similarity, fact in found[:_MATCHES]
            ],
            "degraded": near.trouble,
        }

    def reinforce(self, name: str, session: Session) -> Row:
        """Count a use of one fact, and let it count for more: its row, `action` and `warnings`. Named by id or text, or
        by a text that is near enough and says nothing else. One that is pinned, or in core.md, is only used by that.

        Raises NotPermitted, NoSuchFact, EditFailed, UsageError, BackendDown.
        """
        self._guard.require_change(session, NOTES, REINFORCE)
        name = _asked(name, "name a fact")
        seen = self._seen(session, "all")
        fact, warnings = self._meant(name, seen)
        if fact.is_archived:
            raise UsageError(f"this fact is archived; bring it back with: notebook-sync fact restore {fact.note_id}")
        self.strengthen(fact, session)
        now = datetime.now(UTC)
        row = row_of(self._rows().get_note(fact.note_id) or fact, now, seen.external)
        return {**row, "action": "reinforced", "warnings": warnings}

    def strengthen(self, fact: Fact, session: Session, least: float = 0.0) -> None:
        """Count a use of a fact, and let it count for more, and for `least` at least."""
        rows = self._rows()
        rows.increment_access(fact.note_id)
        if fact.pinned or fact.is_core:
            return
        actor = OWNER if session.kind == "owner" else session.changed_by
        wanted, by = (least, 0.0) if fact.unpinned + REINFORCED < least else (None, REINFORCED)
        rows.update_importance(fact.note_id, wanted, by=by, action="reinforced", actor=actor)

    def weigh(self, fact: Fact, importance: float) -> None:
        """Let a fact have this importance from the start."""
        self._rows().update_importance(fact.note_id, importance)

    def _meant(self, name: str, seen: Seen) -> tuple[Fact, Sequence[str]]:
        """The fact that this names, and what is to be told of how it was found."""
        live = [fact for fact in seen.facts if not fact.is_archived]
        found = named(name, [(fact.note_id, fact.content) for fact in seen.facts])
        if found is not None:
            return seen.facts[found], []
        near = self._near.text(name)
        alike = near.to([(fact.note_id, fact.content) for fact in live])
        best = sorted(zip(alike, live, strict=True), key=lambda one: -one[0][0])[:_MATCHES]
        for (similarity, _), fact in best:
            if similarity >= self._settings.reinforced and not contradiction(fact.content, name):
                return fact, near.warnings
        raise NoSuchFact(shorten(name, _LONGEST_CANDIDATE), candidates_of([fact for _, fact in best], seen.external))

    def _seen(self, session: Session, scope: str) -> Seen:
        for one in SCOPES:
            if one == scope:
                if scope == "core":
                    self._guard.require(session, "read", CORE_FACTS, QUERY)
                return self._reach.seen(session, one)
        raise UsageError(f"facts have no scope {scope!r}; use one of {', '.join(SCOPES)}")

    def _used(self, session: Session, note_ids: Sequence[str]) -> None:
        """The owner looking through the notebook keeps nothing alive, nor does somebody else's message."""
        if note_ids and (session.kind == "task" or (session.kind == "owner" and session.agent)):
            with suppress(BackendDown):  # it is only not counted
                self._rows().increment_access(*note_ids)


def row_of(fact: Fact, now: datetime, external: Collection[str]) -> Row:
    """A fact as it is told. `importance` is what it counts for now, `base` what that is computed from."""
    return {
        "note_id": fact.note_id,
        "content": fact.content,
        "section": fact.section,
        "path": fact.path,
        "line": fact.line,
        "importance": round(effective(fact, now), 4),
        "base": round(fact.importance, 4),
        "access_count": fact.access_count,
        "created_at": fact.created_at,
        "last_accessed": fact.last_accessed,
        "pinned": fact.pinned,
        "core": fact.is_core,
        **({"provenance": EXTERNAL} if fact.path in external else {}),
    }


def named(name: str, facts: Sequence[tuple[str, str]]) -> int | None:
    """The number of the fact that this names: its id, the beginning of that, or its exact text; None for none.

    Raises EditFailed where several begin so.
    """
    wanted = name.strip()
    ids = {note_id: number for number, (note_id, _) in enumerate(facts)}
    for one in (wanted, id_of(fact_text(name))):
        if one in ids:
            return ids[one]
    prefix = wanted.casefold()
    if len(prefix) < _SHORTEST_PREFIX or not set(prefix) <= set("0123456789abcdef"):
        return None
    found = [note_id for note_id in ids if note_id.startswith(prefix)]
    if len(found) > 1:
        raise EditFailed("facts", f"several facts have an id that begins with {prefix}:", tuple(sorted(found)))
    return ids[found[0]] if found else None


def candidates_of(facts: Sequence[Fact | Bullet], external: Collection[str]) -> tuple[str, ...]:
    """A line for each; somebody else's words are left out."""
    return tuple(
        fact.note_id
        if fact.path in external
        else f"{fact.note_id}: {shorten(' '.join(fact.content.split()), _LONGEST_CANDIDATE)}"
        for fact in facts
    )


def _asked(text: str, missing: str) -> str:
    """What is asked, no longer than a fact may be. Raises UsageError for nothing."""
    asked = fact_text(storable(text))[:LONGEST]
    if not asked:
        raise UsageError(f"{missing}, as in: the ferry leaves at eight")
    return asked
