"""What MongoDB's clients ask, as it leaves them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pymongo
import pytest
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent

from notebook_sync.mirror import mongo_server

_LOOKING_OUT = frozenset({"ping", "endSessions"})


class Asked(CommandListener):
    """The names of the commands that were sent, without those that only look whether anybody is there."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def started(self, event: CommandStartedEvent) -> None:
        if event.command_name not in _LOOKING_OUT:
            self.commands.append(event.command_name)

    def succeeded(self, event: CommandSucceededEvent) -> None: ...

    def failed(self, event: CommandFailedEvent) -> None: ...


def listening(monkeypatch: pytest.MonkeyPatch) -> Sequence[str]:
    """What all clients that are opened from now on ask; it grows."""
    asked = Asked()
    opening = functools.partial(pymongo.MongoClient, event_listeners=[asked])
    monkeypatch.setattr(mongo_server, "MongoClient", opening)
    return asked.commands
