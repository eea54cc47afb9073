"""Finding private notes: an agent its own, a member those of a shared channel, the owner all of them.

Notes that the session may not read have no part in an answer: not in its order, its scores, its limit or its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, tzinfo
from itertools import islice
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.mirror.base import LARGEST_LIMIT, Filter, Mirror
from notebook_sync.notes.channels import ANY, FOLDER, GLOBAL, Channels, folder_of, owner_of, scope_of
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.note_ranking import PROFILES, UNSURE, Profile, score, similarities
from notebook_sync.notes.private_note import line_of
from notebook_sync.permissions import Verb
from notebook_sync.sessions import Session

SEARCH, RECENT, PEEK = "search_my_notes", "get_recent_notes", "peek_agent_notes"
_MOST_FOLDERS = 50
_SECONDS_PER_HOUR = 3600

Documents = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which notes are asked for; what is left empty admits all. tags: any of them. since, until: of when a note was
    made, at `since` or later and before `until`; of a bare date, its first moment here. project: its notes and those
    for all, `global` for these alone."""

    tags: Sequence[str] = ()
    since: date | None = None
    until: date | None = None
    topic: str = ""
    session_id: str = ""
    project: str = ""


class NoteSearch:
    """Searches the channels of one notebook. Answers are rows: light fields, topic, session_id and created_at of each
    note and, where they were ranked, its score; never content."""

    def __init__(self, guard: Guard, channels: Channels, mirror: Callable[[], Mirror], timezone: tzinfo) -> None:
        self._guard = guard
        self._channels = channels
        self._mirror = mirror
        self._timezone = timezone

    def search(
        self, query: str, session: Session, wanted: Wanted, *, agent: str, profile: str, limit: int
    ) -> Documents:
        """Notes that have a word of `query`, or all for "", the best by `profile` first. Raises UsageError,
        NotPermitted, BackendDown."""
        if profile not in PROFILES:
            raise UsageError(f"there is no profile {profile!r}; use one of {', '.join(PROFILES)}")
        rows = self._rows(query, session, wanted, agent, limit, "read", SEARCH)
        return self._ranked(query, list(rows), PROFILES[profile])[:limit]

    def recent(self, session: Session, wanted: Wanted, *, agent: str, limit: int) -> Documents:
        """The latest notes, the newest first. Raises as `search`."""
        return list(islice(self._rows("", session, wanted, agent, limit, "read", RECENT), limit))

    def peek(self, agent: str, query: str, session: Session, wanted: Wanted, *, limit: int) -> Documents:
        """Another agent's notes, which it or the owner shares with the session: as `search` for a query, as `recent`
        for none."""
        if not agent:
            raise UsageError("name the agent whose notes are to be looked through")
        rows = self._rows(query, session, wanted, agent, limit, "peek", PEEK)
        return (
            self._ranked(query, list(rows), PROFILES["balanced"])[:limit]
            if query.strip()
            else list(islice(rows, limit))
        )

    def _rows(
        self, query: str, session: Session, wanted: Wanted, agent: str, limit: int, verb: Verb, tool: str
    ) -> Iterator[dict[str, Any]]:
        """The rows of all notes that are wanted, match the query, and may be looked at by the session, the newest
        first."""
        if not 0 <= limit <= LARGEST_LIMIT:
            raise UsageError(f"a limit is a number from 0 to {LARGEST_LIMIT:,}")
        since, until = self._moment("since", wanted.since), self._moment("until", wanted.until)
        filter = Filter(
            collections=(FOLDER,),
            tags=tuple(wanted.tags),
            topic=line_of("topic", wanted.topic),
            session_id=line_of("session_id", wanted.session_id),
        )
        folders = self._folders(session, agent, wanted.project, verb, tool)
        if not (folders and limit):
            return iter(())
        # A store takes a few folders; of many the notes are picked out here.
        filter = replace(filter, below=folders if len(folders) <= _MOST_FOLDERS else (FOLDER,))
        mirror, below = self._mirror(), tuple(f"{folder}/" for folder in folders)
        found = mirror.search(query, LARGEST_LIMIT, filter) if query.strip() else mirror.light(filter, LARGEST_LIMIT)
        rows = {
            row["path"]: row | _said_of(row)
            for row in _newest(found)
            if row["path"].startswith(below)
            and (since is None or row["created_at"] >= since)
            and (until is None or row["created_at"] < until)
        }
        return map(rows.__getitem__, self._guard.permitted(session, verb, rows))

    def _ranked(self, query: str, rows: Documents, profile: Profile) -> Documents:
        likenesses: Sequence[float | None] = self._likenesses(query, rows) if query.strip() else [None] * len(rows)
        now = datetime.now(UTC)
        ranked = [
            {**row, "score": score(profile, likeness, row.get("confidence", UNSURE), _age(row["created_at"], now))}
            for row, likeness in zip(rows, likenesses, strict=True)
        ]
        return sorted(ranked, key=lambda row: -row["score"])

    def _likenesses(self, query: str, rows: Documents) -> list[float]:
        """The store's scores would not do: it weighs a word by how many notes have it, whosever they are."""
        documents = self._mirror().get_many([row["id"] for row in rows])
        texts = [documents[row["id"]]["content"] if row["id"] in documents else row["summary"] for row in rows]
        return similarities(query, [f"{row['title']}\n{text}" for row, text in zip(rows, texts, strict=True)])

    def _folders(self, session: Session, agent: str, project: str, verb: Verb, tool: str) -> tuple[str, ...]:
        """The folders that the notes asked for lie below. What the session may look into none of is refused, and in
        the same words whether it is there or not."""
        scopes = list(dict.fromkeys((scope_of(project), GLOBAL))) if project else []
        if session.kind == "owner" and not (agent or session.agent):
            if not scopes:
                return (FOLDER,)
            return tuple(folder_of(one, scope) for one in self._channels.agents() for scope in scopes)
        owner = owner_of(agent, session)
        if session.kind == "owner" or owner == session.agent:
            self._guard.require(session, verb, f"{folder_of(owner, GLOBAL)}/{ANY}", tool)
            return tuple(folder_of(owner, scope) for scope in scopes) or (f"{FOLDER}/{owner}",)
        asked = [folder_of(owner, scope) for scope in scopes or self._channels.scopes(owner)]
        shared = tuple(folder for folder in asked if self._guard.may(session, verb, f"{folder}/{ANY}"))
        if not shared:
            self._guard.require(session, verb, f"{FOLDER}/{owner}", tool)
        return shared

    def _moment(self, name: str, when: date | None) -> datetime | None:
        if when is None:
            return None
        if not isinstance(when, datetime):
            return datetime.combine(when, time(), self._timezone)
        if when.tzinfo is None:
            raise UsageError(f"{name} is a time without a zone; add one, as in 2026-02-18T10:30:00Z")
        return when


def _said_of(row: Mapping[str, Any]) -> dict[str, str]:
    """What a row tells in any case, also of a note that was written by hand without it."""
    return {name: row.get(name, "") for name in ("topic", "session_id")}


def _newest(rows: Documents) -> Documents:
    """Newest first; of one millisecond, what was written last."""
    rows = sorted(rows, key=lambda row: row["id"])
    return sorted(rows, key=lambda row: (row["created_at"], row["updated_at"]), reverse=True)


def _age(created_at: datetime, now: datetime) -> float:
    return (now - created_at).total_seconds() / _SECONDS_PER_HOUR
