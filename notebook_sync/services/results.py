"""What operations on notes return: frozen values whose fields are the JSON. Every field is always present.

Text of external provenance is fenced wherever a language model sees it: `for_model` does that. The classes are
msgspec's, which take a tenth of a dataclass's time to make.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from notebook_sync.model import STATUSES, is_current
from notebook_sync.registry import Result
from notebook_sync.store.rows import Row

# What `row_fields` takes of a row of the index.
COLUMNS = (
    *("id", "path", "collection", "title", "summary", "tags", "updated_at", "status", "created_by", "word_count"),
    *("version", "fields", "provenance", "stale", "superseded_by", "valid_until"),
)


class NoteRow(Result, frozen=True, kw_only=True):
    """A note without its content. `fields` is what its collection adds (language, source_url, topic …). `current`:
    no other note replaces it, and its `valid_until` is not over."""

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
    fields: dict[str, Any]
    provenance: str
    stale: str
    current: bool

    def for_model(self) -> NoteRow:
        """The row with neutral words for a note that others wrote; `id` is a name that every operation takes."""
        return replace(self, **self._neutral()) if self.provenance else self

    def _neutral(self) -> dict[str, Any]:
        name, status = neutral_name(self.id), self.status if self.status in STATUSES else "draft"
        hidden = {"created_by": "external", "status": status, "summary": "", "tags": [], "fields": {}}
        return {"id": name, "path": name, "title": name, **hidden}


class Snippet(Result, frozen=True, kw_only=True):
    """Words of a note around its best passage: from the 1-based `line` of the file, below `section` (an anchor)."""

    text: str
    section: str
    line: int


class FoundNote(NoteRow, frozen=True, kw_only=True):
    """A search result. `score` is absolute, 0 to about 1.3; `explain` has its parts, where they were asked for."""

    score: float
    snippet: Snippet | None
    explain: dict[str, Any] | None

    def _neutral(self) -> dict[str, Any]:
        snippet = self.snippet and replace(self.snippet, text=fenced(self.snippet.text), section="")
        return NoteRow._neutral(self) | {"snippet": snippet}


class SectionRow(Result, frozen=True, kw_only=True):
    """One heading of a note: its 1-based line in the file, and the words below it."""

    heading: str
    level: int
    anchor: str
    line: int
    words: int


class NoteText(NoteRow, frozen=True, kw_only=True):
    """A note, or one section of it, as the session sees it.

    `text` is the file's, or the section's; where it is longer than `max_tokens`, `next` is the offset of the next page,
    and `tokens` counts this page (None where no limit was given). `digest` is that of the whole file, "" where the
    session sees a part of it. `sections`, `extra` and `history` (the newest 50 changes) belong to the whole note.
    `linked_from` names at most 10 notes that link to it, the latest change first; `list` has them all.
    """

    digest: str
    text: str
    tokens: int | None
    next: int | None
    section: str
    sections: list[SectionRow]
    created_at: datetime | None
    aliases: list[str]
    links: list[str]
    linked_from: list[str]
    extra: dict[str, Any]
    history: list[dict[str, Any]]

    def _neutral(self) -> dict[str, Any]:
        hidden = {"section": "", "sections": [], "aliases": [], "links": [], "extra": {}, "history": []}
        return NoteRow._neutral(self) | {"text": fenced(self.text), **hidden}


class Written(Result, frozen=True, kw_only=True):
    """A note after a write. `digest` is "" for a deleted one; `version` is None where the index does not have it yet.

    `diff` is unified; `commit` the commit's id, "" for none. `warnings` name what did not work and what to do.
    """

    status: str
    notebook_id: str
    path: str
    title: str
    collection: str
    digest: str
    version: int | None
    changed: bool
    diff: str
    commit: str
    warnings: list[str]
    provenance: str

    def for_model(self) -> Written:
        """With neutral words and the difference in a fence, for a note that others wrote."""
        name, diff = neutral_name(self.notebook_id), fenced(self.diff) if self.diff else ""
        return replace(self, notebook_id=name, path=name, title=name, diff=diff) if self.provenance else self


class Missing(Result, frozen=True, kw_only=True):
    """The answer of update and delete for an id that no note has."""

    notebook_id: str
    status: str
    error: str


class Edited(Written, frozen=True, kw_only=True):
    """A note after `edit`, or as it would be (`status` "dry_run").

    `tokens` counts the file, of a prompt file what is shown of it, against its `cap` (None for other notes). `omitted`
    is what the session's prompt leaves out of it, `prompt_change` what the edit does to the prompt: tokens before and
    after, sections that fall out or come back.
    """

    tokens: int
    cap: int | None
    omitted: list[dict[str, Any]]
    prompt_change: dict[str, Any] | None


class Difference(Result, frozen=True, kw_only=True):
    """A unified diff of two versions of a note; `since` and `until` name them, "" for the file as it is now."""

    path: str
    since: str
    until: str
    diff: str
    provenance: str

    def for_model(self) -> Difference:
        """The difference in a fence, for a note that others wrote."""
        return replace(self, path="", diff=fenced(self.diff)) if self.provenance and self.diff else self


def row_fields(row: Row) -> dict[str, Any]:
    """The fields that every shape of a note has, from the `COLUMNS` of its row."""
    said, rest = dict(row["fields"] or {}), dict(row)
    current = is_current(rest.pop("superseded_by"), rest.pop("valid_until"), datetime.now(UTC))
    plain = {name: row[name] or "" for name in ("path", "provenance", "stale")}
    tags = said.pop("tags", None) or row["tags"]  # as written, else folded
    return {**rest, **plain, "tags": tags, "fields": said, "current": current}


def neutral_name(id: str) -> str:
    """A name for a note whose own words no model should read as instructions; the same for each look at it."""
    return f"external note {hashlib.sha256(id.encode()).hexdigest()[:12]}"


def fenced(text: str) -> str:
    """External text in a fence, so that nothing in it can end the fence."""
    from prompt.layout import fence_external  # loads the prompt's parts, which a person's lists do without

    return fence_external(text, "external")
