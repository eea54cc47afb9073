"""Channels, where agents keep private notes: which there are, and the one way to write a note into one.

What a session may not know of is refused in the same words whether it is there or not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from notebook_sync.errors import Conflict, NoAgentNamed, UnreadableFile, UsageError
from notebook_sync.files.parse import parse
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import Mirror
from notebook_sync.notes.channels.private_note import Draft
from notebook_sync.notes.editing.door import Door, Text, digest_of
from notebook_sync.notes.editing.written import Written
from notebook_sync.notes.guard import Guard
from notebook_sync.permissions import CHANNEL, Members, members_in
from notebook_sync.sessions import Session, is_agent_name

FOLDER = "channels"
GLOBAL = "global"
WRITE = "write_note"
# Any note of a channel, where what matters is only whether the session may have one there.
ANY = "note.md"

# `list` names a method here, so the types need names of their own.
Rows = list[dict[str, Any]]
Names = list[str]
_SCOPE = re.compile(r"\w(?:[\w .@+:-]{0,126}[\w@+:-])?")
_MOST_TRIES = 1000


class Channels:
    """The channels of one notebook. `mirror` opens the content store, which only the list of channels asks."""

    def __init__(self, vault: Vault, guard: Guard, door: Door, mirror: Callable[[], Mirror]) -> None:
        self._vault = vault
        self._guard = guard
        self._door = door
        self._mirror = mirror

    def write(
        self,
        content: str,
        session: Session,
        *,
        topic: str,
        tags: Sequence[str],
        session_id: str,
        project: str,
        metadata: Mapping[str, Any],
        agent: str,
    ) -> Written:
        """Write a note into a channel of `agent`, the session's own unless named: for `project`, or for all ("").

        Raises UsageError, also for metadata with a name of RESERVED; NotPermitted; and as `Vault.write`.
        """
        folder = folder_of(owner_of(agent, session), scope_of(project))
        with self._guard.telling(session, WRITE):
            self._guard.require(session, "add", f"{folder}/{ANY}", WRITE)
            draft = Draft(
                content,
                topic=topic,
                tags=tags,
                session_id=session_id,
                provenance=session.kind,
                created_by=session.changed_by,
                created_at=datetime.now(UTC),
                metadata=metadata,
            )
            return self._written(folder, draft, session)

    def _written(self, folder: str, draft: Draft, session: Session) -> Written:
        """Notes of the same second and name are numbered, whoever else writes some at the same moment."""
        raw, name = draft.raw(), draft.name()
        said = (name for name in ("topic", "tags", "session_id") if getattr(draft, name))
        changed = ("content", *said, *draft.metadata)
        for number in range(1, _MOST_TRIES + 1):
            path = f"{folder}/{name}.md" if number == 1 else f"{folder}/{name}-{number}.md"
            if self._vault.stamp(path) is not None:
                continue
            try:
                entered = self._door.enter([Text(path, None, raw, WRITE)], session)
            except Conflict:
                continue
            note = parse(path, raw)
            return Written(
                notebook_id=note.wants,
                path=path,
                title=note.title,
                collection=note.collection,
                version=entered.versions.get(path),
                status=note.status,
                digest=digest_of(raw),
                changed=changed,
                commit=entered.commit,
                warnings=entered.warnings,
                external=note.provenance == EXTERNAL,
            )
        raise Conflict(f"{folder}/{name}.md", "", digest_of(raw))

    def list(self, session: Session) -> Rows:
        """The channels that the session may use: `{id, name, agent, scope, notes, members}` each, by agent and scope.

        `notes` is None where the session may not read them. The owner and the agent whose channel it is are told all
        members, a member itself alone.
        """
        if session.kind == EXTERNAL:
            return []
        found = [(agent, scope) for agent in self.agents() for scope in self.scopes(agent)]
        usable = [pair for pair in found if self._is_usable(folder_of(*pair), session)]
        rows = self._mirror().known([folder_of(*pair) for pair in usable])
        readable = self._guard.permitted(session, "peek", [row.path for row in rows])
        counts = Counter(tuple(path.split("/")[1:3]) for path in readable)
        return [self._told(agent, scope, counts[agent, scope], session) for agent, scope in usable]

    def agents(self) -> Names:
        """The agents that have channels, sorted."""
        return self._vault.folders(FOLDER)

    def scopes(self, agent: str) -> Names:
        """The scopes that `agent` has folders for, sorted."""
        return self._vault.folders(f"{FOLDER}/{agent}")

    def _is_usable(self, folder: str, session: Session) -> bool:
        return any(self._guard.may(session, verb, f"{folder}/{ANY}") for verb in ("read", "add", "peek"))

    def _told(self, agent: str, scope: str, notes: int, session: Session) -> dict[str, Any]:
        folder = folder_of(agent, scope)
        members = self._members(folder)
        is_ours = session.kind == "owner" or session.agent == agent
        return {
            "id": f"notes:{agent}:{scope}",
            "name": f"notes-{agent}",
            "agent": agent,
            "scope": scope,
            "notes": notes if self._guard.may(session, "peek", f"{folder}/{ANY}") else None,
            "members": {name: list(may) for name, may in members.items() if is_ours or name == session.agent},
        }

    def _members(self, folder: str) -> Members:
        try:
            return members_in(self._vault.read(f"{folder}/{CHANNEL}")[0])
        except (FileNotFoundError, UnreadableFile):
            return {}


def folder_of(agent: str, scope: str) -> str:
    """Where the notes of this channel lie."""
    return f"{FOLDER}/{agent}/{scope}"


def owner_of(agent: str, session: Session) -> str:
    """Whose channel is meant: the agent's that is named, else the session's own. Raises UsageError."""
    name = agent or session.agent
    if not name:
        raise NoAgentNamed("private notes are those of one agent; name it, as in: --agent scribe")
    if not is_agent_name(name):
        raise UsageError(f"{name!r} is no agent's name; use letters, digits, and .-_@+: between them")
    return name


def scope_of(project: str) -> str:
    """The folder for a project, whose id it bears in full; `global` for none. Raises UsageError for what is no name."""
    if not project:
        return GLOBAL
    if not _SCOPE.fullmatch(project):
        raise UsageError(f"{project!r} is no project's id; use up to 128 letters, digits, and .-_@+: between them")
    return project
