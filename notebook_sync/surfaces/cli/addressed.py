"""The commands that a sentence names, as they are to be typed for the notebook that this command is about.

Sentences are made far below, where nobody knows of -C: it is put in where they are printed.
"""

from __future__ import annotations

import re
import shlex
from contextvars import ContextVar

PROGRAM = "notebook-sync"

_folder: ContextVar[str | None] = ContextVar("folder", default=None)
# As our sentences name one, behind a colon; these three are told by an argument which notebook is meant.
_COMMAND = re.compile(rf"(?<=: ){PROGRAM} (?!(?:init|demo|import)\b)(?=[a-z])")


def about(folder: str | None) -> None:
    """From here on, commands are those about the notebook that -C names; None for the nearest."""
    _folder.set(folder)


def program() -> str:
    """How this notebook's commands begin."""
    folder = _folder.get()
    return PROGRAM if folder is None else f"{PROGRAM} -C {shlex.quote(folder)}"


def addressed(sentence: str) -> str:
    """The sentence, in which each command is one about this notebook."""
    return _COMMAND.sub(lambda _: f"{program()} ", sentence)
