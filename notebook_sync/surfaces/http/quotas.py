"""How much of the server each session may have at once: a loop in one agent leaves room for the others, and all agents
together leave room for the owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from anyio import Semaphore, fail_after

from notebook_sync.sessions import OWNER, Session
from notebook_sync.surfaces.errors import TooManyRequests


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
# What may take seconds; what else one agent asks for of that kind waits for its turn.
COSTLY_AT_ONCE: Final = 2
TURN_SECONDS: Final = 30.0


@dataclass
class Place:
    """The place of a request among those of its session. It is taken until the request is answered and its work has
    ended, so a client that leaves and asks again has no more work done for it."""

    session: Session
    held: Counter[Session]
    turns: Semaphore
    _inside: int = 0

    def __enter__(self) -> None:
        self.held[self.session] += not self._inside
        self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._inside -= 1
        self.held[self.session] -= not self._inside

    @asynccontextmanager
    async def at_work(self, *, is_quick: bool) -> AsyncIterator[None]:
        """While the work is done, which begins when it is its turn. Raises TooManyRequests."""
        with self:
            if is_quick or self.session == OWNER:
                yield
                return
            try:
                with fail_after(TURN_SECONDS):
                    await self.turns.acquire()
            except TimeoutError:
                raise TooManyRequests("two costly requests of this session are under way") from None
            try:
                yield
            finally:
                self.turns.release()
