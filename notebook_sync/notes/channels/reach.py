"""The private notes that one call may be told of, as many of them as it needs: a store is never asked for all.

What may not be told leaves no gap: where such notes stand among those that a store finds, it is asked for more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any

from notebook_sync.mirror.base import LARGEST_LIMIT, Filter, Mirror

# How many folders a store is asked for at once.
_MOST_FOLDERS = 50

Documents = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Reach:
    """What `filter` admits of the notes below these folders, where `permitted` leaves in their paths. Answers are light
    rows, with topic and session_id in any case, also of a note that was written by hand without them."""

    mirror: Callable[[], Mirror]
    folders: Sequence[str]
    filter: Filter
    permitted: Callable[[Iterable[str]], Iterable[str]]

    def newest(self, limit: int) -> Documents:
        """The notes that were made last, the newest first."""
        return self._first(lambda filter, count: self.mirror().light(filter, count, "made"), newest_first, limit)

    def best(self, query: str, limit: int, made_since: datetime | None = None) -> Documents:
        """The notes that have a word of `query`, the best by the store's scores first; of those made since."""
        reach = replace(self, filter=replace(self.filter, made_since=made_since or self.filter.made_since))
        return reach._first(lambda filter, count: self.mirror().search(query, count, filter), _best_first, limit)

    def _first(
        self, ask: Callable[[Filter, int], Documents], ordered: Callable[[Documents], Documents], limit: int
    ) -> Documents:
        count = limit
        while limit:
            found = [ask(replace(self.filter, below=tuple(folders)), count) for folders in self._pieces()]
            is_all = all(len(piece) < count for piece in found)
            rows = ordered(list(chain.from_iterable(found)))
            told = self._told(rows if is_all else rows[:count])
            if is_all or len(told) >= limit:
                return told[:limit]
            count = min(count * 4, LARGEST_LIMIT)
        return []

    def _pieces(self) -> Iterator[Sequence[str]]:
        return (self.folders[start : start + _MOST_FOLDERS] for start in range(0, len(self.folders), _MOST_FOLDERS))

    def _told(self, rows: Documents) -> Documents:
        permitted = set(self.permitted([row["path"] for row in rows]))
        return [row | _said_of(row) for row in rows if row["path"] in permitted]


def newest_first(rows: Documents) -> Documents:
    """Of one millisecond, what was written last comes first."""
    rows = sorted(rows, key=lambda row: row["id"])
    return sorted(rows, key=lambda row: (row["created_at"], row["updated_at"]), reverse=True)


def _best_first(rows: Documents) -> Documents:
    return sorted(rows, key=lambda row: (-row["score"], row["id"]))


def _said_of(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: row.get(name, "") for name in ("topic", "session_id")}
