"""Who is asking. A session goes with every call that depends on it; it can be made, never raised."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, get_args

from notebook_sync.errors import UsageError

Kind = Literal["owner", "task", "external"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# An agent's name is a folder's name below channels/ and one line of a commit's message.
_AGENT = re.compile(r"\w(?:[\w .@+:-]{0,62}[\w@+:-])?")

_PROGRAM = "notebook-sync"
# What breadcrumbs, commits and events call the owner, the program, and an agent that gave no name.
_RESERVED = frozenset({_PROGRAM, "owner", "unknown"})


@dataclass(frozen=True, slots=True)
class Session:
    """owner: the person the notebook belongs to. task: an agent on its own. external: someone else's message.

    `agent` names the agent that acts, "" for a person. Raises UsageError for what is no name, and for a name that the
    program uses itself.
    """

    kind: Kind
    agent: str = ""

    def __post_init__(self) -> None:
        if self.agent and not is_agent_name(self.agent):
            raise UsageError(f"{self.agent!r} is no agent's name; use letters, digits, and .-_@+: between them")
        if unicodedata.normalize("NFKC", self.agent).casefold() in _RESERVED:
            raise UsageError(f"{self.agent!r} is a name that notebook-sync uses itself; give the agent another one")

    @property
    def changed_by(self) -> str:
        """Who a breadcrumb names: `agent:NAME`, `agent:unknown` where it gave no name, else `owner`; the program itself
        by its own name."""
        return maker_of(self.agent) if self.agent or self.kind == "owner" else "agent:unknown"

    @classmethod
    def owner(cls, agent: str = "") -> Session:
        """The session of the person the notebook belongs to."""
        return cls("owner", agent)

    @classmethod
    def task(cls, agent: str = "") -> Session:
        """The session of an agent on its own."""
        return cls("task", agent)

    @classmethod
    def external(cls, agent: str = "") -> Session:
        """The session of an agent that acts on someone else's message."""
        return cls("external", agent)

    @classmethod
    def named(cls, kind: str, agent: str = "") -> Session:
        """The session of this kind. Raises UsageError for a kind there is not."""
        for known in KINDS:
            if kind == known:
                return cls(known, agent)
        raise UsageError(f"there is no session {kind!r}; use one of {', '.join(KINDS)}")


class _Program(Session):
    """The one session that may have the program's name; it equals no session that anybody else can make."""

    def __post_init__(self) -> None:
        """Take the name as it is."""


def maker_of(agent: str) -> str:
    """Who made something, by the name of an agent; the owner for ""."""
    return "owner" if not agent else agent if agent == _PROGRAM else f"agent:{agent}"


def is_agent_name(name: str) -> bool:
    """Whether an agent may be called so."""
    return _AGENT.fullmatch(name) is not None


# Whoever calls from Python has the files anyway, and is the owner unless they say otherwise.
OWNER = Session.owner()
# What the program does of itself, by the clock, as the owner's settings tell it to.
PROGRAM = _Program("owner", _PROGRAM)
