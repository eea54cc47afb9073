"""The main job in a temporary notebook. Every step is a command that the reader can type afterwards."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.surfaces.cli.index import PROGRAM

# -P: a file in the reader's folder must not pass for a module.
_COMMAND = (sys.executable, "-P", "-m", "notebook_sync")
_FILES = {
    "external-communications.md": """## Permanent Rules

- **Odile Marchetti** (odile@ferry.example): always respond, within the hour
- **Harbour office** (+00 555 0142): draft only

## Temporary Instructions

""",
    "standing-orders.md": """## Communication Style

- Write dates the way the timetable does: 6 May, 17:30

## Boundaries
<!-- pin -->

- Never promise a berth before the harbour office has confirmed it
""",
    "reminders.md": """## Today

- [ ] Return the borrowed sextant to Odile

## Recurring

- Every Thursday: Wind the tower clock
""",
}
_NEW_RULE = "- **Mira Holt** (mira@lighthouse.example): observe only [until 2199-12-31]\n"
_PAGE = "The ferry leaves the harbour at nine. In winter it leaves at ten, unless there is ice."


def play(folder: Path | None) -> None:
    """Play the demonstration in `folder`, or in a temporary one, and leave it there. Raises UsageError."""
    root = folder if folder is not None else Path(tempfile.mkdtemp(prefix="notebook-demo-")) / "notebook"
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} is not an empty folder", next="name a new one")
    _run("1. Create a notebook.", "init", str(root))
    for name, text in _FILES.items():
        (root / "runtime" / name).write_text(text, encoding="utf-8")
    place = ("-C", str(root))
    _run("2. Give it rules, and sync it. No server is set, so the index is embedded.", *place, "sync")
    with (root / "runtime/external-communications.md").open("a", encoding="utf-8") as rules:
        rules.write(_NEW_RULE)
    _run(f"3. Add a rule, as an editor does: {_NEW_RULE.strip()}", *place, "sync")
    task = ("prompt", "--session", "task")
    _run("4. Print the system prompt of a task session, assembled from the files.", *place, *task)
    page = ("create", "Winter timetable", "--content", _PAGE, "--session", "task:scribe")
    _run("5. Write a page as an agent does, and find it.", *place, *page)
    _run("", *place, "search", "ferry ice", "--json")
    print(f"\n── The notebook is in {root}. Next: {PROGRAM} -C {shlex.quote(str(root))} status")


def _run(title: str, *arguments: str) -> None:
    """Show a command and what it prints. Without servers: the demonstration touches nobody's database."""
    print(f"\n── {title}" if title else "", f"$ {PROGRAM} {shlex.join(arguments)}", sep="\n", flush=True)
    hidden = ("MONGODB_URL", "REDIS_URL", "NOTEBOOK_SESSION")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    path = os.pathsep.join(each for each in sys.path if each)
    done = subprocess.run((*_COMMAND, *arguments), env={**environment, "PYTHONPATH": path}, check=False)
    if done.returncode:
        raise NotebookError(f"that command ended with {done.returncode}", next=f"run {PROGRAM} doctor")
