"""Pages, snippets and findings that a task has to do with: named in its brief, never quoted there at length.

None that the session may not read, or that somebody else wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from notebook_sync.context.candidates import ROUNDS, Freshen, named_notes
from notebook_sync.context.intent import Intent
from notebook_sync.files.note import SHARED_COLLECTIONS
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import Document, Filter
from notebook_sync.mirror.memories import folded
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.told import Told
from notebook_sync.search.searching import Asked, Searching
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

if TYPE_CHECKING:
    from notebook_sync.mirror.base import Mirror

MOST = 5
# So many are asked for, of which those of others' hand are left out.
_ASKED = 20


@dataclass(frozen=True, slots=True)
class Related:
    """A note that is no memory."""

    id: str
    path: str
    title: str
    summary: str

    def as_dict(self) -> dict[str, Any]:
        """The shape that answers have."""
        return {"id": self.id, "path": self.path, "title": self.title}


class RelatedNotes:
    """Of one notebook, for any number of threads."""

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        mirror: Callable[[], Mirror],
        searching: Callable[[], Searching],
        freshen: Freshen,
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._mirror = mirror
        self._searching = searching
        self._freshen = freshen

    def find(self, intent: Intent, session: Session, without_tags: Set[str]) -> tuple[list[Related], int]:
        """The notes that the task names, then those that it has most to do with, as their files are now; and how many
        more might be among them, had they vectors. Raises BackendDown."""
        unsure: Set[str] = frozenset()
        for _ in range(ROUNDS):
            found, behind = self._found(intent, session, without_tags, unsure)
            changed, more = self._freshen({note.id: note.path for note in found})
            if not changed and not more:
                break
            unsure |= more
        return found, behind

    def _found(
        self, intent: Intent, session: Session, without_tags: Set[str], unsure: Set[str]
    ) -> tuple[list[Related], int]:
        filter = Filter(collections=SHARED_COLLECTIONS)
        told = Told(self._vault, self._settings, self._guard, self._mirror, filter, session)
        named = list(told.rows(named_notes(self._mirror(), intent)).values())
        query = " ".join(intent.rare)
        found = self._searching().find(Asked(query), _ASKED, told)
        rows: dict[str, Related] = {}
        for row in (*sorted(named, key=lambda row: str(row["id"])), *found.results):
            if row["path"] not in unsure and _is_fit(row, without_tags):
                rows.setdefault(row["id"], Related(row["id"], row["path"], row["title"], row["summary"]))
        return list(rows.values())[:MOST], found.behind


def _is_fit(row: Document, without_tags: Set[str]) -> bool:
    tags: Iterable[str] = row["tags"]
    return (
        not row.get("provenance")
        and row["status"] != "archived"
        and without_tags.isdisjoint(folded(tag) for tag in tags)
    )
