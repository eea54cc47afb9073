"""MCP over standard input and output, for one client, until it closes its end or a signal comes.

Only the protocol reaches standard output; logs go to standard error.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
from mcp.server.stdio import stdio_server

from notebook_sync.errors import UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.background import following
from notebook_sync.surfaces.mcp.resources import Asking
from notebook_sync.surfaces.mcp.server import NotebookServer

_CHUNK = 1 << 16


def serve_stdio(notebook: Notebook, session: Session, *, toolsets: str = "core") -> int:
    """Answer one client for this session. Raises UsageError where standard input or output is closed."""
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("mcp needs standard input and output, and one of them is closed")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="notebook-sync: %(message)s")
    asking = Asking(session, toolsets)
    try:
        with following(notebook):
            anyio.run(_serve, NotebookServer(notebook, lambda _: asking, lambda: session))
    except* (BrokenPipeError, ConnectionResetError):
        pass  # the client left without a word
    return 0


async def _serve(server: NotebookServer) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_cancel_at_signal, tasks.cancel_scope)
        lines: Any = _Lines(sys.stdin.fileno())  # of an AsyncFile, the SDK uses no more than this
        async with stdio_server(stdin=lines) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _cancel_at_signal(scope: anyio.CancelScope) -> None:
    """Cancel the scope at the first signal; a second one ends the process at once."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


class _Lines:
    """The lines of a descriptor. Waiting for one can be cancelled, which a reading thread cannot."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def __aiter__(self) -> AsyncIterator[str]:
        decoder = getincrementaldecoder("utf-8")(errors="replace")
        parts: list[str] = []
        while chunk := await self._chunk():
            # Only at \n: JSON may hold other line ends.
            first, *others = decoder.decode(chunk).split("\n")
            parts.append(first)
            for other in others:
                yield "".join(parts)
                parts = [other]
        if any(parts):
            yield "".join(parts)

    async def _chunk(self) -> bytes:
        try:
            await anyio.wait_readable(self._fd)
        except PermissionError:  # a regular file is always readable
            await anyio.lowlevel.checkpoint()
        return os.read(self._fd, _CHUNK)
