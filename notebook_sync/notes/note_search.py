"""Finding private notes: an agent its own, a member those of a shared channel, the owner all of them.

Notes that the session may not read have no part in an answer: not in its order, its scores, its limit or its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.mirror.base import Document, Mirror
from notebook_sync.notes.channels import ANY, FOLDER, GLOBAL, Channels, folder_of, is_share, line_of, owner_of, scope_of
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.note_ranking import PROFILES, UNSURE, Profile, score, similarities
from notebook_sync.permissions import Verb
from notebook_sync.sessions import Session

SEARCH, RECENT, PEEK = "search_my_notes", "get_recent_notes", "peek_agent_notes"
_LARGEST_LIMIT = 2**31 - 1
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
        weights = _profile(profile)
        rows = self._rows(session, wanted, agent, limit, "read", SEARCH)
        return self._ranked(query, rows, weights)[:limit]

    def recent(self, session: Session, wanted: Wanted, *, agent: str, limit: int) -> Documents:
        """The latest notes, the newest first. Raises as `search`."""
        return _newest(self._rows(session, wanted, agent, limit, "read", RECENT))[:limit]

    def peek(self, agent: str, query: str, session: Session, wanted: Wanted, *, limit: int) -> Documents:
        """Another agent's notes, which it or the owner shares with the session: as `search` for a query, as `recent`
        for none."""
        if not agent:
            raise UsageError("name the agent whose notes are to be looked through")
        rows = self._rows(session, wanted, agent, limit, "peek", PEEK)
        found = self._ranked(query, rows, PROFILES["balanced"]) if query.strip() else _newest(rows)
        return found[:limit]

    def _ranked(self, query: str, rows: Documents, profile: Profile) -> Documents:
        now = datetime.now(UTC)
        likenesses: Sequence[float | None] = [None] * len(rows)
        if query.strip():
            likenesses = self._likenesses(query, rows)
            found = [(row, likeness) for row, likeness in zip(rows, likenesses, strict=True) if likeness]
            rows, likenesses = [row for row, _ in found], [likeness for _, likeness in found]
        ranked = [
            {**row, "score": score(profile, likeness, row.get("confidence", UNSURE), _age(row["created_at"], now))}
            for row, likeness in zip(rows, likenesses, strict=True)
        ]
        return sorted(_newest(ranked), key=lambda row: -row["score"])

    def _likenesses(self, query: str, rows: Documents) -> list[float]:
        documents = self._mirror().get_many([row["id"] for row in rows])
        texts = [_text(documents.get(row["id"])) for row in rows]
        return similarities(query, texts)

    def _rows(self, session: Session, wanted: Wanted, agent: str, limit: int, verb: Verb, tool: str) -> Documents:
        """The rows of all notes that are wanted and that the session may read, in no order."""
        if not 0 <= limit <= _LARGEST_LIMIT:
            raise UsageError(f"a limit is a number from 0 to {_LARGEST_LIMIT:,}")
        since, until = self._moment("since", wanted.since), self._moment("until", wanted.until)
        topic, session_id = line_of("topic", wanted.topic), line_of("session_id", wanted.session_id)
        folders = self._folders(session, agent, wanted.project, verb, tool)
        mirror = self._mirror()
        found = mirror.get_many([row.id for row in mirror.known(folders)])
        rows = {row["path"]: row for row in map(_light, found.values())}
        return [
            row
            for row in map(rows.__getitem__, self._guard.permitted(session, verb, rows))
            if (not wanted.tags or set(wanted.tags) & set(row["tags"]))
            and (not topic or row.get("topic") == topic)
            and (not session_id or row.get("session_id") == session_id)
            and (since is None or row["created_at"] >= since)
            and (until is None or row["created_at"] < until)
        ]

    def _folders(self, session: Session, agent: str, project: str, verb: Verb, tool: str) -> list[str]:
        """The folders that the notes asked for lie below. What the session may look into none of is refused, and in
        the same words whether it is there or not."""
        scopes = list(dict.fromkeys((scope_of(project), GLOBAL))) if project else []
        if session.kind == "owner" and not (agent or session.agent):
            agents = self._channels.agents() if scopes else []
            return [folder_of(one, scope) for one in agents for scope in scopes] if scopes else [FOLDER]
        owner = owner_of(agent, session)
        if session.kind == "owner" or owner == session.agent:
            self._guard.require(session, verb, f"{folder_of(owner, GLOBAL)}/{ANY}", tool)
            return [folder_of(owner, scope) for scope in scopes] or [f"{FOLDER}/{owner}"]
        asked = [folder_of(owner, scope) for scope in scopes or self._channels.scopes(owner)]
        shared = [folder for folder in asked if self._guard.may(session, verb, f"{folder}/{ANY}")]
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


def _profile(name: str) -> Profile:
    if name not in PROFILES:
        raise UsageError(f"there is no profile {name!r}; use one of {', '.join(PROFILES)}")
    return PROFILES[name]


def _newest(rows: Documents) -> Documents:
    """Newest first; of one millisecond, what was written last."""
    return sorted(
        sorted(rows, key=lambda row: row["id"]), key=lambda row: (row["created_at"], row["updated_at"]), reverse=True
    )


def _age(created_at: datetime, now: datetime) -> float:
    return (now - created_at).total_seconds() / _SECONDS_PER_HOUR


def _text(document: Document | None) -> str:
    return f"{document['title']}\n{document['summary']}\n{document['content']}" if document else ""


def _light(document: Document) -> Document:
    metadata = document["metadata"]
    extra = metadata["extra"]
    row = {
        **{name: document[name] for name in ("id", "path", "collection", "title", "summary")},
        **{name: metadata[name] for name in ("tags", "updated_at", "status", "created_by", "word_count", "version")},
        **({"provenance": metadata["provenance"]} if metadata["provenance"] else {}),
        **{name: str(extra[name]) for name in ("topic", "session_id") if extra.get(name) not in (None, "")},
        "created_at": metadata["created_at"],
    }
    confidence = extra.get("confidence")
    return row | {"confidence": confidence} if is_share(confidence) else row
