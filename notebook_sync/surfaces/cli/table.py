"""What a table of commands is made of: a command and its arguments as values, and the arguments that many share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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

    `shape` is what `--json` prints, "" for a command without it. A group has `commands` in place of arguments.
    """

    name: str
    summary: str
    about: str
    examples: tuple[str, ...]
    shape: str
    arguments: tuple[Argument, ...] = ()
    commands: tuple[Command, ...] = ()


def each(commands: Sequence[Command], before: str = "") -> Iterator[tuple[str, Command]]:
    """Every command by the words that call it, a group in front of its own."""
    for command in commands:
        words = f"{before} {command.name}".lstrip()
        yield words, command
        yield from each(command.commands, words)


SESSION = Argument(
    "--session",
    "who is asking: owner, task or external; else NOTEBOOK_SESSION, else owner at a terminal and task elsewhere",
    {"metavar": "KIND"},
)
AGENT = Argument("--agent", "the name of the agent that asks", {"metavar": "NAME", "default": ""})
JSON = Argument("--json", "print JSON, in the shape shown below", {"action": "store_true"})
STATUSES = "draft, in_progress, complete or archived"
TAGGED = Argument("--tags", "tags, parted by commas", {"metavar": "A,B"})
TAGS = Argument("--tags", "only those with any of these tags, parted by commas", {"metavar": "A,B"})
SINCE = Argument("--since", "only from this day or moment on; also how long ago: 12h, 7d", {"metavar": "DATE"})
UNTIL = Argument("--until", "only before this day or moment", {"metavar": "DATE"})


def limit(most: int) -> Argument:
    """How many at most, `most` unless it is said."""
    return Argument("--limit", f"at most so many ({most})", {"metavar": "N", "type": "count", "default": most})
