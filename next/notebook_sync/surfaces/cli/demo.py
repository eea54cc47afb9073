"""The main job in a temporary notebook. Every step is a command that the reader can type afterwards."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.surfaces.cli.index import PROGRAM

# -P: a file in the reader's folder must not pass for a module.
_COMMAND = (sys.executable, "-P", "-m", "notebook_sync")
_RULES = """## Permanent Rules

- **Odile Marchetti** (odile@ferry.example): always respond, within the hour
- **Harbour office** (+00 555 0142): draft only

## Temporary Instructions

"""
_NEW_RULE = "- **Mira Holt** (mira@lighthouse.example): observe only [until 2199-12-31]\n"
_ORDERS = """## Communication Style

- Write dates the way the timetable does: 6 May, 17:30

## Boundaries
<!-- pin -->

- Never promise a berth before the harbour office has confirmed it
"""
_REMINDERS = """## Today

- [ ] Return the borrowed sextant to Odile

## Recurring

- Every Thursday: Wind the tower clock
"""
_PAGE = "The ferry leaves the harbour at nine. In winter it leaves at ten, unless there is ice."


def play(folder: Path | None) -> None:
    """Play the demonstration in `folder`, or in a temporary one, and leave it there. Raises UsageError."""
    root = folder if folder is not None else Path(tempfile.mkdtemp(prefix="notebook-demo-")) / "notebook"
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} is not an empty folder", next="name a new one")
    _say("1. Create a notebook, and give it rules.")
    _run("init", str(root))
    for name, text in (("external-communications", _RULES), ("standing-orders", _ORDERS), ("reminders", _REMINDERS)):
        (root / "runtime" / f"{name}.md").write_text(text, encoding="utf-8")
    _say("2. Sync it. No server is set, so the index is embedded.")
    _run("-C", str(root), "sync")
    _say("3. Watch it, and save an edit as an editor does.")
    _watch_an_edit(root)
    _say("4. Print the system prompt of a task session, assembled from the files.")
    _run("-C", str(root), "prompt", "--session", "task")
    _say("5. Write a page as an agent does, and find it.")
    _run("-C", str(root), "create", "Winter timetable", "--content", _PAGE, "--session", "task:scribe")
    _run("-C", str(root), "search", "ferry ice", "--json")
    _say(f"The notebook is in {root}. Next: {PROGRAM} -C {shlex.quote(str(root))} status")


def _watch_an_edit(root: Path) -> None:
    rules = root / "runtime" / "external-communications.md"
    with _watching(root) as lines:
        _until(lines, "ready")
        print(f"   {rules.relative_to(root)} gets the line: {_NEW_RULE.strip()}", flush=True)
        rules.write_text(rules.read_text(encoding="utf-8") + _NEW_RULE, encoding="utf-8")
        _until(lines, "batch")


@contextmanager
def _watching(root: Path) -> Iterator[Iterator[str]]:
    """The lines that `watch --json` prints; it is stopped at the end of the block."""
    arguments = ("-C", str(root), "watch", "--json")
    _show(arguments)
    with subprocess.Popen((*_COMMAND, *arguments), stdout=subprocess.PIPE, text=True, env=_environment()) as process:
        try:
            yield iter(process.stdout or ())
        finally:
            process.terminate()


def _until(lines: Iterator[str], event: str) -> None:
    """Print lines up to the first of this event. Raises NotebookError where it does not come."""
    for line in lines:
        print(f"   {line.strip()}", flush=True)
        if json.loads(line)["event"] == event:
            return
    raise NotebookError(f"watch ended before the event {event!r}", next=f"run {PROGRAM} doctor")


def _run(*arguments: str) -> None:
    _show(arguments)
    done = subprocess.run((*_COMMAND, *arguments), env=_environment(), check=False)
    if done.returncode:
        raise NotebookError(f"that command ended with {done.returncode}", next=f"run {PROGRAM} doctor")


def _environment() -> dict[str, str]:
    """Without servers: the demonstration touches nobody's database."""
    path = os.pathsep.join(each for each in sys.path if each)
    hidden = ("MONGODB_URL", "REDIS_URL", "NOTEBOOK_SESSION")
    return {**{name: value for name, value in os.environ.items() if name not in hidden}, "PYTHONPATH": path}


def _show(arguments: tuple[str, ...]) -> None:
    print(f"\n$ {PROGRAM} {shlex.join(arguments)}", flush=True)


def _say(text: str) -> None:
    print(f"\n── {text}", flush=True)
