"""Opening stores of facts, and what other processes do to them. Apart from the suite, so that starting them costs
little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from notebook_sync.mirror.facts import FactRows
    from notebook_sync.mirror.facts_mongo import MongoFacts
    from notebook_sync.mirror.facts_sqlite import SqliteFacts
    from tests.facts.hashing import Hashing

TIMES = 100


def open_sqlite(path: Path, embedder: Hashing | None) -> SqliteFacts:
    from notebook_sync.mirror.facts_sqlite import SqliteFacts

    return SqliteFacts(path, None if embedder is None else lambda: embedder)


def open_mongo(url: str, database: str, embedder: Hashing | None) -> MongoFacts:
    from notebook_sync.mirror.facts_mongo import MongoFacts

    return MongoFacts(url, database, None if embedder is None else lambda: embedder, timeout_seconds=30.0)


def use(open_facts: Callable[[None], FactRows], note_id: str) -> None:
    """Use a fact, and let it count for more, a hundred times each."""
    rows = open_facts(None)
    for _ in range(TIMES):
        rows.increment_access(note_id)
        rows.update_importance(note_id, by=0.001)
    rows.close()
