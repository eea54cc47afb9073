"""Which mirror, which vectors and which hot memory the settings ask for: the embedded file where no URL is set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from notebook_sync.settings import Settings

if TYPE_CHECKING:
    from notebook_sync.mirror.base import Mirror
    from notebook_sync.mirror.facts import Embedding, FactRows
    from notebook_sync.mirror.memories import MemoryRows
    from notebook_sync.mirror.syntheses import Syntheses
    from notebook_sync.refs.base import Refs
    from notebook_sync.search.base import Vectors

EMBEDDED_FILE = "mirror.db"


def open_mirror(settings: Settings, folder: Callable[[], Path]) -> Mirror:
    """The content store; `folder` is only called, and so only made, for an embedded one.

    Drivers are imported only where they are used: each costs a tenth of a second to start.
    """
    if settings.mirror.url:
        from notebook_sync.mirror.mongo import MongoMirror

        return MongoMirror(
            settings.mirror.url, settings.mirror.database, timeout_seconds=settings.mirror.timeout_seconds
        )
    from notebook_sync.mirror.sqlite import SqliteMirror

    return SqliteMirror(folder() / EMBEDDED_FILE, settings.prompt)


def open_refs(settings: Settings, folder: Callable[[], Path]) -> Refs:
    """Hot memory. `folder` as in `open_mirror`."""
    if settings.refs.url:
        from notebook_sync.refs.redis import RedisRefs

        return RedisRefs(
            settings.refs.url,
            settings.refs.prefix,
            timezone=settings.timezone,
            timeout_seconds=settings.refs.timeout_seconds,
        )
    from notebook_sync.refs.sqlite import SqliteRefs

    return SqliteRefs(folder() / EMBEDDED_FILE, settings.timezone)


def open_vectors(settings: Settings, folder: Callable[[], Path]) -> Vectors:
    """The vectors of the mirror's notes, in the mirror's store. `folder` as in `open_mirror`."""
    if settings.mirror.url:
        from notebook_sync.search.vectors_mongo import MongoVectors
        from notebook_sync.search.vectors_proposed import ProposedVectors

        mirror, refs = settings.mirror, settings.refs
        vectors = MongoVectors(mirror.url, mirror.database, timeout_seconds=mirror.timeout_seconds)
        from notebook_sync.search.vectors_atlas import AtlasPassages

        by_server = AtlasPassages(mirror.url, mirror.database, timeout_seconds=mirror.timeout_seconds)
        if not refs.url:
            return ProposedVectors(vectors, by_server)
        from notebook_sync.search.proposals_chosen import ChosenProposals
        from notebook_sync.search.redis_passages import RedisPassages

        by_redis = RedisPassages(refs.url, refs.prefix, timeout_seconds=refs.timeout_seconds)
        return ProposedVectors(vectors, ChosenProposals(by_redis, by_server))
    from notebook_sync.search.vectors_sqlite import SqliteVectors

    return SqliteVectors(folder() / EMBEDDED_FILE)


def open_facts(settings: Settings, folder: Callable[[], Path], embedder: Embedding | None = None) -> FactRows:
    """The rows of facts, in the mirror's store. `folder` as in `open_mirror`; `embedder` is only called by a search."""
    if settings.mirror.url:
        from notebook_sync.mirror.facts_mongo import MongoFacts

        url, database, seconds = settings.mirror.url, settings.mirror.database, settings.mirror.timeout_seconds
        return MongoFacts(url, database, embedder, settings.memory.decay_rate, timeout_seconds=seconds)
    from notebook_sync.mirror.facts_sqlite import SqliteFacts

    return SqliteFacts(folder() / EMBEDDED_FILE, embedder, settings.memory.decay_rate)


def open_memories(settings: Settings, folder: Callable[[], Path]) -> MemoryRows:
    """What is known of memories, in the mirror's store. `folder` as in `open_mirror`."""
    if settings.mirror.url:
        from notebook_sync.mirror.memories_mongo import MongoMemories

        mirror = settings.mirror
        return MongoMemories(mirror.url, mirror.database, timeout_seconds=mirror.timeout_seconds)
    from notebook_sync.mirror.memories_sqlite import SqliteMemories

    return SqliteMemories(folder() / EMBEDDED_FILE)


def open_syntheses(settings: Settings, folder: Callable[[], Path]) -> Syntheses:
    """What is kept of syntheses, in the mirror's store. `folder` as in `open_mirror`."""
    if settings.mirror.url:
        from notebook_sync.mirror.syntheses_mongo import MongoSyntheses

        mirror = settings.mirror
        return MongoSyntheses(mirror.url, mirror.database, timeout_seconds=mirror.timeout_seconds)
    from notebook_sync.mirror.syntheses_sqlite import SqliteSyntheses

    return SqliteSyntheses(folder() / EMBEDDED_FILE)
