"""What is done now and then: by the process that follows the notebook, and by commands that run it themselves.

When each chore ran last is a counter in the index. A clock that jumped is not believed: a chore that was never done, or
is late by more than a week, or was done in the future, is only noted, and done one period later.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from notebook_sync.store.index import Index

_PREFIX = "chore:"
_WEEK = 7 * 86_400.0
# Where nothing is due, it is looked again after this time.
_LONGEST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Chore:
    """`run` is done every so many seconds. It is bounded by itself, and returns True where there is more to do now."""

    name: str
    every: float
    run: Callable[[], object]


def run_chores(index: Index, chores: Sequence[Chore]) -> float:
    """Run what is due, and return in how many seconds to come again. A chore that fails ends no other one, and is tried
    again after its period."""
    ran = last_runs(index)
    again = _LONGEST_SECONDS
    for chore in chores:
        now = time.time()
        waited = now - ran.get(chore.name, now + 1)
        if not 0 <= waited < chore.every:
            is_believed = 0 <= waited <= chore.every + _WEEK
            waited = chore.every if is_believed and _run(chore) else 0.0
            index.counters.put([{"id": _PREFIX + chore.name, "value": int((now - waited) * 1000)}])
        again = min(again, max(0.0, chore.every - waited))
    return again


def last_runs(index: Index) -> dict[str, float]:
    """By name, when each chore ran last, or was noted, in seconds since 1970."""
    rows = index.counters.find()
    return {row["id"].removeprefix(_PREFIX): row["value"] / 1000 for row in rows if row["id"].startswith(_PREFIX)}


def _run(chore: Chore) -> bool:
    try:
        return chore.run() is True
    except Exception:  # logged whole, and tried again after its period
        import logging  # takes time to load, and most commands need none

        logging.getLogger(__name__).exception("the chore %s failed", chore.name)
        return False
