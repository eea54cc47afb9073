"""The columns of another program's memories: documented names, or those that the caller maps to them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from notebook_sync.errors import UsageError
from notebook_sync.notes.memories.importing.values import decoded

Record = Mapping[str, Any]

# What says nothing.
EMPTY: tuple[Any, ...] = (None, "", [], {})
COLUMNS: Mapping[str, Sequence[str]] = {
    "id": ("id",),
    "text": ("content",),
    "title": ("title",),
    "summary": ("summary",),
    "context": ("context",),
    "reasoning": ("reasoning",),
    "outcome": ("outcome",),
    "created_at": ("created_at",),
    "agent": ("agent", "agent_type"),
    "tags": ("tags",),
    "priority": ("priority", "initial_priority", "importance"),
    "domain": ("domain",),
    "kind": ("kind",),
    "status": ("status",),
    "provenance": ("provenance",),
    "needs_review": ("needs_review",),
    "relations": ("relations",),
    "accesses": ("access_count", "usage_count"),
    "last_accessed": ("last_accessed", "last_accessed_at"),
    "vector": ("embedding",),
}
"""By field of a memory, the columns it is read from; the first that is not empty counts."""
KNOWN = frozenset(name for names in COLUMNS.values() for name in names)
_METADATA = "metadata"
# These change whenever a memory is used, so they do not tell records apart.
_CHANGING = {*COLUMNS["accesses"], *COLUMNS["last_accessed"], *COLUMNS["vector"], "score", "dynamic_score"}


def renamed(record: Record, names: Mapping[str, str]) -> Record:
    """The record with its columns renamed. Raises UsageError where two would have one name."""
    found: dict[str, Any] = {}
    for old, value in record.items():
        name = names.get(old, old)
        if name in found:
            raise UsageError(f"two of its columns would be called {name!r}; map one of them to another name")
        found[name] = value
    return found


def flat(record: Record) -> Record:
    """The record with the fields of its `metadata` as columns; one that differs from a column of its name is marked."""
    nested = decoded(record.get(_METADATA))
    if not isinstance(nested, dict):
        return record
    plain = {name: value for name, value in record.items() if name != _METADATA}
    for name, value in nested.items():
        if plain.get(name) is None:
            plain[name] = value
        elif plain[name] != value:
            plain[f"{name} ({_METADATA})"] = value
    return plain


def lasting(record: Record) -> dict[str, Any]:
    """What a record says, without what is empty or changes with use."""
    said = {name: value for name, value in record.items() if value not in EMPTY and name not in _CHANGING}
    return {name: decoded(value) for name, value in said.items()}
