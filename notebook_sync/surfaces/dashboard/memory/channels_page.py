"""Whose channels there are, and the private notes in them: the latest, and those that a search finds. It changes
nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Query
from starlette.responses import Response

from notebook_sync.errors import BackendDown, UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.notes.channels.ranking import PROFILES
from notebook_sync.operations.channels import PrivateNote
from notebook_sync.sessions import Session
from notebook_sync.surfaces.dashboard.addresses import address
from notebook_sync.surfaces.dashboard.asking import Asking, Served, pages_router
from notebook_sync.surfaces.dashboard.memory.channels_view import (
    CHANNELS,
    Channel,
    Row,
    channel_of,
    row_of,
)
from notebook_sync.surfaces.dashboard.pages import page
from notebook_sync.surfaces.dashboard.trouble import Trouble, trouble_of

pages = pages_router()
PAGE: Final = 25
MOST: Final = 200
Text = Annotated[str, Query(max_length=4096)]
Short = Annotated[str, Query(max_length=256)]


@dataclass(frozen=True, slots=True)
class Notes:
    """Private notes, and where more of them are. `trouble` is why there are none."""

    rows: Sequence[Row] = ()
    more: str = ""
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Channels:
    """Channels; `count` is how many there are, whether they are shown or not."""

    rows: Sequence[Channel] = ()
    count: int = 0
    trouble: Trouble | None = None


@pages.get(CHANNELS)
def channels_page(
    notebook: Served,
    asking: Asking,
    query: Text = "",
    agent: Short = "",
    project: Short = "",
    topic: Short = "",
    session_id: Short = "",
    tags: Short = "",
    profile: Short = "",
    count: Annotated[int, Query(ge=1, le=MOST)] = PAGE,
) -> Response:
    """The channels of an agent, of all unless one is named; and their notes, narrowed by what is asked for."""
    asked = {
        "query": query.strip(),
        "agent": agent.strip(),
        "project": project.strip(),
        "topic": topic.strip(),
        "session_id": session_id.strip(),
        "tags": tags.strip(),
        "profile": profile,
    }
    channels = _channels(notebook, asking, asked["agent"])
    # What was waited for in vain is not asked again.
    notes = Notes(trouble=channels.trouble) if channels.trouble else _notes(notebook, asking, asked, count)
    return page(
        "channels.html",
        here="memory",
        status=notes.trouble.status if notes.trouble else 200,
        asked=asked,
        notes=notes,
        channels=channels,
        is_narrowed=any(asked.values()),
        is_open=any(said for name, said in asked.items() if name != "query"),
        is_sought=bool(asked["query"] or asked["tags"] or asked["profile"]),
        profiles=tuple(PROFILES),
        zone=notebook.settings.timezone,
    )


def _channels(notebook: Notebook, asking: Session, agent: str) -> Channels:
    try:
        rows = [row for row in notebook.channels.list(asking).results if agent in ("", row.agent)]
    except BackendDown as down:
        return Channels(trouble=trouble_of(down))
    return Channels([channel_of(row) for row in rows[:MOST]], len(rows))


def _notes(notebook: Notebook, asking: Session, asked: Mapping[str, str], count: int) -> Notes:
    try:
        rows = _rows(notebook, asking, asked, count + 1)
    except (UsageError, BackendDown) as error:
        return Notes(trouble=trouble_of(error))
    more = address(CHANNELS, asked, count=min(2 * count, MOST)) if len(rows) > count and count < MOST else ""
    return Notes([row_of(row) for row in rows[:count]], more)


def _rows(notebook: Notebook, asking: Session, asked: Mapping[str, str], limit: int) -> Sequence[PrivateNote]:
    """Those that are sought, and the latest where none are. Raises as `ChannelService.search`."""
    agent, project, topic, conversation = (asked[name] for name in ("agent", "project", "topic", "session_id"))
    tags = [tag for each in asked["tags"].split(",") if (tag := each.strip().removeprefix("#"))]
    if not (asked["query"] or tags or asked["profile"]):
        return notebook.channels.recent(
            asking, channel=agent, project=project, topic=topic, session_id=conversation, limit=limit
        ).results
    profile: Any = asked["profile"] or ("balanced" if asked["query"] else "recent")
    return notebook.channels.search(
        asked["query"],
        asking,
        channel=agent,
        tags=tags,
        topic=topic,
        session_id=conversation,
        project=project,
        profile=profile,
        limit=limit,
    ).results
