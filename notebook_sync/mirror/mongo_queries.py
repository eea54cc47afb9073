"""What the MongoDB store is asked: a filter as conditions. Pure; every value stays a value, for it
stands only where the server compares, never where it looks for an operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bson import DatetimeMS

from notebook_sync.files.note import COLLECTIONS, collection_of
from notebook_sync.mirror.base import Filter
from notebook_sync.mirror.document import askable, to_ms_after

Condition = dict[str, Any]


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
    for field, comparison, moment in (
        ("metadata.updated_at", "$gte", filter.since),
        ("metadata.updated_at", "$lt", filter.until),
        ("metadata.created_at", "$gte", filter.made_since),
        ("metadata.created_at", "$lt", filter.made_until),
    ):
        if moment is not None:
            conditions.append({field: {comparison: DatetimeMS(to_ms_after(moment))}})
    if filter.after is not None:
        at = DatetimeMS(to_ms_after(filter.after[0]))
        behind = [{"metadata.updated_at": {"$lt": at}}, {"_id": {"$gt": askable(filter.after[1])}}]
        conditions.append({"metadata.updated_at": {"$lte": at}, "$or": behind})
    if filter.not_at:
        conditions.append({"path": {"$nin": [askable(path) for path in filter.not_at]}})
    if filter.below:
        conditions.append({"$or": _below(filter.below)})
    if filter.not_below:
        conditions.append({"path": {"$gt": ""}, "$nor": _below(filter.not_below)})
    return conditions


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
