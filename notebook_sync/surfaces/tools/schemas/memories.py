"""What the tools for memories, task briefs and their syntheses take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from notebook_sync.context.brief import LEAST_TOKENS
from notebook_sync.surfaces.tools.schemas.notes import Arguments, Name, Result, Tags

Priority = Annotated[int, Field(ge=1, le=10)]


class RecordArguments(Arguments):
    text: str
    domain: Name | None = Field(default=None, description="what it is about, a word")
    tags: Tags | None = None
    priority: Priority | None = Field(default=None, description="default 7")


class SpecArguments(Arguments):
    task_spec: str = Field(description="the task, Markdown")


class SelectingArguments(SpecArguments):
    max_tokens: Annotated[int, Field(ge=LEAST_TOKENS)] | None = Field(
        default=None, description="default 8000; external: 128 or more"
    )
    top_k: Annotated[int, Field(ge=1)] | None = Field(default=None, description="default 15")
    include_domains: Tags | None = Field(default=None, description="only these")
    exclude_tags: Tags | None = None


class CompileArguments(SelectingArguments):
    explain: bool | None = Field(default=None, description="also how they were chosen")


class SynthesizeArguments(SelectingArguments):
    refresh: bool | None = Field(default=None, description="ask anew")


class RecordResult(Result):
    """`structured` is how it came into form: given, by a model, or none, and then it `needs_review`."""

    notebook_id: str
    path: str
    kind: str
    title: str
    domain: str
    tags: list[str]
    agent: str | None = None
    priority: int
    version: int | None = None
    status: str
    structured: Literal["given", "model", "none"]
    needs_review: bool
    warnings: list[str] | None = None


class Used(Result):
    """A memory that a brief rests on: for the task itself, or in support of such a one."""

    id: str
    path: str
    title: str
    score: float
    contribution: Literal["primary", "supporting"]


class Related(Result):
    """A note that is no memory."""

    id: str
    path: str
    title: str


class BriefResult(Result):
    """`partial` is why fewer ways than all were searched; `explain` has a step under each name."""

    task_brief_md: str
    context_hash: str
    token_count: int
    memories_used: list[Used]
    related: list[Related]
    partial: str | None = None
    explain: dict[str, Any] | None = None


class DroppedLink(Result):
    """`link` is what was suggested, whatever that was."""

    link: Any
    reason: str


class TakenLinks(Result):
    """What became of links that a synthesis suggests."""

    ingested: list[dict[str, Any]]
    kept: list[dict[str, Any]]
    dropped: list[DroppedLink]
    warnings: list[str] | None = None


class SynthesisResult(Result):
    """`source` is who made it; `trouble` why it was made here, of the brief alone."""

    synthesis_md: str
    synthesis_id: str
    source: Literal["bridge", "llm", "local"]
    cached: bool
    context_hash: str
    memories_used: list[Used]
    links: TakenLinks
    calls_today: int
    daily_limit: int
    trouble: str | None = None
    warnings: list[str] | None = None
