"""Computing what memories count for: all of them, at one moment. A score stays what it is until that is done again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from statistics import fmean, pstdev
from typing import Any

from notebook_sync.mirror.memories import MemoryRows
from notebook_sync.notes.guard import Guard
from notebook_sync.notes.memories.reach import MemoryReach
from notebook_sync.notes.memories.score import score_of
from notebook_sync.notes.memories.text import FOLDER
from notebook_sync.sessions import PROGRAM, Session
from notebook_sync.settings import MemorySettings

TOOL = "memory_scores"

Row = dict[str, Any]


class MemoryScores:
    """For one notebook."""

    def __init__(
        self, settings: MemorySettings, guard: Guard, reach: MemoryReach, rows: Callable[[], MemoryRows]
    ) -> None:
        self._settings = settings
        self._guard = guard
        self._reach = reach
        self._rows = rows

    def compute(self, session: Session) -> Row:
        """Score every memory: `{scored, mean, sigma, at}` of those that the session may know of; mean and sigma are
        None where there are none. Raises NotPermitted, BackendDown."""
        self._guard.require(session, "write", f"{FOLDER}/memory.md", TOOL)
        now = datetime.now(UTC).replace(microsecond=0)
        scores = {memory.id: score_of(memory, now, self._settings) for memory in self._reach.all(PROGRAM)}
        self._rows().put_scores(scores, now)
        if session.kind == "owner":
            told = list(scores.values())
        else:
            told = [scores[memory.id] for memory in self._reach.all(session) if memory.id in scores]
        return {
            "scored": len(told),
            "mean": round(fmean(told), 4) if told else None,
            "sigma": round(pstdev(told), 4) if told else None,
            "at": now,
        }
