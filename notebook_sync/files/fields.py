"""What frontmatter says about a note, checked field by field. A field that is wrong becomes a problem and its default;
its value is kept with the unknown ones, so that nothing a person wrote is lost."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from notebook_sync.files.frontmatter import Metadata, moment_from
from notebook_sync.files.memories import Relations, agent_from, kind_from, priority_from, relations_from
from notebook_sync.files.note import STATUSES, Problem

LONGEST_ID = 512


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of every note, None or empty where frontmatter leaves them out; `special` are the collection's."""

    id: str | None = None
    title: str | None = None
    summary: str | None = None
    created_by: str | None = None
    created_at: datetime | None = None
    tags: tuple[str, ...] = ()
    status: str | None = None
    special: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def read_fields(metadata: Metadata, collection: str) -> Fields:
    """The known fields of a note of `collection`, and the rest as `extra`."""
    known: dict[str, Any] = {}
    special: dict[str, Any] = {name: [] if name in LISTS else None for name in SPECIAL.get(collection, ())}
    extra: dict[str, Any] = {}
    problems = []
    for name, value in metadata.items():
        if name in special:
            fields, read = special, SPECIAL[collection][name]
        elif name in _COMMON:
            fields, read = known, _COMMON[name]
        else:
            extra[name] = value
            continue
        if value is None:
            continue
        try:
            found = read(metadata, name)
        except ValueError as error:
            extra[name] = value
            problems.append(Problem(metadata.lines[name], f"{name}: {error}"))
            continue
        if isinstance(found, Relations):
            fields[name] = found.read
            for index, entry, reason in found.malformed:
                extra.setdefault(name, []).append(entry)
                problems.append(Problem(metadata.line_in(name, index), f"{name}: {reason}"))
        else:
            fields[name] = found
    return Fields(**known, special=special, extra=extra, problems=tuple(problems))


def _text(metadata: Metadata, name: str) -> str | None:
    text = metadata.text(name)
    if text is None:
        raise ValueError("must be text")
    return text.strip() or None


def _line(metadata: Metadata, name: str) -> str | None:
    return " ".join((_text(metadata, name) or "").split()) or None


def _id(metadata: Metadata, name: str) -> str:
    value = metadata[name]
    if not isinstance(value, str):
        raise ValueError("must be text: put it in quotes")  # noqa: TRY004 - all a field can be is a ValueError here
    if not value.strip() or len(value) > LONGEST_ID:
        raise ValueError(f"must have 1 to {LONGEST_ID} characters")
    if any(unicodedata.category(character) == "Cc" for character in value):
        raise ValueError("must not hold control characters")
    return value.strip()


def _status(metadata: Metadata, name: str) -> str:
    status = metadata[name]
    if status not in STATUSES:
        raise ValueError(f"{metadata.text(name)!r} is not one of {', '.join(STATUSES)}")
    return str(status)


def _moment(metadata: Metadata, name: str) -> datetime:
    value = metadata[name]
    moment = value if isinstance(value, datetime) else moment_from(metadata.text(name) or "")
    if moment is None:
        raise ValueError("must be a date or time like 2026-02-18 or 2026-02-18T10:30:00Z")
    return moment


def plain_tags(texts: Iterable[str]) -> tuple[str, ...]:
    """Tags as they are read, whoever wrote them: each once, one line, without the mark that some write before it."""
    tags = (" ".join(text.split()).lstrip("# ") for text in texts)
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def _tags(metadata: Metadata, name: str) -> tuple[str, ...]:
    texts = metadata.texts(name)
    if texts is None:
        text = metadata.text(name)
        if text is None:
            raise ValueError("must be a list, or words parted by commas")
        texts = text.split(",")
    return plain_tags(texts)


def _list(metadata: Metadata, name: str) -> list[str]:
    texts = metadata.texts(name)
    if texts is None:
        text = metadata.text(name)
        if text is None:
            raise ValueError("must be a list of texts; one with a colon in it needs quotes")
        texts = [text]
    return [stripped for text in texts if (stripped := text.strip())]


def _confidence(metadata: Metadata, name: str) -> float:
    value = metadata[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("must be a number from 0 to 1")
    return float(value)


def _kind(metadata: Metadata, name: str) -> str:
    return kind_from(_line(metadata, name) or "")


def _agent(metadata: Metadata, name: str) -> str | None:
    return agent_from(_line(metadata, name) or "")


def _priority(metadata: Metadata, name: str) -> int:
    return priority_from(metadata[name])


def _relations(metadata: Metadata, name: str) -> Relations:
    return relations_from(metadata[name])


def _truth(metadata: Metadata, name: str) -> bool:
    value = metadata[name]
    if not isinstance(value, bool):
        raise ValueError("must be true or false")  # noqa: TRY004 - all a field can be is a ValueError here
    return value


_Reader = Callable[[Metadata, str], Any]
# Of SPECIAL, those that hold several texts.
LISTS = frozenset(("key_findings", "related_pages"))
_COMMON: dict[str, _Reader] = {
    "id": _id,
    "title": _line,
    "summary": _line,
    "created_by": _line,
    "created_at": _moment,
    "tags": _tags,
    "status": _status,
}
# By collection, the fields that only its notes have.
SPECIAL: dict[str, dict[str, _Reader]] = {
    "code_snippets": {"language": _line, "description": _text, "related_page": _line},
    "research_notes": {
        "source_url": _line,
        "key_findings": _list,
        "confidence": _confidence,
        "related_pages": _list,
    },
    "memories": {
        "kind": _kind,
        "domain": _line,
        "agent": _agent,
        "priority": _priority,
        "relations": _relations,
        "needs_review": _truth,
    },
}
