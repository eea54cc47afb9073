"""Pictures of the memories that a session may know of. What it may not read is not there, also as the end of a link."""

from __future__ import annotations

from collections.abc import Callable

from notebook_sync.errors import UsageError
from notebook_sync.notes.memories.graph.mermaid import as_mermaid
from notebook_sync.notes.memories.graph.pick import Graph, picked
from notebook_sync.notes.memories.graph.svg import drawn
from notebook_sync.notes.memories.reach import MemoryReach
from notebook_sync.notes.memories.template import kind_named
from notebook_sync.sessions import Session

_FORMATS: dict[str, Callable[[Graph], str]] = {"svg": drawn, "mermaid": as_mermaid}


class MemoryGraph:
    """For one notebook. `follow` brings the rows of memories in step with the files."""

    def __init__(self, reach: MemoryReach, follow: Callable[[], object]) -> None:
        self._reach = reach
        self._follow = follow

    def draw(self, session: Session, *, format: str, kind: str, domain: str, around: str, limit: int) -> str:  # noqa: A002 - so the option is called
        """The picture. Raises UsageError, NoSuchNote, NotPermitted, BackendDown."""
        if format not in _FORMATS:
            raise UsageError(f"there is no format {format!r}; use one of {', '.join(_FORMATS)}")
        wanted = kind_named(kind)
        self._follow()
        centre = self._reach.named(around, session)[0] if around else ""
        memories = list(self._reach.all(session))
        return _FORMATS[format](picked(memories, kind=wanted, domain=domain, around=centre, limit=limit))
