"""What the page of channels shows of each, and of a private note: made from the rows that use cases give. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from notebook_sync.notes.channels.channels import GLOBAL
from notebook_sync.operations.channels import AgentChannel, PrivateNote
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
class Row:
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


def channel_of(channel: AgentChannel) -> Channel:
    """A channel, as `ChannelService.list` returns it."""
    return Channel(
        agent=channel.agent,
        project=_project(channel.scope),
        href=address(CHANNELS, {"agent": channel.agent, "project": channel.scope}),
        count=channel.notes or 0,
        members=[f"{name} ({', '.join(may)})" for name, may in sorted(channel.members.items())],
    )


def row_of(note: PrivateNote) -> Row:
    """A note, as `ChannelService.recent` and `search` return it."""
    _, agent, scope, *_ = (*note.path.split("/"), "", "", "")
    return Row(
        title=note.title,
        href=address_of(note.path),
        summary="" if note.summary == note.title else note.summary,
        agent=agent,
        project=_project(scope),
        topic=note.topic,
        session_id=note.session_id,
        tags=note.tags[:_MOST_TAGS],
        created_at=note.created_at,
        is_external=bool(note.provenance),
    )


def _project(scope: str) -> str:
    return "" if scope == GLOBAL else scope
