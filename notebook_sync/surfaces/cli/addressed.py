"""How the commands of this notebook begin, for hints that can be copied and run."""

from __future__ import annotations

import shlex
from contextvars import ContextVar

PROGRAM = "notebook-sync"

_folder: ContextVar[str | None] = ContextVar("folder", default=None)


def about(folder: str | None) -> None:
    """From here on, commands are those about the notebook that -C names; None for the nearest."""
    _folder.set(folder)


def program() -> str:
    """How this notebook's commands begin."""
    folder = _folder.get()
    return PROGRAM if folder is None else f"{PROGRAM} -C {shlex.quote(folder)}"
