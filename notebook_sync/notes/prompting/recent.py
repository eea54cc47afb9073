"""Which notes changed last, as the mirror knows it, asked in a way that never keeps a prompt waiting for longer than
one request may take."""

from __future__ import annotations

from collections.abc import Callable

from notebook_sync.files.note import SHARED_COLLECTIONS
from notebook_sync.mirror.base import Filter, Mirror
from notebook_sync.patience import answer_within

# Notes for all to find. Runtime files and facts have parts of their own in a prompt, and channels are private.
_FOR_ALL = Filter(collections=(*SHARED_COLLECTIONS, "memories"))


def recent_paths(mirror: Callable[[], Mirror], limit: int, timeout_seconds: float) -> list[str]:
    """The paths of the notes changed last, the newest first. Raises BackendDown, also when `mirror()` raises."""
    notes = answer_within(timeout_seconds, lambda: mirror().light(_FOR_ALL, limit))
    return [note["path"] for note in notes if note["path"]]
