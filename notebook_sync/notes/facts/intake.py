"""Adding a fact: what is new becomes a bullet of facts/notes.md, what is known already counts for more instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from notebook_sync.errors import UnsafePath
from notebook_sync.files.facts import as_bullet, fact_text
from notebook_sync.files.vault import Vault
from notebook_sync.notes.editing.door import Text
from notebook_sync.notes.fact_life import importance_of
from notebook_sync.notes.facts.book import NOTES, USUAL, Book, Draft
from notebook_sync.notes.facts.changes import Changed, FactChanges, heading_of
from notebook_sync.notes.facts.near import FactNear
from notebook_sync.notes.guard import Guard
from notebook_sync.sessions import Session

ADD = "fact_add"

Row = dict[str, Any]


class FactIntake:
    """For one notebook."""

    def __init__(self, vault: Vault, guard: Guard, near: FactNear, changes: FactChanges) -> None:
        self._vault = vault
        self._guard = guard
        self._near = near
        self._changes = changes

    def add(self, text: str, session: Session, *, section: str, importance: str | float | None) -> Row:
        """Add a fact to facts/notes.md, or strengthen the one that says it already, which comes back where it was
        archived: its row, `action` and `warnings`.

        Raises UsageError for a text that is no fact, NotPermitted, UnsafePath, and as an edit.
        """
        self._guard.require_change(session, NOTES, ADD)
        weight = None if importance is None else importance_of(importance)
        # What a person says of it stands in the file, and is not lost with the store.
        source = as_bullet(text, weight if session.kind == "owner" else None)
        section = heading_of(section) or USUAL
        if refused := self._vault.reason_against(NOTES):
            raise UnsafePath(NOTES, refused)
        (near,) = self._near.texts_to_write([fact_text(text)])
        had_file = self._vault.stamp(NOTES) is not None
        done: list[Changed] = []

        def make(book: Book) -> Sequence[Text]:
            draft = Draft(book)
            one = self._changes.say(draft, source, section, weight, near, session)
            done[:] = [one]
            told = f"Add a fact to {section}" if one.action == "added" else "Bring back a fact that was said again"
            return draft.texts(ADD, told, section=one.place.section)

        entered = self._changes.put(session, ADD, make)
        (row,), warnings = self._changes.told(done, session)
        moved, created = row["action"] != "reinforced", row["action"] == "added" and not had_file
        return {**row, "moved": moved, "created": created, "warnings": [*entered.warnings, *warnings, *near.warnings]}
