"""Several facts added and others archived in one change of the files: one edit, one commit, undone as one.

What a text is that is added, new or said already, is decided as wherever a fact is added. What stands in core.md, and
what a person pinned, stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from notebook_sync.errors import UnsafePath
from notebook_sync.files.facts import as_bullet, fact_text
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.facts import START, Fact
from notebook_sync.notes.editing.door import Text
from notebook_sync.notes.facts.book import NOTES, Book, Draft
from notebook_sync.notes.facts.changes import Changed, FactChanges
from notebook_sync.notes.facts.facts import row_of
from notebook_sync.notes.facts.near import FactNear, Nearness
from notebook_sync.notes.facts.reach import FactReach
from notebook_sync.sessions import Session

Row = dict[str, Any]
_ANY_PIN = 0.0


@dataclass(frozen=True, slots=True)
class Addition:
    """A fact that is to be added; `text` is one that `as_bullet` takes."""

    text: str
    section: str
    importance: float


@dataclass(frozen=True, slots=True)
class Taken:
    """Rows of facts after the change, each with its `action`."""

    added: Sequence[Row]
    removed: Sequence[Row]
    warnings: Sequence[str]


class FactBatch:
    """For one notebook."""

    def __init__(self, vault: Vault, reach: FactReach, near: FactNear, changes: FactChanges) -> None:
        self._vault = vault
        self._reach = reach
        self._near = near
        self._changes = changes

    def known(self, session: Session) -> list[Fact]:
        """The facts that are not archived, as far as the session may know of them. Raises BackendDown."""
        return [fact for fact in self._reach.seen(session, "all").facts if not fact.is_archived]

    def take_in(
        self,
        additions: Sequence[Addition],
        removals: Sequence[Fact],
        session: Session,
        *,
        tool: str,
        reason: str,
        dry_run: bool,
    ) -> Taken:
        """Add these, and archive those for this reason, all or none; with `dry_run`, tell what would be done. What is
        added never counts as said already by what is to go. Raises NotPermitted, UnsafePath, and as an edit."""
        if refused := self._vault.reason_against(NOTES):
            raise UnsafePath(NOTES, refused)
        near = self._near.texts_to_write([fact_text(one.text) for one in additions])
        added: list[Changed] = []
        removed: list[Changed] = []

        def make(book: Book) -> Sequence[Text]:
            draft = Draft(book)
            removed[:] = self._archived(draft, removals, reason, session)
            going = {one.place.note_id for one in removed}
            added[:] = self._added(draft, additions, near, going, session)
            return () if dry_run else draft.texts(tool, _told(added, removed), reason=reason)

        entered = self._changes.put(session, tool, make)
        if dry_run:
            rows, warnings = self._rows([*added, *removed], session), list[str]()
        else:
            rows, warnings = self._changes.told([*added, *removed], session)
        gone = {one.place.note_id for one in removed}
        stayed = [f"the fact {fact.note_id} stays in {fact.path}" for fact in removals if fact.note_id not in gone]
        said = [*entered.warnings, *warnings, *stayed, *(near[0].warnings if near else ())]
        return Taken(rows[: len(added)], rows[len(added) :], said)

    def _archived(self, draft: Draft, removals: Sequence[Fact], reason: str, session: Session) -> list[Changed]:
        places = [
            self._changes.put_aside(draft, fact.note_id, reason, session, below=_ANY_PIN)
            for fact in {fact.note_id: fact for fact in removals}.values()
        ]
        return [Changed(place, "archived") for place in places if place is not None]

    def _added(
        self,
        draft: Draft,
        additions: Sequence[Addition],
        near: Sequence[Nearness],
        going: Collection[str],
        session: Session,
    ) -> list[Changed]:
        done = []
        for one, its in zip(additions, near, strict=True):
            source = as_bullet(one.text)
            said = self._changes.say(draft, source, one.section, one.importance, its, session, going)
            done.append(said if said.action == "added" else replace(said, importance=None))
        return done

    def _rows(self, changed: Sequence[Changed], session: Session) -> list[Row]:
        """As the facts are now; those that are new, as they would be."""
        now = datetime.now(UTC)
        known = self._reach.several(session, {one.place.note_id for one in changed})
        external = self._reach.external({fact.path for fact in known.values()})
        rows = []
        for one in changed:
            new = Fact(
                one.place.note_id,
                one.place.content,
                now,
                now,
                one.place.section,
                one.place.path,
                importance=START if one.importance is None else one.importance,
            )
            rows.append({**row_of(known.get(one.place.note_id, new), now, external), "action": one.action})
        return rows


def _told(added: Sequence[Changed], removed: Sequence[Changed]) -> str:
    """What was done, for the commit."""
    counts = {
        "add": sum(one.action == "added" for one in added),
        "bring back": sum(one.action == "restored" for one in added),
        "archive": len(removed),
    }
    parts = [f"{verb} {count} fact{'' if count == 1 else 's'}" for verb, count in counts.items() if count]
    return ", ".join(parts).capitalize()
