"""What the lines of a day are after a swap, the same in every hot memory. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from notebook_sync.refs.base import Entry, Swap
from notebook_sync.refs.entry import entry_from_json, once_each


def swapped(lines: Sequence[str], swap: Swap, as_json: Callable[[Entry], str]) -> list[str]:
    """The lines of a day after the swap, those that stay in their order. What is no entry stays."""
    wanted = {entry["id"]: entry for entry in once_each(list(swap.there))}
    stay: list[tuple[str, Entry | None]] = []
    for line in lines:
        entry = entry_from_json(line)
        if entry is not None and entry["id"] in swap.gone:
            new = wanted.get(entry["id"])
            if new is None or (new != entry and as_json(new) != line):
                continue
        stay.append((line, entry))
    there = {entry["id"] for _, entry in stay if entry is not None}
    place = {entry_id: number for number, entry_id in enumerate(wanted)}
    missing = deque(entry for entry in wanted.values() if entry["id"] not in there)
    found: list[str] = []
    for line, entry in stay:
        while entry is not None and missing and _is_before(missing[0], entry, place):
            found.append(as_json(missing.popleft()))
        found.append(line)
    return [*found, *map(as_json, missing)]


def _is_before(one: Entry, other: Entry, place: Mapping[str, int]) -> bool:
    """Whether a missing entry belongs before one that is there: by place where both have one, otherwise by time."""
    if other["id"] in place:
        return place[one["id"]] < place[other["id"]]
    return datetime.fromisoformat(one["timestamp"]) <= datetime.fromisoformat(other["timestamp"])
