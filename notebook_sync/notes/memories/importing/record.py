"""What one record of another program becomes: a memory's file. Pure.

All that the record says is in the file, or there is none and it is told why: a text that follows the template has its
parts, another stands as it is; what a memory has no field for stands below its fields, under its own name.
"""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from notebook_sync.errors import UsageError
from notebook_sync.files.edit_shape import characters_refused
from notebook_sync.files.fields import LONGEST_ID
from notebook_sync.files.memories import HIGHEST_PRIORITY, PARTS, kind_said
from notebook_sync.files.new_note import note_text, slug_of
from notebook_sync.files.note import STATUSES
from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.mirror.memories import DEFAULT_PRIORITY, Link
from notebook_sync.notes.channels.older_export import OLDER, holdable
from notebook_sync.notes.channels.private_note import reason_against
from notebook_sync.notes.memories.importing.columns import COLUMNS, EMPTY, lasting
from notebook_sync.notes.memories.importing.values import (
    Dropped,
    as_links,
    as_number,
    as_priority,
    as_tags,
    as_time,
    decoded,
)
from notebook_sync.notes.memories.metadata import agent_of
from notebook_sync.notes.memories.suggestions import short
from notebook_sync.notes.memories.template import Told, read_memory
from notebook_sync.notes.memories.text import FOLDER, UNSTRUCTURED, body_of, day_of, fields_of, reads_as_meant, title_of
from notebook_sync.notes.page_text import checked_title
from notebook_sync.permissions import is_ignorable

# The fields that tell of which record a memory was made, whatever was done to it since, and what its id was there.
IMPORTED, IMPORTED_ID = "imported", "imported_id"
_FIELDS = frozenset(("kind", "domain", "agent", "priority", "needs_review", "relations", IMPORTED, IMPORTED_ID, OLDER))
_LONGEST_LINE = 200
_DIGITS, _TEXT_DIGITS = 15, 10
_UNDATED = "undated"

_Value = TypeVar("_Value")


class Mark(NamedTuple):
    """What tells a record from every other, however often it was used since; and its text from other texts, "" where
    that is not known."""

    record: str
    text: str

    @classmethod
    def read(cls, told: str) -> Mark:
        """The mark that stands in a file."""
        record, _, text = told.partition("-")
        return cls(record, text)

    def written(self) -> str:
        """As a file holds it."""
        return f"{self.record}-{self.text}"


@dataclass(frozen=True, slots=True)
class Drafted:
    """A memory that a record becomes. `identity` tells its record from every other; `id` is that which it had there,
    "" for none that a note can have; `name` is that of its file in `folder`, without a number. `is_brought_back`: its
    priority is only the nearest to what the record says; `dropped` is what stands among its links and is none."""

    identity: str
    id: str
    folder: str
    name: str
    needs_review: bool
    relations: Sequence[Link]
    accesses: int
    last_accessed: datetime | None
    fields: Mapping[str, Any]
    content: str
    is_brought_back: bool
    dropped: Sequence[Dropped]

    def raw(self, note_id: str, relations: Sequence[Link]) -> bytes:
        """The bytes of its file. Raises UsageError for what a file cannot hold."""
        links = [fields_of(link) for link in relations] or None
        told = {IMPORTED_ID: self.id or None} if note_id != self.id else {}
        return note_text({"id": note_id, **self.fields, "relations": links, **told}, self.content).encode()


@dataclass(frozen=True, slots=True)
class Drafting:
    """Makes memories of the records of one export. `links` are those that the export has outside its records, by their
    ids; `leads_on` tells whether there is a memory with an id, or will be."""

    links: Mapping[str, Sequence[Link]]
    leads_on: Callable[[str], bool]
    timezone: tzinfo
    created_by: str

    def draft(self, record: Mapping[str, Any]) -> Drafted:
        """Raises UsageError for a record that cannot become a memory."""
        own_id = id_in(record)
        taking = _Taking(record)
        taking.take("vector", _as_vector)
        taking.take("id", lambda value: own_id == _id(value) or None)
        told, content, is_structured = _said(taking, taking.take("tags", as_tags) or ())
        created_at = taking.take("created_at", as_time)
        agent = agent_of(taking.value("agent"), told.tags)
        taking.take("agent", lambda value: value in (agent, f"agent:{agent}") or None)
        relations, dropped = self._relations(taking, own_id)
        is_flagged = bool(taking.take("needs_review", lambda value: value in (True, 1) or None))
        needs_review = is_flagged or not is_structured or created_at is None or not agent
        mark = mark_of(record)
        priority, is_brought_back = _priority(taking)
        fields: dict[str, Any] = {
            "title": told.title,
            "summary": taking.take("summary", _as_line),
            "kind": told.kind or None,
            "domain": taking.take("domain", _as_line),
            "tags": list(told.tags) or None,
            "created_at": created_at,
            "agent": agent or None,
            "priority": priority,
            "status": taking.take("status", _as_status),
            "created_by": self.created_by,
            "provenance": taking.take("provenance", _as_external),
            "needs_review": needs_review or None,
            IMPORTED: mark.written(),
        }
        accesses, last_accessed = taking.take("accesses", _as_count), taking.take("last_accessed", as_time)
        if created_at is None and (malformed := taking.take("created_at", _as_line)):
            fields["created_at"] = malformed  # it stays where a person looks for it, and an audit tells of it
        day = day_of(created_at, self.timezone) if created_at else _UNDATED
        return Drafted(
            mark.record,
            own_id,
            f"{FOLDER}/{told.kind or UNSTRUCTURED}",
            f"{day}-{slug_of(told.title, 'memory')}",
            needs_review,
            relations,
            accesses or 0,
            last_accessed,
            fields | taking.left(),
            content,
            is_brought_back,
            dropped,
        )

    def _relations(self, taking: _Taking, own_id: str) -> tuple[Sequence[Link], Sequence[Dropped]]:
        """The links, and what is none. A column that says more than links stays."""
        links, dropped = list[Link](), list[Dropped]()
        for column in COLUMNS["relations"]:
            if column in taking.values and not links:
                links, others = as_links(taking.values[column], self.leads_on)
                dropped += others
                if not others:
                    del taking.values[column]
        for link in self.links.get(own_id, ()):
            if self.leads_on(link.to):
                links.append(link)
            else:
                dropped.append(({"type": link.type, "to": link.to}, f"there is no memory {short(link.to)!r}"))
        return links, dropped


def _priority(taking: _Taking) -> tuple[int, bool]:
    """The priority, and whether the record's number lies beyond 1 to 10. A number that was changed stays."""
    for column in COLUMNS["priority"]:
        value = taking.values.get(column)
        priority, number = as_priority(value), as_number(value)
        if priority is not None and number is not None:
            if priority == number:
                del taking.values[column]
            return priority, not 1 <= number <= HIGHEST_PRIORITY
    return DEFAULT_PRIORITY, False


def id_in(record: Mapping[str, Any]) -> str:
    """The id that a record has, "" for none that a note can have."""
    return _id(record.get("id"))


def require_text(record: Mapping[str, Any]) -> None:
    """Raises UsageError for a record without a text that a memory can have."""
    _texts(_Taking(record))


def mark_of(record: Mapping[str, Any]) -> Mark:
    """All that a record says tells it from others, whatever other records of its export have. Raises UsageError."""
    text = [[record[name] for name in COLUMNS[role] if record.get(name) not in EMPTY] for role in ("text", *PARTS)]
    said = lasting(record)
    if own_id := id_in(record):
        said["id"] = own_id
    # With a letter first, YAML reads it as text.
    return Mark(f"m{_digest(said)[:_DIGITS]}", _digest(text)[:_TEXT_DIGITS])


def _digest(said: Any) -> str:
    try:
        raw = json.dumps(said, sort_keys=True, default=_as_base64)
    except RecursionError:
        raise UsageError("it nests too deep") from None
    return sha256(raw.encode()).hexdigest()


def _as_base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


class _Taking:
    """The values of a record, each taken once; the rest is left."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.values = {name: value for name, value in record.items() if value not in EMPTY}

    def value(self, role: str) -> Any:
        """What the likeliest column says that says anything."""
        return next((self.values[name] for name in COLUMNS[role] if name in self.values), None)

    def take(self, role: str, read: Callable[[Any], _Value | None]) -> _Value | None:
        """What the likeliest column says that can be read so."""
        for name in COLUMNS[role]:
            if name in self.values and (found := read(self.values[name])) is not None:
                del self.values[name]
                return found
        return None

    def left(self) -> dict[str, Any]:
        """All that was not taken, as frontmatter holds it; under OLDER what has the name of one of a note's own."""
        extra: dict[str, Any] = {}
        older: dict[str, Any] = {}
        for name, value in self.values.items():
            kept = _as_base64(value) if isinstance(value, bytes) else holdable(value)
            if name in _FIELDS or reason_against(name):
                older[name] = kept
            else:
                extra[name] = kept
        return {**extra, OLDER: older} if older else extra


def _said(taking: _Taking, tags: Sequence[str]) -> tuple[Told, str, bool]:
    """What the record tells by the template, in its text or in columns of its own; its Markdown; and whether that has
    the parts."""
    text, original, parts = _texts(taking)
    told = read_memory(text)
    kind, title = taking.take("kind", _as_kind), taking.take("title", _as_title)
    told = replace(told.named(title or "", kind or ""), tags=_once((*tags, *told.tags)))
    told = told if told.title else replace(told, title=title_of(told, text))
    for one, below in ((told, ""), (replace(told, **parts), original)):
        if not one.missing and reads_as_meant(one.title, one, below):
            is_of_columns = one is not told or not original
            for part in parts if is_of_columns else ():
                taking.take(part, _as_text)
            return one, body_of(one.title, one, below), True
    if not original:
        for part in parts:
            taking.take(part, _as_text)
    return told, text, False


def _texts(taking: _Taking) -> tuple[str, str, dict[str, Any]]:
    """The text of the record, and what that is made of: the one it has, "" for none, and its columns for parts."""
    original = taking.take("text", _as_text) or ""
    parts = {part: said for part in PARTS if (said := _as_text(taking.value(part)))}
    if not original and not parts:
        raise UsageError("it has no text in `content`")
    text = original or "\n\n".join(f"{part.upper()}: {said}" for part, said in parts.items())
    if refused := characters_refused(text):
        raise UsageError(f"its text cannot be written: {refused}")
    return text, original, parts


def _once(tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tags))


# Single values; None for what cannot be taken.


def _id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = str(value).strip()
    is_sound = len(text) <= LONGEST_ID and all(each.isprintable() for each in text)
    return text if is_sound and unicodedata.is_normalized("NFC", text) else ""


def _as_text(value: Any) -> str | None:
    if not isinstance(value, str) or all(each.isspace() or is_ignorable(each) for each in value):
        return None
    return value


def _as_line(value: Any) -> str | None:
    is_line = isinstance(value, str) and value.isprintable() and value == " ".join(value.split())
    return value if is_line and 0 < len(value) <= _LONGEST_LINE else None


def _as_title(value: Any) -> str | None:
    line = _as_line(value)
    try:
        return None if line is None else checked_title(line)
    except UsageError:
        return None


def _as_kind(value: Any) -> str | None:
    plain = value.strip(" []").casefold() if isinstance(value, str) else ""
    return kind_said(plain) or kind_said(plain.removesuffix("s"))


def _as_status(value: Any) -> str | None:
    return value if value in STATUSES else None


def _as_external(value: Any) -> str | None:
    return EXTERNAL if isinstance(value, str) and value.strip().casefold().startswith(EXTERNAL) else None


def _as_count(value: Any) -> int | None:
    number = as_number(value)
    return int(number) if number is not None and 0 <= number < 2**31 else None


def _as_vector(value: Any) -> bool | None:
    """What any embedder makes anew."""
    found = decoded(value)
    is_vector = isinstance(found, bytes) or (isinstance(found, list) and all(isinstance(one, float) for one in found))
    return is_vector or None
