"""What agents do with a notebook beside reading and editing it: one method for each use case.

Nothing is decided here: each method asks the part that does.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from notebook_sync.wiring import Wiring

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from notebook_sync.notes.written import Written
    from notebook_sync.sessions import Session

# `list` names a method of a notebook, so the type needs a name of its own.
Documents = list[dict[str, Any]]
_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})


class AgentNotebook(Wiring):
    """The use cases of agents. A `Notebook` has them all."""

    # Private notes.

    def write_note(
        self,
        content: str,
        session: Session,
        *,
        topic: str = "general",
        tags: Sequence[str] = (),
        session_id: str = "",
        project: str = "",
        metadata: Mapping[str, Any] = _NO_FIELDS,
        agent: str = "",
    ) -> Written:
        """Keep a private note in the channel of the session's agent, or of `agent`, which the owner and members of its
        channel may; for `project`, or for all ("").

        `metadata` are further fields, of which `confidence`, 0 to 1, counts in searches. Raises UsageError for what
        cannot be kept and for names that are the notebook's own; NotPermitted, UnsafePath, UnwritableFile.
        """
        return self._channels.write(
            content,
            session,
            topic=topic,
            tags=tags,
            session_id=session_id,
            project=project,
            metadata=metadata,
            agent=agent,
        )

    def search_notes(
        self,
        query: str,
        session: Session,
        *,
        agent: str = "",
        tags: Sequence[str] = (),
        since: date | None = None,
        until: date | None = None,
        topic: str = "",
        session_id: str = "",
        project: str = "",
        profile: str = "balanced",
        limit: int = 50,
    ) -> Documents:
        """Private notes with a word of `query`, or all for "", best first: light fields, topic, session_id, created_at,
        score; never content.

        They are those of `agent`, of the session's agent for "", of all agents where the owner names none. `since` and
        `until` are days or aware times: made at `since` or later, and before `until`. `project`: its notes and global
        ones, "global" for these alone, "" for all. `profile`: recent, quality, balanced or similarity. Raises
        UsageError, NotPermitted, BackendDown.
        """
        from notebook_sync.notes.note_search import Wanted

        wanted = Wanted(tags, since, until, topic, session_id, project)
        return self._note_search.search(query, session, wanted, agent=agent, profile=profile, limit=limit)

    def recent_notes(
        self,
        session: Session,
        *,
        agent: str = "",
        limit: int = 20,
        session_id: str = "",
        topic: str = "",
        project: str = "",
    ) -> Documents:
        """The latest private notes, the newest first: rows as of `search_notes`, without a score. Raises as that."""
        from notebook_sync.notes.note_search import Wanted

        wanted = Wanted(topic=topic, session_id=session_id, project=project)
        return self._note_search.recent(session, wanted, agent=agent, limit=limit)

    def peek_notes(
        self,
        agent: str,
        session: Session,
        *,
        query: str = "",
        tags: Sequence[str] = (),
        topic: str = "",
        project: str = "",
        limit: int = 20,
    ) -> Documents:
        """Notes of another agent that shares its channel: by `query` as `search_notes`, else as `recent_notes`."""
        from notebook_sync.notes.note_search import Wanted

        return self._note_search.peek(agent, query, session, Wanted(tags, topic=topic, project=project), limit=limit)

    def channels(self, session: Session) -> Documents:
        """The channels that the session may use: `{id, name, agent, scope, notes, members}`, `notes` None where it may
        not read them."""
        return self._channels.list(session)
