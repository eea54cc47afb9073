"""Who is asking. A session goes with every call that depends on it; it can be made, never raised."""

# Without `from __future__ import annotations`: msgspec would compile each annotation at each start of the program.

import re
import unicodedata
from typing import Literal, get_args

import msgspec

from notebook_sync.errors import UsageError

Kind = Literal["owner", "task", "external"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# An agent's name is a folder below channels/ and one line of a commit message.
_AGENT = re.compile(r"\w(?:[\w .@+:-]{0,62}[\w@+:-])?")

_PROGRAM = "notebook-sync"
# What history, commits and events call the owner, the program, and an agent that gave no name.
_RESERVED = frozenset({_PROGRAM, "owner", "unknown"})


class Session(msgspec.Struct, frozen=True):
    """owner: the person who owns the notebook. task: an agent working on its own. external: an agent that acts on
    someone else's message.

    `agent` names the acting agent, "" for a person. Raises UsageError for a name that cannot be one, or that the
    program reserves.
    """

    kind: Kind
    agent: str = ""

    def __post_init__(self) -> None:
        if self.agent and not is_agent_name(self.agent):
            raise UsageError(
                f"{self.agent!r} cannot be an agent's name", next="use at most 64 letters, digits and .-_@+: inside"
            )
        if unicodedata.normalize("NFKC", self.agent).casefold() in _RESERVED:
            raise UsageError(f"the agent name {self.agent!r} is reserved", next="give the agent another name")

    @property
    def changed_by(self) -> str:
        """Who history names: `agent:NAME`, `agent:unknown`, `owner`, or the program itself."""
        return maker_of(self.agent) if self.agent or self.kind == "owner" else "agent:unknown"

    @classmethod
    def owner(cls, agent: str = "") -> "Session":
        """The session of the notebook's owner."""
        return cls("owner", agent)

    @classmethod
    def task(cls, agent: str = "") -> "Session":
        """The session of an agent working on its own."""
        return cls("task", agent)

    @classmethod
    def external(cls, agent: str = "") -> "Session":
        """The session of an agent that acts on someone else's message."""
        return cls("external", agent)

    @classmethod
    def named(cls, kind: str, agent: str = "") -> "Session":
        """The session of a kind given as text. Raises UsageError for an unknown kind."""
        if kind not in KINDS:
            raise UsageError(f"there is no session kind {kind!r}", next=f"use one of {', '.join(KINDS)}")
        return cls(kind, agent)


class _Program(Session, frozen=True):
    """The one session with the program's name; no caller can make an equal one."""

    def __post_init__(self) -> None:
        """Accept the reserved name."""


def maker_of(agent: str) -> str:
    """Who made something, by the name of an agent; the owner for ""."""
    return "owner" if not agent else agent if agent == _PROGRAM else f"agent:{agent}"


def is_agent_name(name: str) -> bool:
    """Whether an agent may have this name."""
    return _AGENT.fullmatch(name) is not None


# A Python caller can open the files directly, and is the owner unless it says otherwise.
OWNER = Session.owner()
# Work that the program does by the clock, on the owner's settings.
PROGRAM = _Program("owner", _PROGRAM)
