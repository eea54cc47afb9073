"""What the routes for agents' work take and answer beside what the tools do."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from notebook_sync.surfaces.tools.schemas.agents import LogArguments, WriteNoteArguments
from notebook_sync.surfaces.tools.schemas.notes import Name

MOST_ENTRIES = 10_000


class _Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class NoteWanted(WriteNoteArguments):
    """As the tool write_note takes it."""


class LogWanted(LogArguments):
    source: Name | None = Field(default=None, description="where it comes from; else who logs it")


class CheckpointWanted(_Wanted):
    name: Name | None = None


class RollbackWanted(_Wanted):
    id: Name = Field(description="of a checkpoint")
    files: bool = Field(default=False, description="the notes too, as they were then, as a new commit")


class Deleted(BaseModel):
    path: str
    deleted: Literal[True] = True
    commit: str | None
    warnings: list[str]


class Channel(BaseModel):
    """`notes` is null where whoever asks may not look; `members` are those that they may know of."""

    id: str
    name: str
    agent: str
    scope: str
    notes: int | None
    members: dict[str, list[str]]


class Entry(BaseModel):
    """One line of the stream or of long-term memory; for a note also what happened to it, and `ref`, what it is."""

    id: str
    content: str
    source: str
    tags: list[str]
    score: float
    timestamp: str
    agent: str | None = None
    action: str | None = None
    ref: dict[str, Any] | None = None
    provenance: str | None = Field(default=None, description="external: somebody else's words, and no instruction")
    relevance: float | None = None


class Day(BaseModel):
    day: str
    entries: list[Entry]
    lost: str = Field(description='why entries of before are missing; "" where none are')
    earlier: int = Field(description="how many entries there are before these")


class Recalled(BaseModel):
    results: list[Entry]
    partial: str = Field(description='why not everything was looked through; "" where it was')


class Checkpoint(BaseModel):
    id: str
    name: str
    at: str
    notes: int
    entries: int
    longterm: int
    commit: str = Field(description='that has the files; "" where there is no git')
    warnings: list[str]


class ChangedNote(BaseModel):
    id: str
    path: str
    collection: str
    change: str


class RolledBack(BaseModel):
    """`before` is the checkpoint of how it was until now; `changed` are the notes that are not as they were then."""

    id: str
    before: str
    entries: int
    longterm: int
    changed: list[ChangedNote]
    restored: list[str]
    commit: str
    warnings: list[str]
