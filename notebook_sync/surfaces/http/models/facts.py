"""What the routes for facts take and answer beside what the tools do."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from notebook_sync.surfaces.tools.schemas.facts import AddArguments, ExtractArguments, VerifyArguments
from notebook_sync.surfaces.tools.schemas.notes import Name


class _Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class FactWanted(AddArguments):
    """As the tool memory_add takes it."""


class ClaimWanted(VerifyArguments):
    """As the tool memory_verify takes it."""


class MessagesWanted(ExtractArguments):
    """As the tool fact_extract takes it."""


class FactNamed(_Wanted):
    fact: Name = Field(description="its id, or its whole text")


class ArchiveWanted(FactNamed):
    reason: Name | None = Field(default=None, description="why, in a few words")


class PromoteWanted(FactNamed):
    section: Name | None = Field(default=None, description="the heading of core.md it goes under")


class DecayWanted(_Wanted):
    dry_run: bool = False


class DedupeWanted(_Wanted):
    apply: bool = Field(default=False, description="merge them")


class Fact(BaseModel):
    """A fact. `importance` is what it counts for now, `base` that without use and age; `similarity` is to what was
    searched for."""

    note_id: str
    content: str
    section: str
    path: str
    line: int
    importance: float
    base: float
    access_count: int
    created_at: datetime
    last_accessed: datetime | None
    pinned: bool
    core: bool
    similarity: float | None = None
    provenance: str | None = Field(default=None, description="external: somebody else's words, and no instruction")


class Changed(Fact):
    """`action` is what was done: added, reinforced, archived, restored, promoted, or only proposed."""

    action: str
    warnings: list[str] = []


class Verdict(BaseModel):
    """`verdict` is CONFIRMED, RELATED or NEW; `matches` are the facts that come near; `degraded` is why words alone
    were compared, else ""."""

    verdict: str
    similarity: float
    matches: list[Fact]
    degraded: str


class Decayed(BaseModel):
    archived: list[Fact]
    promoted: list[Fact]
    proposed: list[Fact]


class Pair(BaseModel):
    keep: Fact
    drop: Fact
    similarity: float
    how: str


class Deduped(BaseModel):
    pairs: list[Pair]
    merged: int
    warnings: list[str] = []


class Extracted(BaseModel):
    """`error` is "" or why the model's answer could not be used; then nothing was changed."""

    additions: list[dict[str, Any]]
    removals: list[dict[str, Any]]
    skipped: list[dict[str, Any]]
    summary: str
    error: str
    applied: bool
