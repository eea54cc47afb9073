"""Blocking work of a server, in worker threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from notebook_sync.registry import OPERATIONS

_Result = TypeVar("_Result")
_WRITERS = 4


class Threads:
    """The worker threads of one server. Writers wait for each other's lock, so only a few threads are theirs."""

    def __init__(self) -> None:
        self._writers = anyio.CapacityLimiter(_WRITERS)

    async def run(self, work: Callable[[], _Result], *, writes: bool = False) -> _Result:
        """Run `work` to its end, whether or not the client waits for it: a write that has begun is finished."""
        return await anyio.to_thread.run_sync(work, limiter=self._writers if writes else None)


def is_writing_tool(name: str) -> bool:
    """Whether a tool changes something."""
    return any(each.tool == name and each.effect != "read" for each in OPERATIONS.values())
