"""What the embedded store is asked: a filter and a text query as SQL. Pure; every value becomes a parameter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from notebook_sync.mirror.base import Filter
from notebook_sync.mirror.document import askable, to_ms_after

_WORD = re.compile(r"\w+")


def admitting(filter: Filter) -> tuple[str, list[Any]]:
    """The condition on the columns of `note` that admits what the filter does, and its values. Never a tombstone."""
    conditions, values = ["NOT deleted"], list[Any]()

    def require(condition: str, *of: Any) -> None:
        conditions.append(condition)
        values.extend(of)

    for column, wanted in (("status", filter.status), ("created_by", filter.created_by)):
        if wanted:
            require(f"{column} = ?", wanted)
    if filter.collections:
        require(f"collection IN ({_marks(filter.collections)})", *filter.collections)
    if filter.tags:
        require(f"EXISTS (SELECT 1 FROM json_each(tags) WHERE value IN ({_marks(filter.tags)}))", *filter.tags)
    for name, wanted in (("topic", filter.topic), ("session_id", filter.session_id)):
        if wanted:
            require(f"CAST(beside ->> '{name}' AS TEXT) = ?", wanted)
    if filter.since is not None:
        require("updated_at >= ?", to_ms_after(filter.since))
    if filter.until is not None:
        require("updated_at < ?", to_ms_after(filter.until))
    if filter.below:
        require(f"({' OR '.join([_BELOW] * len(filter.below))})", *_bounds(filter.below))
    if filter.not_below:
        require(f"NOT ({' OR '.join([_BELOW] * len(filter.not_below))})", *_bounds(filter.not_below))
    return " AND ".join(conditions), [askable(value) if isinstance(value, str) else value for value in values]


def as_words(query: str) -> str:
    """The query for FTS5: each word quoted, so that no mark in it is an operator. Any word may match; rank decides."""
    return " OR ".join(f'"{word}"' for word in dict.fromkeys(_WORD.findall(query)))


# `0` is the character after `/`. NULL is below nothing, and not below nothing either.
_BELOW = "path >= ? AND path < ?"


def _bounds(folders: Sequence[str]) -> list[str]:
    return [f"{folder}{end}" for folder in folders for end in "/0"]


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
