"""Which notes a session is told of, in lists, in searches, and where a text stands: none that it may not read.

What a session may not read leaves no trace in what it is told: not in the number or order of rows, nor in a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from notebook_sync.config import Settings
from notebook_sync.errors import UnreadableFile, UsageError
from notebook_sync.files.note import COLLECTIONS, STATUSES
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import LARGEST_LIMIT, Filter
from notebook_sync.notes.channels import ANY
from notebook_sync.notes.channels import FOLDER as CHANNELS
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.showing import note_shown, row_shown, sees_all, words_of
from notebook_sync.sessions import Session

if TYPE_CHECKING:
    from notebook_sync.files.note import Note
    from notebook_sync.mirror.base import Document, Mirror
    from prompt import Found

# What took a text out of a prompt where only who may change the file is to know that it is there.
_HIDDEN = frozenset(("comment", "expired", "frontmatter"))
# `list` names a method here, so the type needs a name of its own.
_Documents = list[dict[str, Any]]


class Listing:
    """Lists one notebook's notes. The mirror is opened when it is first asked. May be used from several threads."""

    def __init__(self, vault: Vault, settings: Settings, guard: Guard, mirror: Callable[[], Mirror]) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._mirror = mirror

    def list(self, wanted: Filter, limit: int, session: Session) -> _Documents:
        """Light fields of notes, the latest change first. Raises UsageError for a wrong limit."""
        return self._permitted(self._mirror().light, wanted, limit, session)

    def search(self, query: str, wanted: Filter, limit: int, session: Session) -> _Documents:
        """Notes that match the words of `query`, best first. Raises as `list`.

        A file of the prompt that the session may not change is found by the very words that it is shown of it.
        """

        def ask(filter: Filter, count: int) -> _Documents:
            return self._mirror().search(query, count, filter)

        return self._permitted(ask, wanted, limit, session, words_of(query))

    def places_told(self, found: Sequence[Found], text: str, asking: Session, *, is_own: bool) -> Sequence[Found]:
        """Of the places where `text` stands, those that who asks may know of; `is_own`: the prompt is theirs."""
        return [one for one in found if (is_own and one.in_prompt) or self._is_told(one, text, asking)]

    def _permitted(
        self,
        ask: Callable[[Filter, int], _Documents],
        wanted: Filter,
        limit: int,
        session: Session,
        words: Set[str] = frozenset(),
    ) -> _Documents:
        """The first `limit` rows that the session may read: where others stand among them, more are asked for."""
        if not 0 <= limit <= LARGEST_LIMIT:
            raise UsageError(f"a limit is a number from 0 to {LARGEST_LIMIT:,}")
        if session.kind == "owner" or not limit:
            return ask(wanted, limit)
        wanted = replace(wanted, of_channels=self._readable_channels(session))
        count = limit
        while True:
            rows = ask(wanted, count)
            readable = set(self._guard.permitted(session, "read", [row["path"] for row in rows if row["path"]]))
            shown = (self._shown_row(row, session, words) for row in rows if row["path"] in readable)
            permitted = [row for row in shown if row is not None]
            if len(permitted) >= limit or len(rows) < count:
                return permitted[:limit]
            count = min(count * 4, LARGEST_LIMIT)

    def _readable_channels(self, session: Session) -> tuple[str, ...]:
        """The folders of private notes in which the session may read: its own, and those that it is a member of."""
        if session.kind != "task" or not session.agent:
            return ()
        others = (agent for agent in self._vault.folders(CHANNELS) if agent != session.agent)
        shared = [
            f"{CHANNELS}/{agent}/{scope}" for agent in others for scope in self._vault.folders(f"{CHANNELS}/{agent}")
        ]
        notes = self._guard.permitted(session, "read", [f"{folder}/{ANY}" for folder in shared])
        return (f"{CHANNELS}/{session.agent}", *(note.removesuffix(f"/{ANY}") for note in notes))

    def _shown_row(self, row: Document, session: Session, words: Set[str]) -> Document | None:
        """The row as the session is shown it; None where not all of the words stand in what it is shown."""
        if sees_all(session, row["path"], self._settings.prompt):
            return row
        note = self._shown_note(row["path"])
        if note is None or not words <= words_of(f"{note.title} {note.summary} {note.content}"):
            return None
        return row_shown(row, note)

    def _is_told(self, one: Found, text: str, asking: Session) -> bool:
        if not self._guard.may(asking, "read", one.path):
            return False
        if sees_all(asking, one.path, self._settings.prompt):
            return True
        note = None if one.reason in _HIDDEN else self._shown_note(one.path)
        return note is not None and _plain(text) in _plain(note.content)

    def _shown_note(self, path: str) -> Note | None:
        """What a file of the prompt shows to who may not change it; None where that cannot be had."""
        try:
            text = self._vault.read(path)[0].decode(errors="replace")
        except (FileNotFoundError, UnreadableFile):
            return None
        return note_shown(path, text, self._settings.prompt, datetime.now(self._settings.timezone).date())


def wanted_notes(
    collection: str | None = None,
    status: str | None = None,
    tags: Iterable[str] = (),
    created_by: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
) -> Filter:
    """The filter for what a caller names; a time without a zone is UTC. Raises UsageError for names of nothing."""
    _must_be_known("collection", collection, COLLECTIONS)
    _must_be_known("status", status, STATUSES)
    if isinstance(tags, str):
        raise UsageError(f"tags are a list, as in [{tags!r}]")
    return Filter(
        collections=() if collection is None else (collection,),
        status=status or "",
        tags=tuple(tags),
        created_by=created_by,
        since=_aware(since),
        until=_aware(until),
    )


def _must_be_known(what: str, name: str | None, known: tuple[str, ...]) -> None:
    if name is not None and name not in known:
        raise UsageError(f"there is no {what} {name!r}; use one of {', '.join(known)}")


def _aware(when: datetime | None) -> datetime | None:
    return when if when is None or when.tzinfo is not None else when.replace(tzinfo=UTC)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
