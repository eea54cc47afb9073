"""An app served from a thread of this process, on a port that is open already; nothing stays open behind it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn

from tests.waiting import eventually


class _Server(uvicorn.Server):
    """Leaves no connection to whoever collects garbage: uvicorn gives up those that outlast its patience, and knows
    none that was accepted while it ended. A test that ran long after was blamed for them."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await super().serve(sockets)
        await asyncio.sleep(0)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)


@contextlib.contextmanager
def served(config: uvicorn.Config, listener: socket.socket, end: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Until the end; `end` is called before the server is asked to."""
    server = _Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started, "the server answers")
        yield
    finally:
        end()
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
