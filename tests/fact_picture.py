"""`python -m tests.fact_picture` draws docs/pictures/importance.svg: what seven invented facts counted for, and will.

The program draws it, nothing is retouched, and the same code gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from notebook_sync.files.facts import id_of
from notebook_sync.mirror.facts import Fact
from notebook_sync.notes.fact_life import REINFORCED, clamp
from notebook_sync.notes.facts.plot import plot
from notebook_sync.settings import MemorySettings

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "importance.svg"
NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
# What a fact says, its importance at first, how many days ago it was made, and how many days ago it was reinforced.
FACTS = (
    ("The ferry to the island leaves at 8 on weekdays", 0.7, 60, (50, 41, 30, 12, 3)),
    ("The rope budget is 300 for this year", 0.9, 10, (8, 4)),
    ("The tide tables are in pages/tides.md, and the harbour office prints them each quarter", 0.5, 25, (5,)),
    ("Odile keeps the keys of the harbour office", 0.5, 80, (70, 20)),
    ("Ben is on watch this week", 0.2, 5, ()),
    ("Ines prefers tea to coffee", 0.4, 45, ()),
    ("The old crane is out of use", 0.3, 88, (60,)),
)


def drawn() -> str:
    """The picture."""
    return plot([_fact(*one) for one in FACTS], NOW, MemorySettings())


def _fact(text: str, importance: float, age: int, uses: Sequence[int]) -> Fact:
    history = [{"at": _ago(age), "action": "added", "importance": importance}]
    for days in uses:
        importance = clamp(importance + REINFORCED)
        history.append({"at": _ago(days), "action": "reinforced", "importance": importance})
    return Fact(
        id_of(text),
        text,
        _ago(age),
        _ago(age),
        section="Important Facts",
        path="facts/notes.md",
        importance=importance,
        access_count=len(uses),
        last_accessed=_ago(uses[-1]) if uses else None,
        source_history=tuple(history),
    )


def _ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
