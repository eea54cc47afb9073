"""`watch` as a process: what it prints, who may watch, how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from notebook_sync.notebook import Notebook
from notebook_sync.sessions import Session
from tests import forked
from tests.waiting import eventually


class Watcher:
    """A `watch --json` process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def until(self, kind: str) -> dict[str, Any]:
        """The next event of this kind; pytest's own time limit is the deadline."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event: dict[str, Any] = json.loads(line)
            if event["event"] == kind:
                return event
        raise AssertionError(f"it ended without {kind!r}")


@contextmanager
def watching(root: Path, environment: dict[str, str], *, is_real: bool = False) -> Iterator[Watcher]:
    started = forked.real_command() if is_real else forked.command()
    command = [*started, "-C", str(root), "watch", "--json"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Watcher(process)
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_tells_each_change_and_ends_cleanly(root: Path, shell_environment: dict[str, str], number: int) -> None:
    with watching(root, shell_environment) as watcher:
        assert watcher.until("ready").keys() == {"event", "file_events"}
        (root / "pages/new.md").write_text("New.\n")
        batch = watcher.until("batch")
        assert batch.keys() == {
            *("event", "added", "updated", "moved", "deleted", "unchanged", "failed", "seconds", "paths"),
        }
        assert (batch["added"], batch["paths"]) == (1, ["pages/new.md"])
        with Notebook.open(root) as notebook:
            last = notebook.events.read()[-1]
        assert (last["kind"], last["added"], last["paths"]) == ("changed", 1, ["pages/new.md"])
        watcher.process.send_signal(number)
        _, complaints = watcher.process.communicate()
        assert (watcher.process.returncode, complaints) == (0, "")


def test_asked_to_stop_it_does_not_finish_its_first_look(root: Path, shell_environment: dict[str, str]) -> None:
    for number in range(3000):
        (root / f"pages/{number}.md").write_text(f"# Page {number}\n\nIts text.\n")
    with watching(root, shell_environment) as watcher:
        eventually((root / ".notebook/mirror.db").exists, "it has begun")
        watcher.process.send_signal(signal.SIGTERM)
        out, complaints = watcher.process.communicate()
    assert (watcher.process.returncode, out, complaints) == (0, "", "")
    with Notebook.open(root) as notebook:
        assert notebook.sync().added > 0
        assert notebook.admin.verify().consistent


def test_a_second_watcher_is_told_who_watches(root: Path, shell_environment: dict[str, str]) -> None:
    with watching(root, shell_environment, is_real=True) as first:
        first.until("ready")
        with watching(root, shell_environment) as second:
            out, complaints = second.process.communicate()
        assert second.process.returncode == 3
        error = json.loads(out)["error"]
        assert (error["type"], complaints) == ("refused", "")
        assert f"process {first.process.pid} on " in error["message"]
        status = forked.run(["-C", str(root), "status", "--json"], env=shell_environment)
        told = json.loads(status.stdout)
        assert told["watcher"]["pid"] == first.process.pid
        assert told["last_reconcile"] is not None


def test_a_save_of_the_rules_tells_what_it_does_to_the_prompt(root: Path, shell_environment: dict[str, str]) -> None:
    path = root / "runtime/standing-orders.md"
    path.write_text("".join(f"## Part {number}\n\n{f'Rule {number} is brief. ' * 30}\n\n" for number in range(9)))
    with watching(root, shell_environment) as watcher:
        watcher.until("ready")
        (root / "pages/new.md").write_text("New.\n")
        assert watcher.until("batch")["paths"] == ["pages/new.md"]
        path.write_text(path.read_text() + f"## Last\n<!-- pin -->\n\n{'Be kind. ' * 400}\n")
        assert watcher.until("batch")["paths"] == ["runtime/standing-orders.md"]
        told = watcher.until("prompt")
        path.write_text("## Last\n\nBe kind.\n")
        later = watcher.until("prompt")
    assert told.keys() == {
        *("event", "revision", "tokens", "tokens_before", "fell_out", "came_back", "stable_changes"),
    }
    assert {one["path"] for one in told["fell_out"]} == {"runtime/standing-orders.md"}
    assert (told["stable_changes"], later["tokens_before"]) == (True, told["tokens"])
    with Notebook.open(root) as notebook:
        assert notebook.prompt(Session.owner()).revision == later["revision"]
