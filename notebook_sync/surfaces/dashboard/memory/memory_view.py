"""What the pages of the memory show of facts and memories, made from the rows that use cases give. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from notebook_sync.files.facts import ARCHIVE
from notebook_sync.operations.facts import Fact
from notebook_sync.surfaces.dashboard.addresses import address
from notebook_sync.surfaces.dashboard.notes.note_view import Mark, address_of

PAGE: Final = 50
# Of a text in a list, so much: the page of its note has the rest.
LONGEST: Final = 600
_MOST_TAGS: Final = 8
# A fact begins with 0.5 and is archived below 0.05: what nobody touched yet is no cause for alarm.
_STRONG, _WEAK = 0.3, 0.1
Tone = Literal["good", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class FactRow:
    """A fact in a list. `share` is what it counts for now, in hundredths; `may` is what can be done with it."""

    note_id: str
    content: str
    href: str
    place: str
    section: str
    importance: float
    share: int
    tone: Tone
    base: float
    uses: int
    used_at: datetime | None
    created_at: datetime
    marks: Sequence[Mark]
    may: Sequence[str]
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A memory in a list."""

    memory_id: str
    title: str
    href: str
    path: str
    marks: Sequence[Mark]
    score: float
    share: int
    tone: Tone
    domain: str
    agent: str
    tags: Sequence[str]
    created_at: datetime
    links: int
    uses: int
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Paged:
    """A page of rows out of `count`, None where nobody counted; `first` is the number of its first row, from 1."""

    rows: Sequence[Any]
    first: int
    count: int | None
    before: str = ""
    after: str = ""

    @property
    def last(self) -> int:
        """The number of its last row."""
        return self.first + len(self.rows) - 1


def paged(rows: Sequence[Any], number: int, path: str, asked: Mapping[str, object]) -> Paged:
    """The page of this number, from 1, of all rows; the last one where there are less."""
    number = max(1, min(number, -(-len(rows) // PAGE)))
    begin = (number - 1) * PAGE
    return Paged(
        rows[begin : begin + PAGE],
        begin + 1,
        len(rows),
        before=address(path, asked, page="" if number == 2 else number - 1) if number > 1 else "",
        after=address(path, asked, page=number + 1) if begin + PAGE < len(rows) else "",
    )


def fact_row(row: Fact) -> FactRow:
    """A row of a fact, as use cases give it."""
    is_archived = row.path == ARCHIVE
    return FactRow(
        note_id=row.note_id,
        content=row.content,
        href=address_of(row.path),
        place=f"{row.path}, line {row.line}",
        section=row.section,
        importance=row.importance,
        share=share_of(row.importance),
        tone=tone_of(row.importance),
        base=row.base,
        uses=row.access_count,
        used_at=row.last_accessed,
        created_at=row.created_at,
        marks=_fact_marks(row, is_archived=is_archived),
        may=("restore",) if is_archived else ("archive",) if row.core else ("reinforce", "promote", "archive"),
        similarity=row.similarity,
    )


def memory_row(row: Mapping[str, Any]) -> MemoryRow:
    """A row of a memory, as use cases give it."""
    return MemoryRow(
        memory_id=row["notebook_id"],
        title=row["title"],
        href=address_of(row["path"]),
        path=row["path"],
        marks=_memory_marks(row),
        score=row["score"],
        share=share_of(row["score"]),
        tone=tone_of(row["score"]),
        domain=row["domain"],
        agent=row["agent"],
        tags=row["tags"][:_MOST_TAGS],
        created_at=row["created_at"],
        links=row["relations"],
        uses=row["accesses"],
        similarity=row.get("similarity"),
    )


def share_of(value: float) -> int:
    """In hundredths, none where it is nothing alone."""
    return max(0, min(100, round(value * 100)))


def tone_of(value: float) -> Tone:
    """How well something fares that fades."""
    return "good" if value >= _STRONG else "warn" if value >= _WEAK else "bad"


def _fact_marks(row: Fact, *, is_archived: bool) -> list[Mark]:
    marks = []
    if row.core:
        marks.append(Mark("good", "core"))
    if is_archived:
        marks.append(Mark("", "archived"))
    if row.pinned:
        marks.append(Mark("", "base set by hand"))
    if row.provenance:
        marks.append(Mark("warn", "from outside"))
    return marks


def _memory_marks(row: Mapping[str, Any]) -> list[Mark]:
    marks = [Mark("", row["kind"] or "unstructured")]
    if row["needs_review"]:
        marks.append(Mark("warn", "to review"))
    if row.get("provenance"):
        marks.append(Mark("warn", "from outside"))
    return marks
