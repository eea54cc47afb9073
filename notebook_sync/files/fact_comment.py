"""The comments that end a fact in its file: the importance that a person pins, and when and why it was archived. Pure.

<!-- importance: 0.9 -->        <!-- archived: 2026-03-01; reason: faded; from: facts/notes.md -->
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date

from notebook_sync.errors import UsageError
from prompt.outline import Block

HINTS = {"core": 1.0, "high": 0.7, "medium": 0.4, "low": 0.2}
"""Importance by the words that may stand for it."""


@dataclass(frozen=True, slots=True)
class Archived:
    """When a fact was archived, why, and the file that it came from; the section is the one it stands in."""

    at: date
    reason: str = ""
    came_from: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """What the comments of a fact say; of importance nothing that is not a number from 0 to 1, or one of the hints."""

    importance: float | None = None
    archived: Archived | None = None


def comment_of(told: Told) -> str:
    """The comments that say this, on one line; "" for nothing. Raises UsageError for an importance that is none."""
    comments = []
    if told.importance is not None:
        if not 0 <= told.importance <= 1:
            raise UsageError(f"importance is a number from 0 to 1, not {told.importance}")
        comments.append(f"<!-- importance: {told.importance!r} -->")
    if told.archived is not None:
        at, reason, came_from = told.archived.at, told.archived.reason, told.archived.came_from
        named = (("archived", at.isoformat()), ("reason", reason), ("from", came_from))
        comments.append(f"<!-- {'; '.join(f'{name}: {_safe(value)}' for name, value in named if value)} -->")
    return " ".join(comments)


def told_in(comments: str) -> Told:
    """What `comment_of` was given, or a person wrote."""
    fields: dict[str, str] = {}
    for comment in _COMMENT.findall(comments):
        for field in comment.split(";"):
            name, colon, value = field.partition(":")
            if colon:
                fields[name.strip().casefold()] = value.strip()
    return Told(_importance(fields.get("importance", "")), _archived(fields))


def begin_of_comments(source: str, last: Block) -> int:
    """Where in a list item's source the comments begin that end it, the white space before them included; its end, less
    white space, where none does. `last` is the last block of the item."""
    begin = end = len(source.rstrip())
    while (opened := _opening(source, begin)) is not None:
        begin = _end_of_text(source, opened)
    if begin == end or last.type == "html_block":
        return begin
    # A backtick or a backslash before it may have made text of what looks like a comment.
    spans = [span for span in last.spans if span.value.strip()]
    return begin if spans and spans[-1].kind == "html" else end


_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
# What would end the comment or the field, and the escapes of these.
_UNSAFE = re.compile(r"[;>]|%(?=3B|3E|25)")
_ESCAPED = re.compile(r"%(3B|3E|25)")


def _end_of_text(source: str, end: int) -> int:
    """`end`, less the white space before it."""
    while end and source[end - 1].isspace():
        end -= 1
    return end


def _opening(source: str, end: int) -> int | None:
    """Where the comment opens that ends right at `end`."""
    if not source.endswith("-->", 0, end):
        return None
    after = source.rfind("-->", 0, end - 3)
    opened = source.find("<!--", after + 3 if after >= 0 else 0, end - 3)
    return opened if opened >= 0 else None


def _importance(value: str) -> float | None:
    if value.casefold() in HINTS:
        return HINTS[value.casefold()]
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number <= 1 else None


def _archived(fields: dict[str, str]) -> Archived | None:
    try:
        at = date.fromisoformat(fields.get("archived", "")[:10])
    except ValueError:
        return None
    return Archived(at, _unescaped(fields.get("reason", "")), _unescaped(fields.get("from", "")))


def _safe(value: str) -> str:
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):X}", " ".join(value.split()))


def _unescaped(value: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)
