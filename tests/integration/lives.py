"""Processes with a notebook on servers, started by the tests as `python -m tests.integration.lives`.

die NUMBER    sync, and be killed just before the NUMBERth request to a server; exit 0 when there are fewer
sync FILE     sync again and again until FILE is there
update NAME AGENT TIMES     give a note so many new texts as an agent, and write their versions to AGENT.json beside it
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import redis.connection
from pymongo import monitoring

from notebook_sync import Notebook, Session


class _Killer(monitoring.CommandListener):
    """Counts the requests to both servers, and kills the process instead of sending the last one."""

    def __init__(self, number: int) -> None:
        self._left = number

    def count(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.count()

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Of no interest."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Of no interest."""


def die(root: Path, number: int) -> None:
    killer = _Killer(number)
    monitoring.register(killer)
    send = redis.connection.Connection.send_packed_command

    def send_or_die(self: Any, command: Any, check_health: bool = True) -> None:
        killer.count()
        send(self, command, check_health)

    redis.connection.Connection.send_packed_command = send_or_die  # type: ignore[method-assign]
    with Notebook.open(root) as notebook:
        notebook.sync()


def sync_until(root: Path, file: Path) -> None:
    with Notebook.open(root) as notebook:
        while not file.exists():
            report = notebook.sync()
            if report.refs_trouble:
                sys.exit(report.refs_trouble)


def update(root: Path, name: str, agent: str, times: int) -> None:
    session = Session.task(agent)
    with Notebook.open(root) as notebook:
        texts = (f"# Log\n\nEntry {number} of {agent}.\n" for number in range(times))
        versions = [notebook.update(name, session, content=text).version for text in texts]
    (root.parent / f"{agent}.json").write_text(json.dumps(versions))


if __name__ == "__main__":
    command, root, *arguments = sys.argv[1:]
    if command == "die":
        die(Path(root), int(arguments[0]))
    elif command == "update":
        update(Path(root), arguments[0], arguments[1], int(arguments[2]))
    else:
        sync_until(Path(root), Path(arguments[0]))
