"""What the tools for facts take and answer. A fact is short, so a row of a list has its text."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from notebook_sync.surfaces.tools.schemas.notes import Arguments, Limit, Name, Result

MOST_MESSAGES = 200
LONGEST_SHOWN = 400

# The use case refuses another, and names these.
Scope = Annotated[str, Field(json_schema_extra={"enum": ["notes", "core", "archive", "all"]})]


def _as_text(value: object) -> object:
    """A number that comes as one: models send 0.7 for "0.7"."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Importance = Annotated[
    str,
    BeforeValidator(_as_text),
    Field(max_length=64),
    WithJsonSchema({"type": "string", "description": "high, medium, low, or 0 to 1"}),
]


class AddArguments(Arguments):
    content: str
    section: Name | None = Field(default=None, description="heading, default Important Facts")
    importance: Importance | None = None


class QueryArguments(Arguments):
    query: Name | None = Field(default=None, description="else the most important")
    scope: Scope | None = Field(default=None, description="default notes")
    limit: Limit | None = None


class VerifyArguments(Arguments):
    content: str


class ReinforceArguments(Arguments):
    fact: Name = Field(description="note_id, or what it says")


class Message(Arguments):
    role: Name
    content: str


class ExtractArguments(Arguments):
    messages: list[Message] = Field(max_length=MOST_MESSAGES, description="the last ones, oldest first")
    dry_run: bool | None = None


class FactRow(Result):
    """What is known of a fact. `importance` is what it counts for now, `similarity` to what was asked."""

    note_id: str
    content: str
    section: str
    path: str
    importance: float
    access_count: int
    last_accessed: datetime | None = None
    similarity: float | None = None
    provenance: str | None = None


class FactRows(Result):
    """`degraded` is why words alone tell which are like what was asked."""

    results: list[FactRow]
    degraded: str | None = None


class VerdictResult(Result):
    verdict: Literal["CONFIRMED", "RELATED", "NEW"]
    similarity: float
    matches: list[FactRow]
    degraded: str | None = None


class ChangedResult(FactRow):
    """A fact after something was done with it, or found to be done already."""

    action: str
    warnings: list[str] | None = None


class Skipped(Result):
    """What the model proposed and was not done."""

    what: str
    text: str
    reason: str


class ExtractResult(Result):
    """`error` is why the model's answer could not be used; `applied` whether anything was changed."""

    additions: list[ChangedResult]
    removals: list[ChangedResult]
    skipped: list[Skipped]
    summary: str
    applied: bool
    error: str | None = None
    warnings: list[str] | None = None
