"""What the routes for agents' work take and answer beside what the tools do."""

from __future__ import annotations

from pydantic import BaseModel


class Channel(BaseModel):
    """`notes` is null where whoever asks may not look; `members` are those that they may know of."""

    id: str
    name: str
    agent: str
    scope: str
    notes: int | None
    members: dict[str, list[str]]
