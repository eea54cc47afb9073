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
    "runtime/external-communications.md": """## Permanent Rules

- **Odile Marchetti** (odile@ferry.example, +00 555 0101): always respond, within the hour
- **Harbour office** (+00 555 0142): draft only
- **Newsletters** (*@news.example): block

## Temporary Instructions

""",
    "runtime/standing-orders.md": """## Communication Style

- Write dates the way the timetable does: 6 May, 17:30
- Keep an answer under ten lines unless a passenger asks for more

## Boundaries
<!-- pin -->

Never do any of these:

- promise a berth before the harbour office has confirmed it
- name a passenger to another passenger
""",
    "runtime/reminders.md": """## Today

- [ ] Return the borrowed sextant to Odile

## Recurring

- Every Thursday: Wind the tower clock

## Waiting For

- Answer of the glazier about the lantern room
""",
    "pages/timetable.md": """---
tags: [timetable]
---
# Timetable

The ferry *Heron* crosses from the harbour to Saltmarsh in 35 minutes.

| leaves | days |
|---|---|
| 8:00 | every day |
| 12:30 | every day but Monday |
| 19:00 | May to October |

See [[winch]] for the days on which the ramp is closed.
""",
    "pages/winch.md": """---
tags: [ramp, repair]
status: in_progress
---
# Winch of the ramp

It needs oil in spring and autumn; the ramp is closed that morning.

- [x] order oil
- [ ] find a deckhand for 4 April
""",
    "facts/notes.md": """## Important Facts

- The ferry takes 40 passengers and 6 cars <!-- importance: 0.9 -->
- Ines has the key of the boathouse
- The fuel pump on the pier is closed on Sundays
""",
    "memories/decision/no-evening-boat.md": """---
kind: decision
domain: timetable
priority: 8
tags: [winter]
---
# No evening boat in winter

## Context

From November on, the boat at 19:00 carried two passengers a week.

## Reasoning

Fuel for one crossing costs more than twenty tickets bring in.

## Outcome

The boat at 19:00 stops from November to April.
""",
}
_NEW_RULE = "- **Mira Holt** (mira@lighthouse.example): observe only [until 2199-12-31]\n"
_BEFORE_THE_RULE = (
    ("2. Give it rules, pages, facts and a decision, and sync it. It needs no server.", "sync"),
    ("3. Find a note by what it means.", "search", "why does no boat leave in the evening?"),
)
_AFTER_THE_RULE = (
    (f"4. Add a rule, as an editor does: {_NEW_RULE.strip()}", "sync"),
    ("5. Ask what applies to somebody.", "rules", "mira@lighthouse.example"),
    ("6. Print the system prompt of a task session, assembled from the files.", "prompt", "--session", "task"),
    (
        "7. Change a page as an agent does.",
        *("update", "pages/timetable", "--append", "--content", "On 24 December the last boat leaves at 12:30."),
        *("--session", "task", "--agent", "scribe"),
    ),
    ("8. See who changed it, and take it back.", "history", "pages/timetable"),
    ("", "undo", "pages/timetable", "--session", "owner"),
)


def play(folder: Path | None) -> None:
    """Play the demonstration in `folder`, or in a temporary one, and leave it there. Raises UsageError."""
    root = folder if folder is not None else Path(tempfile.mkdtemp(prefix="notebook-demo-")) / "notebook"
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} is not an empty folder", next="name a new one")
    _run("1. Create a notebook.", "init", str(root))
    for name, text in _FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for title, *words in _BEFORE_THE_RULE:
        _run(title, "-C", str(root), *words)
    with (root / "runtime/external-communications.md").open("a", encoding="utf-8") as rules:
        rules.write(_NEW_RULE)
    for title, *words in _AFTER_THE_RULE:
        _run(title, "-C", str(root), *words)
    program = f"{PROGRAM} -C {shlex.quote(str(root))}"
    print(f"\n── The notebook is in {root}. Next: {program} status, or {program} serve for the dashboard")


def _run(title: str, *arguments: str) -> None:
    """Show a command and what it prints. Without servers: the demonstration touches nobody's database."""
    print(f"\n── {title}" if title else "", f"$ {PROGRAM} {shlex.join(arguments)}", sep="\n", flush=True)
    hidden = ("MONGODB_URL", "REDIS_URL", "NOTEBOOK_SESSION")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    path = os.pathsep.join(each for each in sys.path if each)
    done = subprocess.run((*_COMMAND, *arguments), env={**environment, "PYTHONPATH": path}, check=False)
    if done.returncode:
        raise NotebookError(f"that command ended with {done.returncode}", next=f"run {PROGRAM} doctor")
