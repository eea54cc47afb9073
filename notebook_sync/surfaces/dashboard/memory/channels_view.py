"""What the page of channels shows of each, and of a private note: made from the rows that use cases give. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from notebook_sync.notes.channels.channels import GLOBAL
from notebook_sync.surfaces.dashboard.addresses import address
from notebook_sync.surfaces.dashboard.notes.note_view import address_of

CHANNELS: Final = "/memory/channels"
_MOST_TAGS: Final = 8


@dataclass(frozen=True, slots=True)
class Channel:
    """One channel. `project` is "" for that of all; `members` are who else sees it, with what they may."""

    agent: str
    project: str
    href: str
    count: int
    members: Sequence[str]


@dataclass(frozen=True, slots=True)
class PrivateNote:
    """A note of a channel in a list."""

    title: str
    href: str
    summary: str
    agent: str
    project: str
    topic: str
    session_id: str
    tags: Sequence[str]
    created_at: datetime
    is_external: bool


def channel_of(row: Mapping[str, Any]) -> Channel:
    """A channel, as `Notebook.channels` tells of it."""
    return Channel(
        agent=row["agent"],
        project=_project(row["scope"]),
        href=address(CHANNELS, {"agent": row["agent"], "project": row["scope"]}),
        count=row["notes"] or 0,
        members=[f"{name} ({', '.join(may)})" for name, may in sorted(row["members"].items())],
    )


def private_note_of(row: Mapping[str, Any]) -> PrivateNote:
    """A note, as `Notebook.recent_notes` and `search_notes` tell of it."""
    _, agent, scope, *_ = (*str(row["path"]).split("/"), "", "", "")
    summary = row["summary"] or ""
    return PrivateNote(
        title=row["title"],
        href=address_of(row["path"]),
        summary="" if summary == row["title"] else summary,
        agent=agent,
        project=_project(scope),
        topic=row["topic"],
        session_id=row["session_id"],
        tags=row["tags"][:_MOST_TAGS],
        created_at=row["created_at"],
        is_external=bool(row.get("provenance")),
    )


def _project(scope: str) -> str:
    return "" if scope == GLOBAL else scope
