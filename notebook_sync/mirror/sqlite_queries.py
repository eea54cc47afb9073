"""What the embedded store is asked: a filter as SQL, a text query as stages of FTS5. Pure; every value is a parameter,
and every word is quoted."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from notebook_sync.mirror.base import Filter
from notebook_sync.mirror.document import askable, to_ms_after

# Of a longer query these words say what it is about.
_MOST_WORDS = 64
# So many frequent words are counted beside the rare ones; what others would add is next to nothing.
_MOST_FREQUENT = 3
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
        require(f"n IN (SELECT n FROM note_tag WHERE tag IN ({_marks(filter.tags)}))", *filter.tags)
    for name, wanted in (("topic", filter.topic), ("session_id", filter.session_id)):
        if wanted:
            require(f"collection = 'channels' AND beside ->> '{name}' = ?", wanted)
    if filter.since is not None:
        require("updated_at >= ?", to_ms_after(filter.since))
    if filter.until is not None:
        require("updated_at < ?", to_ms_after(filter.until))
    if filter.below:
        require(_below(filter.below), *_bounds(filter.below))
    if filter.not_below:
        require(f"NOT {_below(filter.not_below)}", *_bounds(filter.not_below))
    if filter.of_channels is not None:
        require(f"(collection <> 'channels' OR {_below(filter.of_channels)})", *_bounds(filter.of_channels))
    return " AND ".join(conditions), [askable(value) if isinstance(value, str) else value for value in values]


def words_of(query: str) -> list[str]:
    """The words of a query as FTS5 takes them: each in quotes, so that no mark in it is an operator."""
    composed = unicodedata.normalize("NFC", query)  # else a word would end at an accent that stands for itself
    once = {word.casefold(): word for word in _WORD.findall(composed)}
    return [f'"{word}"' for word in once.values()][:_MOST_WORDS]


@dataclass(frozen=True, slots=True)
class Stage:
    """Notes found by any of these expressions, each with the share of its score that counts; the one that scores a
    note highest decides. Of each expression only the `newest` matches, where it says so. Every note of a stage comes
    before those that only a later one finds."""

    expressions: tuple[tuple[str, float], ...]
    newest: int | None = None


def stages(counts: Mapping[str, int], budget: int) -> list[Stage]:
    """How to find the best notes without scoring many more than `budget`, given how many notes have each word.

    To score is what costs: forty times as much as to find. So rare words choose the notes, and frequent ones only add
    to their scores. Notes that have none but frequent words come next: those with all of them, those with one in
    title or summary, the newest; then the rest. A note that has all words is in the first stage in which one could be.
    """
    present = sorted((word for word, count in counts.items() if count), key=lambda word: counts[word])
    rare: list[str] = []
    for word in present:
        budget_left = budget - sum(counts[one] for one in rare)
        if counts[word] > budget_left:
            break
        rare.append(word)
    frequent = present[len(rare) :]
    if not frequent:
        return [Stage(((_any(rare), 1.0),))] if rare else []
    found: list[Stage] = []
    if rare:
        adding = frequent[:_MOST_FREQUENT]
        together = [_all(adding)] if len(adding) > 1 else []
        beside = [f"({_any(rare)}) AND {more}" for more in (*adding, *together)]
        found.append(Stage(tuple((expression, 1.0) for expression in (_any(rare), *beside))))
    likely = [(_all(frequent), 1.0)] if len(frequent) > 1 else []
    # Both halves of the expression score the note, the second one all of it.
    likely += [(f"({{title summary}} : ({_any(frequent)})) AND ({_any(frequent)})", 0.5), (_any(frequent), 1.0)]
    return [*found, Stage(tuple(likely), newest=budget // len(likely)), Stage(((_any(frequent), 1.0),))]


def _any(words: Sequence[str]) -> str:
    return " OR ".join(words)


def _all(words: Sequence[str]) -> str:
    return " AND ".join(words)


def _below(folders: Sequence[str]) -> str:
    """NULL, which is neither true nor false, for a note without a path. `0` is the character after `/`."""
    return f"({' OR '.join(['path >= ? AND path < ?'] * len(folders)) or 'path = 0'})"


def _bounds(folders: Sequence[str]) -> list[str]:
    return [f"{folder}{end}" for folder in folders for end in "/0"]


def _marks(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))
