"""What a list of notes shows of each: made from the rows that use cases give. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup, escape

from notebook_sync.errors import UsageError
from notebook_sync.files.excerpt import plain
from notebook_sync.permissions import is_private
from notebook_sync.search.snippets import words_of
from notebook_sync.surfaces.dashboard.notes.note_view import Mark, address_of
from notebook_sync.surfaces.dashboard.rendering import AT

_WORD = re.compile(r"\w+")
_BETWEEN: Final = "~"
_MOST_TAGS: Final = 8


@dataclass(frozen=True, slots=True)
class Row:
    """A note in a list. `met` is where a search meets it, with the words marked."""

    title: str
    href: str
    path: str
    summary: str
    marks: Sequence[Mark]
    tags: Sequence[str]
    updated_at: datetime
    met: Markup | None = None
    met_at: str = ""


def row_of(row: Mapping[str, Any], words: Collection[str] = ()) -> Row:
    """A light row, with its snippet if it has one."""
    snippet = row.get("snippet") or {}
    anchor = snippet.get("section")
    href = address_of(row["path"] or row["id"])
    return Row(
        title=row["title"],
        href=href,
        path=row["path"] or row["id"],
        summary=row["summary"],
        marks=_marks(row),
        tags=row["tags"][:_MOST_TAGS],
        updated_at=row["updated_at"],
        met=marked(plain(snippet["text"]), words) if snippet else None,
        met_at=f"{href}#{AT}{quote(anchor)}" if anchor else "",
    )


def marked(text: str, words: Collection[str]) -> Markup:
    """The text with those of its words marked that were asked for."""
    pieces, end = [], 0
    for match in _WORD.finditer(text):
        if words_of(match[0]) & set(words):
            pieces += [escape(text[end : match.start()]), Markup("<mark>{}</mark>").format(match[0])]
            end = match.end()
    return Markup("").join([*pieces, escape(text[end:])])


def place_after(row: Mapping[str, Any]) -> str:
    """What an address says of the last row of a page."""
    return f"{row['updated_at'].isoformat()}{_BETWEEN}{row['id']}"


def place_in(text: str) -> tuple[datetime, str] | None:
    """The place that an address says, None for none. Raises UsageError."""
    moment, between, note_id = text.partition(_BETWEEN)
    if not text:
        return None
    try:
        found = datetime.fromisoformat(moment)
        found.astimezone()  # no moment of which there is no other beside it
    except (ValueError, OverflowError, OSError):
        found = None
    if found is None or found.tzinfo is None or not between:
        raise UsageError("that page of the list is not there any more; begin again at its first page")
    return found, note_id


def _marks(row: Mapping[str, Any]) -> list[Mark]:
    marks = [Mark("", row["collection"].replace("_", " "))]
    if row.get("provenance"):
        marks.append(Mark("warn", "from outside"))
    if is_private(row["path"]):
        marks.append(Mark("", "private"))
    if row["status"] != "draft":
        marks.append(Mark("", row["status"].replace("_", " ")))
    return marks
