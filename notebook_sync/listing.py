"""Which notes a session is told of, in lists, in searches, and where a text stands: none that it may not read."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import UsageError
from notebook_sync.files.note import COLLECTIONS, STATUSES, id_from_path
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import LARGEST_LIMIT, Filter, Name
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.links import Names
from notebook_sync.notes.showing import sees_all
from notebook_sync.notes.told import Told, shown_note
from notebook_sync.search.searching import Asked, Searched, Searching
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

if TYPE_CHECKING:
    from notebook_sync.mirror.base import Mirror
    from prompt import Found

# What took a text out of a prompt where only who may change the file is to know that it is there.
_HIDDEN = frozenset(("comment", "expired", "frontmatter", "upcoming"))
# Texts that are read to find those that lead to a note.
MOST_LOOKED_AT = 200
# Of more notes, all names take longer to read than a page that shows one of them may.
MOST_NAMED = 10_000
# `list` names a method here, so the type needs a name of its own.
_Documents = list[dict[str, Any]]


class Listing:
    """Lists one notebook's notes. The mirror is opened when it is first asked. May be used from several threads."""

    def __init__(
        self,
        vault: Vault,
        settings: Settings,
        guard: Guard,
        mirror: Callable[[], Mirror],
        searching: Callable[[], Searching],
    ) -> None:
        self._vault = vault
        self._settings = settings
        self._guard = guard
        self._mirror = mirror
        self._searching = searching

    def list(self, wanted: Filter, limit: int, session: Session) -> _Documents:
        """Light fields of notes, the latest change first. Raises UsageError for a wrong limit."""
        _must_be_a_limit(limit)
        return self._of(wanted, session).latest(limit)

    def search(self, asked: Asked, wanted: Filter, limit: int, session: Session) -> Searched:
        """Notes that fit a query, best first. Raises as `list`, and as `Searching.find`.

        A file of the prompt that the session may not change is found by the very words that it is shown of it, never
        by what it means.
        """
        _must_be_a_limit(limit)
        return self._searching().find(asked, limit, self._of(wanted, session))

    def linking_to(self, note: Mapping[str, Any], session: Session) -> _Documents:
        """Light rows of notes that lead to the one with this document, which the session may read: of those that say
        its name, the `MOST_LOOKED_AT` that fit it best. Raises BackendDown."""
        told = self._of(Filter(), session)
        named = Name(note["path"], note["title"], note["wants"])
        names = Names([named], lambda _: False)
        rows = told.by_words(f"{posixpath.basename(id_from_path(named.path))} {named.title}", MOST_LOOKED_AT)
        texts = told.texts([row for row in rows if row["id"] != note["id"]])
        return [
            row
            for row in rows
            if row["id"] in texts
            and any(not names.leads_nowhere(link, row["path"]) for link in texts[row["id"]]["metadata"]["links"])
        ]

    def broken_links(self, path: str, links: Sequence[str], session: Session) -> dict[str, str]:
        """Why those of `links` that lead nowhere from the note at `path` do so, by link; a note that the session may
        not read is none. Of more than `MOST_NAMED` notes, not every name is read for that: then links that name no
        file are taken to lead somewhere. Raises BackendDown."""

        def stands(place: str) -> bool:
            return self._guard.may(session, "read", place) and os.path.lexists(self._vault.root / place)

        by_path = Names((), stands)
        left = [link for link in links if by_path.leads_nowhere(link, path)]
        # Most links say where the file lies, for which no store is asked.
        if not left or self._mirror().note_count() > MOST_NAMED:
            return {}
        names = Names(self._of(Filter(), session).names(), stands)
        return {link: why for link in left if (why := names.leads_nowhere(link, path))}

    def texts(self, rows: Sequence[dict[str, Any]], session: Session) -> Mapping[str, dict[str, Any]]:
        """The documents of rows that the session was told of, by id, as it is shown them; without those that cannot
        be had."""
        return self._of(Filter(), session).texts(rows)

    def places_told(self, found: Sequence[Found], text: str, asking: Session, *, is_own: bool) -> Sequence[Found]:
        """Of the places where `text` stands, those that who asks may know of; `is_own`: the prompt is theirs."""
        return [one for one in found if (is_own and one.in_prompt) or self._is_told(one, text, asking)]

    def _of(self, wanted: Filter, session: Session) -> Told:
        return Told(self._vault, self._settings, self._guard, self._mirror, wanted, session)

    def _is_told(self, one: Found, text: str, asking: Session) -> bool:
        if not self._guard.may(asking, "read", one.path):
            return False
        if sees_all(asking, one.path, self._settings.prompt):
            return True
        note = None if one.reason in _HIDDEN else shown_note(self._vault, one.path, self._settings)
        return note is not None and _plain(text) in _plain(note.content)


def wanted_notes(
    collection: str | None = None,
    status: str | None = None,
    tags: Iterable[str] = (),
    created_by: str = "",
    since: datetime | None = None,
    until: datetime | None = None,
    below: str = "",
    after: tuple[datetime, str] | None = None,
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
        since=_aware("since", since),
        until=_aware("until", until),
        below=(folder,) if (folder := below.strip("/")) else (),
        after=after,
    )


def _must_be_a_limit(limit: int) -> None:
    if not 0 <= limit <= LARGEST_LIMIT:
        raise UsageError(f"a limit is a number from 0 to {LARGEST_LIMIT:,}")


def _must_be_known(what: str, name: str | None, known: tuple[str, ...]) -> None:
    if name is not None and name not in known:
        raise UsageError(f"there is no {what} {name!r}; use one of {', '.join(known)}")


def _aware(name: str, when: datetime | None) -> datetime | None:
    if when is not None and not isinstance(when, datetime):
        raise UsageError(f"{name} is a datetime, as in datetime(2026, 2, 18), and not {when!r}")
    return when if when is None or when.tzinfo is not None else when.replace(tzinfo=UTC)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
