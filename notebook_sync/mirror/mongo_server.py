"""One MongoDB as all stores of this process know it: one client, and whether there is any use in asking.

That a server is away is found out by one question, which waits for as long as it may. Those that follow fail at once,
until the server has answered whoever looks out for it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC
from typing import Any, ClassVar

import pymongo
from pymongo import MongoClient
from pymongo.errors import ConfigurationError, ConnectionFailure, PyMongoError

from notebook_sync.address import Address
from notebook_sync.errors import ConfigError
from notebook_sync.patience import SILENT_SECONDS, Silence, soon

_Place = tuple[int, str, float]

_LOOK_SECONDS = 0.5
# A server that is not told that its client goes finds out by itself.
_GOODBYE_SECONDS = 0.5


class Server:
    """For any number of threads. Opening asks nothing."""

    _opening: ClassVar[threading.Lock] = threading.Lock()
    _open: ClassVar[dict[_Place, Server]] = {}

    def __init__(self, client: MongoClient[Any], timeout_seconds: float, *, closes_client: bool) -> None:
        self.client = client
        self._closes_client = closes_client
        self._timeout = timeout_seconds
        self._silence = Silence()
        self._doubting = threading.Lock()
        self._is_looked_for = False
        self._is_left = threading.Event()
        self._users = 0

    @classmethod
    def at(cls, url: str, timeout_seconds: float) -> Server:
        """The one that all who give the same address and the same time share; whoever has it is to `leave` it. Raises
        ConfigError."""
        place = (os.getpid(), url, timeout_seconds)  # no client outlives a fork
        with cls._opening:
            if place not in cls._open:
                cls._open[place] = cls(open_client(url, timeout_seconds), timeout_seconds, closes_client=True)
            cls._open[place]._users += 1
            return cls._open[place]

    def leave(self) -> None:
        """With the last who leaves, the client is closed, unless it is somebody else's. That waits for nobody who does
        not answer."""
        with self._opening:
            self._users -= 1
            if self._users > 0:
                return
            for place in [place for place, server in self._open.items() if server is self]:
                del self._open[place]
        self._is_left.set()
        if self._closes_client:
            with pymongo.timeout(_GOODBYE_SECONDS):
                self.client.close()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """What is asked meanwhile is answered, or raises what the driver raises: at once where the server is known to
        be away."""
        if trouble := self._silence.trouble:
            raise ConnectionFailure(trouble)
        begun = time.monotonic()
        try:
            yield
        except ConnectionFailure as error:
            # Only who has waited in vain found something out. Where a connection broke, or a primary stepped down, the
            # next question may wait for another, and be answered.
            if time.monotonic() - begun >= self._timeout / 2:
                self._doubt(str(error))
            raise

    def _doubt(self, trouble: str) -> None:
        """A question was not answered in time: it may have been too much for a server that is there, and answers
        others."""
        with self._doubting:
            if self._silence.trouble or self._answers(min(soon(self._timeout), self._timeout)):
                return
            self._silence.begin(trouble)
            if not self._is_looked_for:
                with suppress(RuntimeError):  # no thread can be had: the silence ends by itself
                    threading.Thread(target=self._look_out, args=(trouble,), name="mongodb", daemon=True).start()
                    self._is_looked_for = True

    def _look_out(self, trouble: str) -> None:
        """Ask on until the server answers. Were this thread to end before, the silence would, too."""
        while not self._is_left.wait(_LOOK_SECONDS):
            if self._answers(min(self._timeout, SILENT_SECONDS / 2)):
                break
            self._silence.begin(trouble)
        with self._doubting:
            self._silence.end()
            self._is_looked_for = False

    def _answers(self, seconds: float) -> bool:
        """Whether the server says anything, be it that it refuses."""
        try:
            with pymongo.timeout(seconds):
                # Where the address lets secondaries be read, they are there though nobody can be written to.
                self.client.admin.command("ping", read_preference=self.client.read_preference)
        except ConnectionFailure:
            return False
        except PyMongoError:
            return True
        return True


def open_client(url: str, timeout_seconds: float) -> MongoClient[Any]:
    """A client that has asked nothing yet and waits no longer than it is told. Raises ConfigError."""
    if not url.startswith(("mongodb://", "mongodb+srv://")):  # the driver takes anything else for a host's name
        raise ConfigError("[mirror] url does not begin with mongodb:// or mongodb+srv://")
    milliseconds = int(timeout_seconds * 1000)
    try:
        return MongoClient(
            url,
            tz_aware=True,
            tzinfo=UTC,
            serverSelectionTimeoutMS=milliseconds,
            connectTimeoutMS=milliseconds,
            socketTimeoutMS=milliseconds,
            retryWrites=False,  # a repetition would wait twice as long; the engine tries again anyway
            appname="notebook-sync",
        )
    except (ConfigurationError, ValueError) as error:
        reason = Address.of(url).without_secrets(str(error))
        raise ConfigError(f"[mirror] url is not a MongoDB address: {reason}") from None
