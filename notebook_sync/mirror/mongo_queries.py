"""What the MongoDB store is asked: a filter and a text query as conditions. Pure; every value stays a value, for it
stands only where the server compares, never where it looks for an operator."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Sequence
from typing import Any

from bson import DatetimeMS

from notebook_sync.files.note import COLLECTIONS, collection_of
from notebook_sync.mirror.base import Filter
from notebook_sync.mirror.document import MOST_WORDS, askable, to_ms_after

Condition = dict[str, Any]
# What ends a word for the server as well, but for the apostrophe: without it `don't` is no word to leave out.
_MARKS = {0: " ", **{ord(mark): " " for mark in string.punctuation if mark not in "_'"}}


def admitting(filter: Filter) -> dict[str, Condition]:
    """By the name of each collection in which the filter may admit notes, the condition that does. No tombstones."""
    below = {collection_of(f"{folder}/") for folder in filter.below} or COLLECTIONS
    marked = ("channels",) if filter.topic or filter.session_id else COLLECTIONS
    conditions = _of_any_collection(filter)
    asked = {
        name: {"gone": False, **({"$and": conditions} if conditions else {})}
        for name in COLLECTIONS
        if name in (filter.collections or COLLECTIONS) and name in below and name in marked
    }
    if filter.of_channels == ():
        asked.pop("channels", None)
    elif filter.of_channels and "channels" in asked:
        asked["channels"] = {"gone": False, "$and": [*conditions, {"$or": _below(filter.of_channels)}]}
    return asked


def _of_any_collection(filter: Filter) -> list[Condition]:
    conditions: list[Condition] = []
    for field, wanted in (("metadata.status", filter.status), ("metadata.created_by", filter.created_by)):
        if wanted:
            conditions.append({field: {"$eq": askable(wanted)}})
    if filter.tags:
        conditions.append({"metadata.tags": {"$in": [askable(tag) for tag in filter.tags]}})
    for field, wanted in (("metadata.extra.topic", filter.topic), ("metadata.extra.session_id", filter.session_id)):
        if wanted:
            conditions.append({field: {"$in": _spellings(askable(wanted))}})
    if filter.since is not None:
        conditions.append({"metadata.updated_at": {"$gte": DatetimeMS(to_ms_after(filter.since))}})
    if filter.until is not None:
        conditions.append({"metadata.updated_at": {"$lt": DatetimeMS(to_ms_after(filter.until))}})
    if filter.below:
        conditions.append({"$or": _below(filter.below)})
    if filter.not_below:
        conditions.append({"path": {"$gt": ""}, "$nor": _below(filter.not_below)})
    return conditions


def as_words(query: str) -> str:
    """The query for `$text`, which knows two operators: a quoted phrase and a leading minus. Any word may match."""
    composed = unicodedata.normalize("NFC", askable(query))  # else a word would end at an accent that stands for itself
    once = {word.casefold(): word for word in composed.translate(_MARKS).split()}
    return " ".join(list(once.values())[:MOST_WORDS])


def _below(folders: Sequence[str]) -> list[Condition]:
    """`0` is the character after `/`: what begins with `place/` lies before `place0`."""
    return [{"path": {"$gte": f"{folder}/", "$lt": f"{folder}0"}} for folder in map(askable, folders)]


def _spellings(text: str) -> list[str | int | float]:
    """What YAML may have made of a text that looks like a number."""
    spellings: list[str | int | float] = [text]
    for number in (int, float):
        try:
            value = number(text)
        except (ValueError, OverflowError):
            continue
        if str(value) == text and abs(value) < 2**63:
            spellings.append(value)
    return spellings
