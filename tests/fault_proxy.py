"""A loopback TCP proxy between a client and a server that fails on command."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import Literal
from urllib.parse import urlsplit

from tests.servers import free_port

Mode = Literal["pass", "refuse", "hang", "reset"]
_CHUNK = 65_536
# A socket closed with this option sends RST instead of FIN.
_LINGER_ZERO = struct.pack("ii", 1, 0)


class FaultProxy:
    """Forwards connections to the server at a URL. The mode may change while connections are open.

    pass    every byte is forwarded, `delay` seconds late
    refuse  open connections end, new ones are refused
    hang    connections are accepted and stay open; no byte gets through until the mode changes
    reset   open connections and every new one are reset

    `accepted` counts the connections, those that were reset included.
    """

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 0)
        self._mode: Mode = "pass"
        self._changed = threading.Condition()
        self._closed = False
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self.delay = 0.0
        self.accepted = 0
        self.port = free_port()
        self._listener = self._listen()
        self.url = parts._replace(netloc=f"127.0.0.1:{self.port}").geturl()

    @property
    def mode(self) -> Mode:
        return self._mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        with self._changed:
            before, self._mode = self._mode, mode
            self._changed.notify_all()
        if mode == "refuse":
            _close(self._listener)
            self._end_all()
        elif before == "refuse":
            self._listener = self._listen()
        if mode == "reset":
            self._end_all(reset=True)

    def half_close(self) -> None:
        """On open connections, the server's side says that it will send no more; it goes on reading."""
        with self._changed:
            for client, _ in self._pairs:
                client.shutdown(socket.SHUT_WR)

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(self, *_: object) -> None:
        """End everything; the threads end with their sockets."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        _close(self._listener)
        self._end_all()

    def _listen(self) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # closed: the mode is `refuse`, or the proxy ends
                return
            self.accepted += 1
            try:
                server = None if self._mode == "reset" else socket.create_connection(self._target)
            except OSError:
                server = None
            if server is None:
                _close(client, reset=True)
                continue
            pair = (client, server)
            with self._changed:
                self._pairs.add(pair)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(target=self._forward, args=(source, sink, pair), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, pair: tuple[socket.socket, socket.socket]) -> None:
        with contextlib.suppress(OSError):
            while received := source.recv(_CHUNK):
                with self._changed:
                    self._changed.wait_for(lambda: self._mode != "hang" or self._closed)
                if self.delay:
                    time.sleep(self.delay)  # the fault itself: a slow link
                sink.sendall(received)
        for end in pair:
            _close(end, reset=self._mode == "reset")
        with self._changed:
            self._pairs.discard(pair)

    def _end_all(self, *, reset: bool = False) -> None:
        with self._changed:
            pairs, self._pairs = self._pairs, set()
        for end in (end for pair in pairs for end in pair):
            _close(end, reset=reset)


def _close(end: socket.socket, *, reset: bool = False) -> None:
    """Close a socket that another thread may be blocked on: only a shutdown wakes that thread."""
    with contextlib.suppress(OSError):
        if reset:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        end.shutdown(socket.SHUT_RD if reset else socket.SHUT_RDWR)  # SHUT_RD alone sends nothing before the RST
    end.close()
