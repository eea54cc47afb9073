"""What a tool is: a name and a sentence for a model, what it takes and answers, and for whom it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from notebook_sync.notebook import Notebook
from notebook_sync.sessions import KINDS, Kind, Session
from notebook_sync.surfaces import tool_schemas as schemas


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. `run(notebook, arguments, session)` gives one of `results`; the three claims are MCP's hints.

    `refusal` is what a session that is not among `sessions` is told.
    """

    name: str
    description: str
    arguments: type[schemas.Arguments]
    results: tuple[type[schemas.Result], ...]
    run: Callable[[Notebook, Any, Session], schemas.Result]
    sessions: frozenset[Kind] = frozenset(KINDS)
    refusal: str = ""
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


NOT_FOR_STRANGERS: frozenset[Kind] = frozenset(("owner", "task"))
