"""`python -m tests.memory_picture` draws docs/pictures/memories.svg: fourteen invented memories, and their links.

The program draws it, nothing is retouched, and the same code gives the same bytes.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from notebook_sync.mirror.memories import Link, Memory
from notebook_sync.notes.memories.graph.pick import picked
from notebook_sync.notes.memories.graph.svg import drawn

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "memories.svg"
NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
# Name, kind, title, score, and the links: how, to which, how sure.
MEMORIES = (
    ("queue", "problem", "Passengers queue twice on market days", 0.71, (("causes", "late", 0.9),)),
    ("late", "problem", "The noon crossing leaves late", 0.64, ()),
    ("coins", "problem", "Nobody has the right coins at the gate", 0.58, (("causes", "queue", 0.95),)),
    ("cards", "decision", "Take cards at the gate from spring on", 0.77, (("solves", "coins", 0.9),)),
    ("cash", "decision", "Take cash only", 0.31, (("causes", "coins", 0.7),)),
    ("office", "decision", "Sell tickets in the harbour office, too", 0.52, (("solves", "queue", 0.8),)),
    ("market", "pattern", "Market days double the passengers", 0.6, (("causes", "queue", 0.85),)),
    ("tide", "pattern", "Low spring tides cost ten minutes at the slip", 0.55, (("causes", "late", 0.6),)),
    ("slack", "insight", "Ten minutes of slack at noon are enough, all year round", 0.66, (("solves", "late", 0.75),)),
    (
        "trial",
        "insight",
        "One queue moves faster than two",
        0.48,
        (("expands", "office", 0.7), ("similar", "slack", 0.4)),
    ),
    ("stamps", "decision", "Keep the paper stamps for season tickets", 0.4, (("contradicts", "cards", 0.5),)),
    ("radio", "problem", "The radio is silent behind the headland", 0.44, ()),
    ("mast", "decision", "Put the relay on the old signal mast", 0.5, (("solves", "radio", 0.9),)),
    ("log", "insight", "Odile's log is the only record of the early crossings", 0.37, ()),
)
REPLACED = {"cards": "cash"}


def memories() -> list[Memory]:
    """The memories of the picture."""
    return [_memory(*one) for one in MEMORIES]


def _memory(name: str, kind: str, title: str, score: float, links: tuple[Any, ...]) -> Memory:
    relations = [Link(how, to, confidence) for how, to, confidence in links]
    relations += [Link("supersedes", REPLACED[name])] if name in REPLACED else []
    return Memory(
        id=name,
        path=f"memories/{kind}/2026-02-16-{name}.md",
        title=title,
        summary=title,
        kind=kind,
        domain="radio" if name in {"radio", "mast"} else "tickets",
        tags=(),
        agent="scribe",
        priority=7,
        needs_review=name == "trial",
        provenance=None,
        status="draft",
        created_at=NOW,
        created_from="frontmatter",
        updated_at=NOW,
        version=1,
        digest="",
        relations=tuple(relations),
        score=score,
    )


def picture() -> str:
    """The picture."""
    return drawn(picked(memories()))


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
