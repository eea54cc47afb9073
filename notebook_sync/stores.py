"""Which mirror and which hot memory the settings ask for: the embedded file where no URL is set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from notebook_sync.config import Settings
from notebook_sync.mirror.base import Mirror
from notebook_sync.refs.base import Refs

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

    return SqliteMirror(folder() / EMBEDDED_FILE)


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
