"""MCP over standard input and output, for one client: until it closes its end, or a signal asks to end. Meanwhile the
notebook is synced and followed, unless another process does.

Nothing but the protocol reaches standard output; what is logged goes to standard error.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, cast

import anyio
import anyio.lowlevel
from mcp.server.stdio import stdio_server

from notebook_sync.errors import UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from notebook_sync.surfaces.beside.embedding_thread import embedding_beside
from notebook_sync.surfaces.beside.following import Following
from notebook_sync.surfaces.mcp.server import NotebookServer
from notebook_sync.surfaces.mcp.subscriptions import Subscriptions

if TYPE_CHECKING:
    from anyio import AsyncFile

_CHUNK = 1 << 16


def serve_stdio(notebook: Notebook, session: Session) -> None:
    """Answer one client, for this session. Raises UsageError where standard input or output is closed."""
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("mcp speaks over standard input and output, and one of them is closed")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="notebook-sync: %(message)s")
    try:
        with embedding_beside(notebook) as embed:
            following = Following(notebook, watch=True, changed=lambda _: embed())
            with following.running():
                anyio.run(_serve, notebook, session, following)
    except* (BrokenPipeError, ConnectionResetError):
        pass  # the client went away without a word; there is nobody to tell


async def _serve(notebook: Notebook, session: Session, following: Following) -> None:
    subscriptions = Subscriptions(notebook)
    server = NotebookServer(notebook, lambda _: session, subscriptions, behind=lambda: following.behind)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_at_signal, tasks.cancel_scope)
        lines = cast("AsyncFile[str]", _Lines(sys.stdin.fileno()))
        async with stdio_server(stdin=lines) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _end_at_signal(scope: anyio.CancelScope) -> None:
    """Cancel the scope at the first signal; a second one ends the process at once."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


class _Lines:
    """The lines of a descriptor. Waiting for one can be cancelled, which a thread that reads cannot."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def __aiter__(self) -> AsyncIterator[str]:
        decoder = getincrementaldecoder("utf-8")(errors="replace")
        rest = ""
        while chunk := await self._chunk():
            *lines, rest = (rest + decoder.decode(chunk)).split("\n")
            for line in lines:
                yield line
        if rest:
            yield rest

    async def _chunk(self) -> bytes:
        try:
            await anyio.wait_readable(self._fd)
        except PermissionError:
            await anyio.lowlevel.checkpoint()  # a file, which need not be waited for
        return os.read(self._fd, _CHUNK)
