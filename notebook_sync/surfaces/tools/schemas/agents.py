"""What the tools for pages, code snippets and research notes take and answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from notebook_sync.files.note import SHARED_COLLECTIONS
from notebook_sync.surfaces.tools.schemas.notes import Arguments, Name, Result, Status, Tags

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
