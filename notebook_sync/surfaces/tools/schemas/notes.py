"""What each tool takes and answers, as Pydantic models, and the small JSON schema of a model that a client is sent.

Arguments are taken exactly: no unknown name, no text for a number. `null` stands for what is left out, everywhere.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from notebook_sync.files.edits import Action
from notebook_sync.files.note import COLLECTIONS, STATUSES
from notebook_sync.operations.schema import small_schema

MOST_RESULTS = 100
FEWEST_TOKENS = 100
_LONGEST_NAME = 4_096
_MOST_STEPS = 50
_MOST_TAGS = 100
_LONGEST_DIFF = 4_000
_MOST_COMPLAINTS = 5

Name = Annotated[str, Field(max_length=_LONGEST_NAME)]
Limit = Annotated[int, Field(ge=1, le=MOST_RESULTS)]
Tags = Annotated[list[Annotated[str, Field(max_length=_LONGEST_NAME)]], Field(max_length=_MOST_TAGS)]
When = Annotated[str, Field(max_length=_LONGEST_NAME, description="2026-02-18, or 7d for days ago")]
# The use case refuses another, and names these.
Collection = Annotated[str, Field(json_schema_extra={"enum": list(COLLECTIONS)})]
Status = Annotated[str, Field(json_schema_extra={"enum": list(STATUSES)})]


class Arguments(BaseModel):
    """What a model sends."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Step(Arguments):
    # The actions are named once, one level up.
    action: Annotated[Action, WithJsonSchema({"type": "string"})]
    section: Name | None = None
    content: str | None = None
    entry_match: str | None = None
    to: Name | None = None


class EditArguments(Arguments):
    file: Name = Field(description="path, id or runtime file's name")
    action: Literal["read", Action]
    section: Name | None = Field(default=None, description="heading or anchor")
    content: str | None = None
    entry_match: str | None = Field(default=None, description="words that only this entry has")
    to: Name | None = Field(default=None, description="section that move_entry moves to, add_section follows")
    more: list[Step] | None = Field(None, max_length=_MOST_STEPS, description="more edits of it, all or none")
    expected_digest: Name | None = None
    reason: Name | None = None
    allow_over_cap: bool | None = None
    preview: bool | None = Field(default=None, description="only tell what would happen")


class ReadArguments(Arguments):
    id: Name = Field(description="path, id or [[link]], with #section")
    section: Name | None = Field(default=None, description="heading or anchor")
    max_tokens: Annotated[int, Field(ge=FEWEST_TOKENS)] | None = Field(default=None, description="default 4000")
    omitted: bool | None = None
    offset: int | None = None


class ListArguments(Arguments):
    collection: Collection | None = None
    status: Status | None = None
    tags: Tags | None = Field(default=None, description="any of them")
    author: Name | None = Field(default=None, description="owner, or agent:NAME")
    since: When | None = None
    limit: Limit | None = None


class SearchArguments(ListArguments):
    query: Name
    # Those of notebook_list, which every session has too.
    collection: Name | None = None
    status: Name | None = None
    mode: Literal["keyword", "semantic", "hybrid"] | None = None
    section: Name | None = Field(default=None, description="only below this heading")
    snippet: bool | None = Field(default=None, description="quote what fits best")


def _cut(diff: str) -> str:
    """A whole file that was written is known to who wrote it."""
    return diff if len(diff) <= _LONGEST_DIFF else f"{diff[:_LONGEST_DIFF]}\n[… {len(diff) - _LONGEST_DIFF:,} more]"


class Result(BaseModel):
    """What a model gets back; a field that is None is left out."""

    model_config = ConfigDict(frozen=True)


class ReadResult(Result):
    """`text` is of the file with `digest`; `tokens` are those of all that was asked for."""

    id: str
    path: str
    title: str
    digest: str
    version: int
    text: str
    tokens: int
    truncated: bool
    section: str | None = None
    stale: str | None = None
    provenance: str | None = None
    next: str | None = None


class OmittedResult(Result):
    """One page of what the session's prompt leaves out; `tokens` are those of all pages."""

    path: str
    digest: str
    text: str
    tokens: int
    truncated: bool
    section: str | None = None
    next: str | None = None


class Left(Result):
    """A section of a file that the prompt leaves out, or a part of one."""

    anchor: str
    heading: str
    tokens: int


class EditResult(Result):
    """`digest` is what the file has now, or would have. `omitted` is what the session's prompt leaves out of it, and
    `change` what becomes of that prompt."""

    success: bool
    path: str
    digest: str
    tokens: int
    omitted: list[Left]
    changed: bool
    diff: Annotated[str, AfterValidator(_cut)]
    warnings: list[str]
    version: int | None = None
    change: dict[str, Any] | None = None
    commit: str | None = None
    provenance: str | None = None


class Row(Result):
    """What is told of a note without its content."""

    id: str
    path: str
    collection: str
    title: str
    summary: str
    tags: list[str]
    updated_at: datetime
    status: str
    created_by: str
    word_count: int
    version: int
    provenance: str | None = None
    score: float | None = None


class Rows(Result):
    results: list[Row]


class Snippet(Result):
    """Words of the note, from this line of its file on, below the heading with the anchor `section`, "" for none."""

    text: str
    section: str
    line: int


class Found(Row):
    """`snippet` where one was asked for and there is a text to quote."""

    snippet: Snippet | None = None


class Search(Result):
    """`mode` is what was done; `degraded` why that is less than was asked for; `behind` of how many notes the meaning
    is not known yet, or only what they said before."""

    results: list[Found]
    mode: str
    degraded: str | None = None
    behind: int | None = None


def complaints(error: ValidationError) -> str:
    """What is wrong with which argument, without the values, which may be long."""
    found = error.errors(include_url=False, include_context=False, include_input=False)[:_MOST_COMPLAINTS]
    return "; ".join(": ".join(filter(None, (".".join(map(str, each["loc"])), each["msg"]))) for each in found)


def schema_of(model: type[BaseModel], *, strict: bool = False) -> dict[str, Any]:
    """The small JSON schema of a model."""
    return small_schema(model.model_json_schema(), strict=strict)
