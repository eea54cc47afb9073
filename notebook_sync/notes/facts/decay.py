"""What time does to facts: those that faded go to the archive, those that proved themselves are proposed for core.md.

Computed from when a fact was made and used; doing it twice changes nothing, and nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from notebook_sync.errors import EditFailed, OverCap
from notebook_sync.files.facts import CORE
from notebook_sync.mirror.facts import Fact, Place, standing
from notebook_sync.notes.editing.door import Text
from notebook_sync.notes.fact_life import deserves_core, is_kept_by_pin, is_spent, is_vouched_for
from notebook_sync.notes.facts.book import NOTES, Book, Draft
from notebook_sync.notes.facts.changes import FactChanges
from notebook_sync.notes.facts.facts import row_of
from notebook_sync.notes.facts.reach import FactReach
from notebook_sync.notes.guard import Guard
from notebook_sync.sessions import Session
from notebook_sync.settings import MemorySettings

DECAY = "fact decay"
AUTO = "auto"
_FADED = "faded"


class FactDecay:
    """For one notebook."""

    def __init__(self, settings: MemorySettings, guard: Guard, reach: FactReach, changes: FactChanges) -> None:
        self._settings = settings
        self._guard = guard
        self._reach = reach
        self._changes = changes

    def decay(self, session: Session, *, dry_run: bool) -> dict[str, Any]:
        """`{archived, promoted, proposed}`, rows of facts as they were: what was, or would be, put aside and kept for
        good, and what the owner is asked to keep. Raises NotPermitted, BackendDown, and as an edit."""
        self._guard.require_change(session, NOTES, DECAY)
        now = datetime.now(UTC)
        seen = self._reach.seen(session, "notes")
        may = [fact for fact in seen.facts if self._guard.may(session, "write", fact.path)]

        def archived(draft: Draft, fact: Fact) -> bool:
            line = self._settings.archive_below
            return (
                is_put_aside(_as_in(draft.book, fact), now, self._settings)
                and self._changes.put_aside(draft, fact.note_id, _FADED, session, below=line) is not None
            )

        def proposed(draft: Draft, fact: Fact) -> bool:
            is_proven = deserves_core(_as_in(draft.book, fact), now, self._settings)
            return is_proven and not self._reach.reason_to_stay(draft.book, fact.note_id, CORE)

        def promoted(draft: Draft, fact: Fact) -> bool:
            if not (proposed(draft, fact) and self._changes.may_move(draft.book, fact.note_id, CORE, session)):
                return False
            place = draft.book.facts[fact.note_id][0]
            draft.move(place, CORE, draft.book.section_in_core(place.section))
            return True

        spent = [fact for fact in may if is_put_aside(fact, now, self._settings)]
        proven = [fact for fact in may if deserves_core(fact, now, self._settings)]
        put_aside = self._done(spent, archived, "Archive {} that faded", session, dry_run)
        may_move = self._settings.promote == AUTO
        sure = [fact for fact in proven if may_move and is_vouched_for(fact, self._settings)]
        kept = self._done(sure, promoted, "Keep {} for good", session, dry_run)
        others = [fact for fact in proven if fact not in kept]
        groups = {"archived": put_aside, "promoted": kept, "proposed": self._done(others, proposed, "", session, True)}
        return {name: [row_of(fact, now, seen.external) for fact in facts] for name, facts in groups.items()}

    def _done(
        self, facts: Sequence[Fact], change: Callable[[Draft, Fact], bool], told: str, session: Session, dry_run: bool
    ) -> list[Fact]:
        """Those of the facts that a change is made of, as the files are now: of all at once; where one stands in its
        way, of each that can be changed."""
        if not facts:
            return []
        done: list[Fact] = []

        def make(book: Book) -> Sequence[Text]:
            draft = Draft(book)
            done[:] = [fact for fact in facts if change(draft, fact)]
            texts = draft.texts(DECAY, told.format(_counted(done)))
            return () if dry_run else texts

        try:
            self._changes.put(session, DECAY, make)
        except (EditFailed, OverCap):
            if len(facts) == 1:
                return []
            half = len(facts) // 2
            return [
                fact
                for some in (facts[:half], facts[half:])
                for fact in self._done(some, change, told, session, dry_run)
            ]
        return done


def is_put_aside(fact: Fact, now: datetime, settings: MemorySettings) -> bool:
    """Whether the machine archives a fact: it is spent, no person pinned it to more than that, and it was not brought
    back from there lately."""
    if not is_spent(fact, now, settings) or is_kept_by_pin(fact, settings):
        return False
    back = [event["at"] for event in fact.source_history if event.get("action") == "restored"]
    return not back or now - max(back) >= timedelta(days=settings.stale_days)


def _as_in(book: Book, fact: Fact) -> Fact:
    """The fact as it stands in the files now: a person may have pinned it since it was looked at, or taken it out."""
    places = [
        Place(fact.note_id, one.path, one.section, one.line, one.importance) for one in book.facts.get(fact.note_id, ())
    ]
    return standing(fact, places)


def _counted(facts: Sequence[Fact]) -> str:
    return "1 fact" if len(facts) == 1 else f"{len(facts):,} facts"
