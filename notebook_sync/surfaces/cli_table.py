"""What a table of commands is made of: a command and its arguments as values, and the arguments that many share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument: its flag or its name, what it means, and the rest of what argparse is told."""

    name: str
    help: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Command:
    """`summary` is one line; `about` says more; `examples` are lines for a shell.

    `shape` is what `--json` prints, "" for a command without it.
    """

    name: str
    summary: str
    about: str
    examples: tuple[str, ...]
    shape: str
    arguments: tuple[Argument, ...] = ()


SESSION = Argument(
    "--session",
    "who is asking: owner, task or external; else NOTEBOOK_SESSION, else owner at a terminal and task elsewhere",
    {"metavar": "KIND"},
)
AGENT = Argument("--agent", "the name of the agent that asks", {"metavar": "NAME", "default": ""})
JSON = Argument("--json", "print JSON, in the shape shown below", {"action": "store_true"})
