"""What becomes of the row of a fact: the same in every store, whatever way it has to write it. Pure.

Rows are facts here whose `importance` is what they have without a pin: a pin is the file's to tell.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from notebook_sync.files.facts import CORE
from notebook_sync.mirror.facts import DECAY_RATE, HISTORY_LIMIT, Change, Fact

# What it adds to a fact's importance to be brought back from the archive, by hand or by a tool.
RESTORED = 0.1


def after(row: Fact | None, change: Change, was: Fact | None = None, *, decay_rate: float = DECAY_RATE) -> Fact:
    """The row after a change; `was` is the row that ends where the fact was reworded."""
    is_new = row is None
    if row is None and was is not None:
        row = replace(was, note_id=change.note_id, content=change.content)
    elif row is None:
        made = change.created_at or change.at
        row = Fact(
            change.note_id,
            change.content,
            made,
            change.at,
            importance=change.importance,
            unpinned=change.importance,
            decay_rate=decay_rate,
        )
    place = change.place
    row = replace(
        row,
        section=place.section,
        path=place.path,
        line=place.line,
        gone_at=change.at if change.action == "gone" else None,
    )
    if change.action == "added" and not is_new:
        return row  # by somebody who was stopped before he could tell where it stands
    if change.action == "restored" and not is_new and place.pin is None and place.path != CORE:
        value = min(1.0, row.unpinned + RESTORED)
        row = replace(row, importance=value, unpinned=value)
    more = {"was": change.was} if change.was else {}
    return told(row, change.action, change.at, path=place.path, section=place.section, **more)


def weighed(row: Fact, importance: float | None, by: float, action: str, at: datetime, actor: str = "") -> Fact:
    """The row with this importance, or with its own and so much more."""
    value = min(1.0, max(0.0, (row.unpinned if importance is None else importance) + by))
    more = {"actor": actor} if actor else {}
    return told(replace(row, importance=value, unpinned=value), action, at, **more)


def merged(keep: Fact, drop: Fact, by: float, at: datetime) -> Fact:
    """The row that two facts share from now on."""
    used = [when for when in (keep.last_accessed, drop.last_accessed) if when is not None]
    row = replace(
        keep,
        access_count=keep.access_count + drop.access_count,
        created_at=min(keep.created_at, drop.created_at),
        last_accessed=max(used, default=None),
        metadata={**drop.metadata, **keep.metadata},
        source_history=tuple(sorted((*drop.source_history, *keep.source_history), key=lambda event: event["at"])),
    )
    greater = max(keep.unpinned, drop.unpinned)
    row = replace(row, unpinned=min(1.0, max(0.0, greater + by)))
    return told(replace(row, importance=row.unpinned), "merged", at, was=drop.note_id, text=drop.content)


def told(row: Fact, action: str, at: datetime, **more: Any) -> Fact:
    """The row with one more event in its history."""
    event = {"at": at, "action": action, "importance": row.unpinned, **more}
    return replace(row, updated_at=at, source_history=(*row.source_history, event)[-HISTORY_LIMIT:])
