"""What the tools for an agent's own work take and answer: pages, the stream, checkpoints."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from notebook_sync.files.note import SHARED_COLLECTIONS
from notebook_sync.surfaces.tools.schemas.notes import Arguments, Limit, Name, Result, Status, Tags, When

# The use case refuses another, and names these.
Kept = Annotated[str, Field(json_schema_extra={"enum": list(SHARED_COLLECTIONS)})]
Share = Annotated[float, Field(ge=0, le=1)]


class _Fields(Arguments):
    """Those of code snippets, then those of research notes."""

    language: Name | None = None
    description: Name | None = None
    related_page: Name | None = None
    source_url: Name | None = None
    key_findings: list[str] | None = None
    confidence: Share | None = None
    related_pages: Tags | None = None

    def fields(self) -> dict[str, Any]:
        """Those that were given."""
        return {name: each for name in _Fields.model_fields if (each := getattr(self, name)) is not None}


class CreateArguments(_Fields):
    collection: Kept
    title: Name
    content: str = Field(description="Markdown, or a snippet's code")
    summary: str | None = None
    tags: Tags | None = None
    status: Status | None = None


class Change(_Fields):
    """What may be changed of a note; what is None stays."""

    content: str | None = Field(default=None, description="the whole text anew")
    title: Name | None = None
    summary: str | None = None
    tags: Tags | None = None
    status: Status | None = None


class UpdateArguments(Change):
    id: Name
    status: Name | None = None  # those of notebook_create
    expected_digest: Name | None = None


class DeleteArguments(Arguments):
    id: Name
    expected_digest: Name | None = None


class RecallArguments(Arguments):
    query: Name
    tags: Tags | None = None
    since: When | None = None
    limit: Limit | None = None


class TodayArguments(Arguments):
    day: Name | None = Field(default=None, description="2026-02-18")
    limit: Limit | None = None


class LogArguments(Arguments):
    content: str
    tags: Tags | None = None
    score: Share | None = Field(default=None, description="how much it matters, default 0.5")
    keep: bool | None = Field(default=None, description="for good, not for the day")


class CheckpointArguments(Arguments):
    name: Name | None = None


class RollbackArguments(Arguments):
    id: Name | None = None
    files: bool | None = Field(default=None, description="the notes too")


class WrittenResult(Result):
    """A note after it was made or changed. `changed` names what is new of it."""

    notebook_id: str
    path: str
    title: str
    collection: str
    status: str
    digest: str
    changed: list[str]
    warnings: list[str]
    version: int | None = None
    commit: str | None = None
    provenance: str | None = None


class DeletedResult(Result):
    path: str
    deleted: Literal[True] = True
    warnings: list[str]
    commit: str | None = None


class Mentioned(Result):
    """The note that an entry tells of."""

    notebook_id: str
    title: str
    collection: str
    status: str
    path: str


class EntryResult(Result):
    """An entry of the stream, of long-term memory, or what is remembered of a note (`ref`)."""

    id: str
    content: str
    source: str
    tags: list[str]
    score: float
    timestamp: str
    action: str | None = None
    ref: Mentioned | None = None
    provenance: str | None = None


class RecallResult(Result):
    """`partial` says why not everything was looked through."""

    results: list[EntryResult]
    partial: str | None = None


class TodayResult(Result):
    """The last entries of a day, oldest first, and how many there are `earlier`; `lost` says that some are gone."""

    day: str
    results: list[EntryResult]
    earlier: int
    lost: str | None = None


class LogResult(Result):
    id: str
    timestamp: str


class CheckpointResult(Result):
    """`notes`, `entries` and `longterm` are how many it holds."""

    id: str
    name: str
    at: str
    notes: int
    entries: int
    longterm: int
    commit: str
    warnings: list[str]


class CheckpointsResult(Result):
    """The latest first; `lost` says that some are gone."""

    checkpoints: list[CheckpointResult]
    lost: str | None = None


class ChangedNote(Result):
    """What became of a note since the checkpoint."""

    id: str
    path: str
    collection: str
    change: str


class RolledBackResult(Result):
    """`before` is the checkpoint to go back to where this was a mistake."""

    id: str
    before: str
    entries: int
    longterm: int
    changed: list[ChangedNote]
    restored: list[str]
    commit: str
    warnings: list[str]
