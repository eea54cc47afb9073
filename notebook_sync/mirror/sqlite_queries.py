"""What the embedded store is asked: a filter as SQL, a text query as words of FTS5. Pure; every value is a parameter,
and every word is quoted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from notebook_sync.mirror.base import Filter
from notebook_sync.mirror.document import MOST_WORDS, askable, to_ms_after
from notebook_sync.permissions import is_private

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
    if filter.collections == ("channels",):
        require("collection = 'channels'")  # in words, for the index that holds these alone
    elif filter.collections:
        require(f"collection IN ({_marks(filter.collections)})", *filter.collections)
    if filter.tags:
        # By the index, what has the tag in any room is read; else the tags of each note that is looked at.
        by_index, by_note = (
            "n IN (SELECT n FROM note_tag WHERE tag",
            "EXISTS (SELECT 1 FROM json_each(tags) WHERE value",
        )
        require(f"{by_index if filter.of_channels is None else by_note} IN ({_marks(filter.tags)}))", *filter.tags)
    for name, wanted in (("topic", filter.topic), ("session_id", filter.session_id)):
        if wanted:
            require(f"collection = 'channels' AND beside ->> '{name}' = ?", wanted)
    for comparison, moment in (
        ("updated_at >=", filter.since),
        ("updated_at <", filter.until),
        ("created_at >=", filter.made_since),
        ("created_at <", filter.made_until),
    ):
        if moment is not None:
            require(f"{comparison} ?", to_ms_after(moment))
    if filter.after is not None:
        at = to_ms_after(filter.after[0])
        require("updated_at <= ? AND (updated_at < ? OR id > ?)", at, at, filter.after[1])
    if filter.below:
        require(_below(filter.below), *_bounds(filter.below))
    if filter.not_below:
        require(f"NOT {_below(filter.not_below)}", *_bounds(filter.not_below))
    if filter.not_at:
        require(f"path NOT IN ({_marks(filter.not_at)})", *filter.not_at)
    if filter.of_channels is not None:
        require(f"(collection <> 'channels' OR {_below(filter.of_channels)})", *_bounds(filter.of_channels))
    return " AND ".join(conditions), [askable(value) if isinstance(value, str) else value for value in values]


def in_channels(filter: Filter) -> Iterator[tuple[str, Sequence[str]]]:
    """Conditions on `room`, each with its values, of the private notes that the filter admits by their folders."""
    for folder in filter.below if filter.of_channels is None else filter.of_channels:
        room = "/".join(folder.split("/")[:3])
        yield "room = ? AND ", (room,)
        if room == folder:
            yield "room >= ? AND room < ? AND ", _bounds([room])


def in_rooms(filter: Filter) -> Iterator[tuple[str, Sequence[str]]]:
    """The same of all notes that it admits; "" where those may be in any room."""
    if filter.of_channels is None and not is_private_alone(filter):
        yield "", ()
        return
    if filter.of_channels is not None and filter.collections != ("channels",):
        yield from (("room = '' AND ", ()), ("room = 'apart' AND ", ()))
    yield from in_channels(filter)


def is_private_alone(filter: Filter) -> bool:
    """Whether it names the folders of channels, and no other."""
    return bool(filter.below) and all(is_private(f"{folder}/") for folder in filter.below)


def words_of(query: str) -> list[str]:
    """The words of a query as FTS5 takes them: each in quotes, so that no mark in it is an operator."""
    composed = unicodedata.normalize("NFC", query)  # else a word would end at an accent that stands for itself
    once = {word.casefold(): word for word in _WORD.findall(composed)}
    return [f'"{word}"' for word in once.values()][:MOST_WORDS]


def _below(folders: Sequence[str]) -> str:
    """NULL, which is neither true nor false, for a note without a path. `0` is the character after `/`."""
    return f"({' OR '.join(['path >= ? AND path < ?'] * len(folders)) or 'path = 0'})"


def _bounds(folders: Sequence[str]) -> list[str]:
    return [f"{folder}{end}" for folder in folders for end in "/0"]


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
