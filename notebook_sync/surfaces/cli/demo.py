"""The main job in one go, in a folder of its own: make a notebook, sync it, see an edit arrive, read the prompt, find.

Every step is a command that a reader can type after it; nothing here takes a way that a user has not got.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.own_process import own_environment

# -P: else a file of the folder that the reader stands in could pass for a module.
_PROGRAM = (sys.executable, "-P", "-m", "notebook_sync")
_RULE = "- **Mira Holt** (mira@lighthouse.example): draft only [until 2199-12-31]\n"
_PAGE = "The ferry leaves the harbour at nine."
_QUESTION = "boat departure"
_HEADING = "## Temporary Instructions\n\n"


def show(folder: Path | None) -> int:
    """Play the demonstration in `folder`, or in a new temporary one, and leave it there to be looked at."""
    root = folder if folder is not None else Path(tempfile.mkdtemp(prefix="notebook-demo-")) / "notebook"
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; name a new or an empty one")
    if folder is not None and folder.exists() and any(folder.iterdir()):
        raise NotebookError(f"{folder} is not empty; the demonstration wants a folder of its own")
    _say("1. Make a notebook from the templates.")
    _run("init", str(root))
    _say("2. Mirror it: into the embedded store, as no server is set.")
    _run("-C", str(root), "sync")
    _say("3. Watch it, and save an edit as any editor would.")
    _watch_an_edit(root)
    _say("4. The system prompt that an agent's own session gets.")
    _run("-C", str(root), "prompt", "--session", "task")
    _say("5. A note is found by what it means, too: no word of the question stands in it.")
    _run("-C", str(root), "create", "pages", "--title", "Winter timetable", "--content", _PAGE)
    _run("-C", str(root), "search", _QUESTION, "--mode", "keyword")
    _run("-C", str(root), "search", _QUESTION, "--limit", "1", "--snippet")
    _say(f"The notebook stays in {root}; try: notebook-sync -C {root} status")
    return 0


def _watch_an_edit(root: Path) -> None:
    rules = root / "runtime" / "external-communications.md"
    with _watching(root) as events:
        _until(events, "ready")
        text = rules.read_text(encoding="utf-8")
        print(f"   {rules.relative_to(root)} gets the line:  {_RULE.strip()}")
        rules.write_text(text.replace(_HEADING, _HEADING + _RULE, 1), encoding="utf-8")
        saved = time.monotonic()
        _until(events, "batch")
        print(f"   {1000 * (time.monotonic() - saved):.0f} ms after the save it is in the mirror and in hot memory")


@contextmanager
def _watching(root: Path) -> Iterator[Iterator[str]]:
    """The lines that `notebook-sync watch --json` prints; the watch ends with the block."""
    arguments = ("-C", str(root), "watch", "--json")
    _tell(arguments)
    with subprocess.Popen((*_PROGRAM, *arguments), stdout=subprocess.PIPE, text=True, env=_environment()) as process:
        try:
            yield _lines(process)
        finally:
            process.terminate()


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    yield from process.stdout or ()


def _until(lines: Iterator[str], event: str) -> None:
    """Print lines up to the first that tells of `event`."""
    for line in lines:
        print(f"   {line.strip()}", flush=True)
        if json.loads(line)["event"] == event:
            return
    raise NotebookError(f"the watch ended without telling {event!r}; run: notebook-sync doctor")


def _run(*arguments: str) -> None:
    _tell(arguments)
    done = subprocess.run((*_PROGRAM, *arguments), env=_environment(), check=False)
    if done.returncode:
        raise NotebookError(f"that command ended with {done.returncode}; run: notebook-sync doctor")


def _environment() -> dict[str, str]:
    """Without servers: the demonstration shows what works on a fresh machine, and touches nobody's database."""
    return {name: value for name, value in own_environment().items() if name not in {"MONGODB_URL", "REDIS_URL"}}


def _tell(arguments: tuple[str, ...]) -> None:
    print(f"\n$ notebook-sync {shlex.join(arguments)}", flush=True)


def _say(text: str) -> None:
    print(f"\n── {text}", flush=True)
