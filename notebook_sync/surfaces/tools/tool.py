"""What a tool is: a name and a sentence for a model, what it takes and answers, and for whom it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from notebook_sync.notebook import Notebook
from notebook_sync.sessions import KINDS, Kind, Session
from notebook_sync.surfaces.tools.schemas import notes as schemas


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `run(notebook, arguments, session)` gives one of `results`; the claims at the end are MCP's hints.

    `refusal` is what a session that is not among `sessions` is told. One among `of_an_agent` has the tool only where it
    names an agent.
    """

    name: str
    description: str
    arguments: type[schemas.Arguments]
    results: tuple[type[schemas.Result], ...]
    run: Callable[[Notebook, Any, Session], schemas.Result]
    sessions: frozenset[Kind] = frozenset(KINDS)
    refusal: str = ""
    of_an_agent: frozenset[Kind] = frozenset()
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False

    def is_for(self, session: Session) -> bool:
        """Whether any call of it could do something for `session`."""
        return session.kind in self.sessions and bool(session.agent or session.kind not in self.of_an_agent)


NOT_FOR_STRANGERS: frozenset[Kind] = frozenset(("owner", "task"))
