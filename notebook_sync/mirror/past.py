"""What a row's past allows, and what the row keeps of it, the same in every store. Pure."""

from __future__ import annotations

from typing import Any

from notebook_sync.files.note import HISTORY_LIMIT
from notebook_sync.mirror.base import Put
from notebook_sync.mirror.document import to_milliseconds

History = list[dict[str, Any]]


def may_put(put: Put, digest: str, path: str, version: int) -> bool:
    """Whether a row is as the writer believes: what it read before, or already what it wants to say."""
    if not path:
        return True
    if put.base is None:
        return digest == put.note.digest and path == put.note.path
    return digest == put.note.digest or (digest == put.base and put.base_version in {None, version})


def first_version(put: Put) -> tuple[int, History]:
    """Version and history of a row that the store has never held: git's, or a beginning."""
    if put.seed is not None:
        return put.seed.version, list(put.seed.history)[-HISTORY_LIMIT:]
    return 1, [_crumb(put, 1)]


def next_version(put: Put, version: int, history: History) -> tuple[int, History]:
    """Version and history once more, after a change of content."""
    return version + 1, [*history, _crumb(put, version + 1)][-HISTORY_LIMIT:]


def untold(earlier: str, action: str) -> str:
    """What hot memory has to be told of a row, when an `earlier` action ("" for none) was not told yet."""
    return earlier if earlier and (earlier == "created" or action == "touched") else action


def _crumb(put: Put, version: int) -> dict[str, Any]:
    crumb = put.breadcrumb
    return {
        "version": version,
        "timestamp": to_milliseconds(crumb.timestamp),
        "summary": crumb.summary,
        "changed_by": crumb.changed_by,
    }
