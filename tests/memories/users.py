"""Opening stores of memories, and what other processes do to them. Apart from the suite, so that starting them costs
little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from notebook_sync.mirror.memories import MemoryRows

TIMES = 20


def use(open_rows: Callable[[], MemoryRows], ids: Sequence[str], at: datetime) -> None:
    """Use memories, so many times."""
    rows = open_rows()
    for _ in range(TIMES):
        rows.used(ids, at)
    rows.close()
