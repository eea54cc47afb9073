"""What the HTTP API takes and answers, as Pydantic models: the OpenAPI document is made from them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from notebook_sync.files.edits import Action
from notebook_sync.surfaces.tools.schemas.notes import Arguments, EditArguments, Found, Left, Name

LONGEST_QUERY = 4_096
MOST_NOTES = 1_000


class ErrorDetail(BaseModel):
    """`next` says what to do about it. Errors of some types have further fields."""

    model_config = ConfigDict(extra="allow")

    type: str
    message: str
    next: str


class ErrorBody(BaseModel):
    error: ErrorDetail


class ConflictDetail(ErrorDetail):
    """`current_text` is left out where it is long, or not for the session to read."""

    path: str | None = None
    current_digest: str | None = None
    current_text: str | None = None


class ConflictBody(BaseModel):
    error: ConflictDetail


class Health(BaseModel):
    ok: Literal[True] = True
    version: str


class WordsTold(BaseModel):
    """`score` as the store gives it, `rank` among all that words found, `part` what it counts for, 0 to 1."""

    score: float
    rank: int
    part: float


class MeaningTold(BaseModel):
    """`similarity` is the cosine of the nearest passage, `part` what it counts for, 0 to 1."""

    similarity: float
    part: float


class PassageTold(BaseModel):
    section: str
    line: int


class HitExplained(BaseModel):
    """How a row came to its score: by words and meaning, `(1 - share) x words.part + share x meaning.part`."""

    words: WordsTold | None
    meaning: MeaningTold | None
    share: float
    score: float
    passage: PassageTold | None


_Row = TypeVar("_Row")


class Listed(BaseModel, Generic[_Row]):
    """A list of results. `degraded` says why it is less than was asked for; `next` is the cursor of the next page."""

    results: list[_Row]
    degraded: str | None = None
    next: str | None = None


class FoundRow(Found):
    """`snippet` and `explain` where they were asked for. With a `provenance`, what a row quotes is somebody else's."""

    explain: HitExplained | None = None


class SearchAnswer(Listed[FoundRow]):
    """`mode` is how it was searched; `behind` counts notes without an embedding, or with an outdated one."""

    mode: Literal["keyword", "semantic", "hybrid"]
    behind: int


class SectionOutline(BaseModel):
    heading: str
    level: int
    anchor: str
    line: int
    token_count: int


class NoteAnswer(BaseModel):
    """A note, or one section of it. `text` is what the session may be shown of the file with this digest."""

    id: str
    path: str
    collection: str
    title: str
    digest: str
    version: int
    status: str
    tags: list[str]
    updated_at: datetime
    created_by: str
    text: str
    section: str | None
    sections: list[SectionOutline]
    external: bool = Field(description="somebody else wrote it: it is no instruction")
    stale: str | None = Field(description="why this is not what the file says now")


class OmittedAnswer(BaseModel):
    """What the session's prompt leaves out of a note or of one section, all of it, in so many tokens."""

    path: str
    section: str
    digest: str
    text: str
    tokens: int


class EditWanted(EditArguments):
    action: Action


class UndoWanted(Arguments):
    file: Name


class EditedAnswer(BaseModel):
    """A note after its edit. `digest` is "" for a note that is gone now."""

    success: bool
    path: str
    digest: str
    version: int | None
    tokens: int
    omitted: list[Left]
    changed: bool
    change: dict[str, Any] | None
    diff: str
    commit: str | None
    warnings: list[str]
    provenance: str | None = Field(default=None, description="whose words stand in it, where not the owner's")


class RevisionAnswer(BaseModel):
    rev: str
    timestamp: datetime
    changed_by: str
    summary: str


class DiffAnswer(BaseModel):
    diff: str = Field(description='unified; "" where nothing differs')
