"""How much of the server each session may have at once: a loop in one agent leaves room for the others, and all agents
together leave room for the owner."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from notebook_sync.sessions import OWNER, Session


@dataclass(frozen=True, slots=True)
class Quota:
    """Of one thing: `most` in all, `each` for one agent, and the last `reserve` for the owner only."""

    most: int
    each: int
    reserve: int

    def allows(self, session: Session, held: Counter[Session]) -> bool:
        """Whether the session may have one more, when each session has as many as `held` says."""
        total, left = held.total(), self.most - self.reserve
        is_in_share = session == OWNER or (held[session] < self.each and total - held[OWNER] < left)
        return total < self.most and is_in_share


# A request may need a worker thread until it is answered.
REQUESTS: Final = Quota(most=32, each=8, reserve=8)
STREAMS: Final = Quota(most=64, each=8, reserve=16)
MCP_SESSIONS: Final = Quota(most=256, each=32, reserve=64)
