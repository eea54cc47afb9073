"""Many notes missing at once: deleted, or on a disk that is not there? A second look must find the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime

from notebook_sync.store.index import Index
from notebook_sync.store.rows import to_milliseconds

# A top folder that loses a quarter of its notes, at least so many, is looked at again after this time.
_MANY, _SHARE = 20, 4
SECOND_LOOK_MS = 60_000
# The prefix of the counters that hold when such a loss was first seen, in ms.
_PREFIX = "lost:"
_TOO_MANY = (
    "{count} notes are missing in {folder}; their rows are kept until a second look. "
    "If you deleted them, run: notebook-sync sync"
)


def suspect_losses(
    index: Index, paths: Collection[str], missing: Collection[str] | None, *, is_last: bool
) -> tuple[set[str], list[str]]:
    """Those of `paths`, which are missing, whose rows must be kept for now, since their top folders lose so many; and a
    warning for each of these folders.

    `missing` are all paths that a look at everything did not find; what was missing before and is not any more is
    forgotten. `is_last`: no look follows by itself; then the next one decides, however soon it comes.
    """
    counters, now = index.counters, to_milliseconds(datetime.now(UTC))
    marks = {row["id"].removeprefix(_PREFIX): row["value"] for row in counters.find() if row["id"].startswith(_PREFIX)}
    losses = {top: count for top, count in Counter(map(_top_of, paths)).items() if count >= _MANY}
    if losses:
        notes = Counter(_top_of(path) for (path,) in index.documents.tuples(("path",)) if path)
        losses = {top: count for top, count in losses.items() if count * _SHARE >= notes[top]}
    new = {top for top in losses if marks.get(top, now + 1) > now}  # also where the clock was set back
    held = new | {top for top in losses if not is_last and marks.get(top, now) > now - SECOND_LOOK_MS}
    over = (losses.keys() - held) | (marks.keys() - set(map(_top_of, missing)) if missing is not None else set())
    counters.put([{"id": _PREFIX + top, "value": now} for top in new])
    counters.delete([_PREFIX + top for top in over])
    warnings = [_TOO_MANY.format(count=losses[top], folder=top or "the top folder") for top in sorted(held)]
    return {path for path in paths if _top_of(path) in held}, warnings


def _top_of(path: str) -> str:
    """The first folder of a path, "" for a file in the notebook's own folder."""
    return path.rpartition("/")[0].partition("/")[0]
