"""Finding private notes: an agent its own, a member those of a shared channel, the owner all of them.

Notes that the session may not read have no part in an answer: not in its order, its scores, its limit or its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from notebook_sync.errors import UsageError
from notebook_sync.mirror.base import LARGEST_LIMIT, Filter, Mirror
from notebook_sync.notes.channels.channels import ANY, FOLDER, GLOBAL, Channels, folder_of, owner_of, scope_of
from notebook_sync.notes.channels.near import NoteNear
from notebook_sync.notes.channels.private_note import line_of
from notebook_sync.notes.channels.ranking import PROFILES, UNSURE, Profile, fused, score, similarities
from notebook_sync.notes.channels.reach import Documents, Reach, newest_first
from notebook_sync.notes.guard import Guard
from notebook_sync.permissions import Verb
from notebook_sync.refs.ranking import far_from
from notebook_sync.search.query_meaning import Ranked
from notebook_sync.sessions import Session
from notebook_sync.settings import Settings

SEARCH, RECENT, PEEK = "search_my_notes", "get_recent_notes", "peek_agent_notes"
# So many notes are ranked by when they were made, and so many by their words.
_RANKED = 1000
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which notes are asked for; what is left empty admits all. tags: any of them. since, until: of when a note was
    made, aware times, at `since` or later and before `until`. project: its notes and those for all, `global` for these
    alone."""

    tags: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    topic: str = ""
    session_id: str = ""
    project: str = ""


class NoteSearch:
    """Searches the channels of one notebook. Answers are rows: light fields, topic, session_id and created_at of each
    note and, where they were ranked, its score; never content."""

    def __init__(
        self, guard: Guard, channels: Channels, mirror: Callable[[], Mirror], settings: Settings, near: NoteNear
    ) -> None:
        self._guard = guard
        self._channels = channels
        self._mirror = mirror
        self._meaning = float(settings.search.meaning)
        self._near = near

    def search(self, query: str, session: Session, wanted: Wanted, *, agent: str, profile: str, limit: int) -> Ranked:
        """Notes that have a word of `query` or mean much the same, or any for "", the best by `profile` first. Raises
        UsageError, NotPermitted, BackendDown.

        Where more than a thousand would have to be ranked, these are: the thousand made last and, of those that have a
        word, the thousand that the store finds best; for a larger limit, as many of both.
        """
        if profile not in PROFILES:
            raise UsageError(f"there is no profile {profile!r}; use one of {', '.join(PROFILES)}")
        reach = self._reach(session, wanted, agent, limit, "read", SEARCH)
        return self._ranked(query, reach, PROFILES[profile], limit)

    def recent(self, session: Session, wanted: Wanted, *, agent: str, limit: int) -> Documents:
        """The latest notes, the newest first. Raises as `search`."""
        return self._reach(session, wanted, agent, limit, "read", RECENT).newest(limit)

    def peek(self, agent: str, query: str, session: Session, wanted: Wanted, *, limit: int) -> Ranked:
        """Another agent's notes, which it or the owner shares with the session: as `search` for a query, as `recent`
        for none."""
        if not agent:
            raise UsageError("name the agent whose notes are to be looked through")
        reach = self._reach(session, wanted, agent, limit, "peek", PEEK)
        return self._ranked(query, reach, PROFILES["balanced"], limit) if query.strip() else Ranked(reach.newest(limit))

    def _reach(self, session: Session, wanted: Wanted, agent: str, limit: int, verb: Verb, tool: str) -> Reach:
        """What the call may be told of. Raises where it may not be made."""
        if not 0 <= limit <= LARGEST_LIMIT:
            raise UsageError(f"a limit is a number from 0 to {LARGEST_LIMIT:,}")
        filter = Filter(
            collections=(FOLDER,),
            tags=tuple(wanted.tags),
            topic=line_of("topic", wanted.topic),
            session_id=line_of("session_id", wanted.session_id),
            made_since=wanted.since,
            made_until=wanted.until,
        )
        folders = self._folders(session, agent, wanted.project, verb, tool)
        return Reach(self._mirror, folders, filter, partial(self._guard.permitted, session, verb))

    def _ranked(self, query: str, reach: Reach, profile: Profile, limit: int) -> Ranked:
        if not limit:
            return Ranked()
        count, trouble = max(limit, _RANKED), ""
        likenesses: Sequence[float | None]
        if query.strip():
            rows, cosines, trouble = self._with_near(query, _candidates(query, reach, count), reach, count)
            words = self._likenesses(query, rows)
            likenesses = [fused(*both, self._meaning) for both in zip(words, cosines, strict=True)]
        else:
            rows = reach.newest(count)
            likenesses = [None] * len(rows)
        now = datetime.now(UTC)
        ranked = [
            {**row, "score": score(profile, likeness, row.get("confidence", UNSURE), _age(row["created_at"], now))}
            for row, likeness in zip(rows, likenesses, strict=True)
        ]
        return Ranked(sorted(ranked, key=lambda row: -row["score"])[:limit], trouble)

    def _with_near(
        self, query: str, found: Documents, reach: Reach, count: int
    ) -> tuple[Documents, list[float | None], str]:
        """What words found and, of the newest, what means much the same, the newest first; how like each is; and why
        that cannot be said, else ""."""
        rows = {row["id"]: row for row in found}
        others = {row["id"]: row for row in reach.newest(count)} if self._near.is_on else {}
        near = self._near.to(query, rows.keys() | others.keys())
        far = far_from(near.cosines.values(), near.unrelated)
        rows |= {note_id: row for note_id, row in others.items() if near.cosines.get(note_id, far) > far}
        ranked = newest_first(list(rows.values()))
        return ranked, [near.cosines.get(row["id"]) for row in ranked], near.trouble

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


def _candidates(query: str, reach: Reach, count: int) -> Documents:
    """The notes that have a word of the query: all of them, if they are no more than these. Which they are does not
    depend on what may not be told."""
    found = reach.best(query, count)
    if len(found) == count:
        # The oldest of the newest, whether it has a word or not: what is older than that is not asked for.
        newest = reach.newest(count)
        found += reach.best(query, count, made_since=newest[-1]["created_at"]) if newest else []
    return found


def _age(created_at: datetime, now: datetime) -> float:
    return (now - created_at).total_seconds() / _SECONDS_PER_HOUR
