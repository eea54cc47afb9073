"""What MongoDB's clients ask, or would if they found a server to ask."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Sequence

_LOOKING_OUT = frozenset({"ping", "endSessions"})


class _Asked(logging.Handler):
    """The driver tells its log of each operation that it seeks a server for."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        told = json.loads(record.getMessage())
        if told["message"] == "Server selection started" and told["operation"] not in _LOOKING_OUT:
            self.operations.append(told["operation"])


@contextlib.contextmanager
def listening() -> Iterator[Sequence[str]]:
    """The names of the operations of all clients meanwhile, without those that only look whether anybody is there."""
    log, asked = logging.getLogger("pymongo.serverSelection"), _Asked()
    before = log.level, log.propagate
    log.addHandler(asked)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    try:
        yield asked.operations
    finally:
        log.removeHandler(asked)
        log.setLevel(before[0])
        log.propagate = before[1]
