"""What a person may do next on a command line: after a change, and after a refusal."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from notebook_sync.errors import Conflict, GitFailed, NotPermitted, OverCap
from notebook_sync.notebook import Notebook
from notebook_sync.surfaces.cli.addressed import program
from notebook_sync.surfaces.cli.text import editing as text

_MOST_ENTRIES = 20
_HOW_AN_OWNER_SAYS_SO = (
    "nobody said who asks, and standard input is no terminal, so this ran as a task; "
    "an owner says so with --session owner (this gate protects tools, not the shell)"
)


@contextmanager
def next_steps(arguments: Namespace) -> Iterator[None]:
    """Add to a refusal what can be done about it on a command line."""
    try:
        yield
    except NotPermitted as refusal:
        # Whoever set the session has decided; only a guess is worth a word on how to decide otherwise.
        if not (getattr(arguments, "session", None) or os.environ.get("NOTEBOOK_SESSION")):
            refusal.add_note(_HOW_AN_OWNER_SAYS_SO)
        raise
    except Conflict as conflict:
        if conflict.current:
            path = shlex.quote(conflict.path)
            conflict.add_note(f"it has the digest {conflict.current} now; see: {program()} read {path}")
            if arguments.command in ("edit", "update"):
                conflict.add_note(f"then repeat the {arguments.command} with --expected-digest {conflict.current}")
            elif arguments.command == "rename" and not conflict.base:
                conflict.add_note("nothing was renamed; choose another path")
        raise
    except OverCap as over:
        over.add_note("--allow-over-cap permits it; these are its entries:")
        for entry in over.entries[:_MOST_ENTRIES]:
            over.add_note(f"- {entry}")
        if len(over.entries) > _MOST_ENTRIES:
            over.add_note(f"… and {len(over.entries) - _MOST_ENTRIES:,} more")
        raise


def undo_of(arguments: Namespace, *, made: bool = False) -> Callable[[str], str]:
    """The command that takes back an edit of a path, or what `made` it, in the session that it was made in."""
    command = "delete" if made else "undo"
    return lambda path: f"{program()} {command} {shlex.quote(path)}{who_of(arguments)}"


def rename_back_of(arguments: Namespace) -> Callable[[str, str], str]:
    """As `undo_of`, for a note that was at the second path and is at the first."""
    start = f"{program()} rename"
    return lambda now, was: f"{start} {shlex.quote(now)} {shlex.quote(was)}{who_of(arguments)}"


def who_of(arguments: Namespace) -> str:
    """The session that was named, as the end of a command."""
    named = getattr(arguments, "session", None)
    return f" --session {shlex.quote(named)}" if named else ""


def keeping(notebook: Notebook, commit: str | None, *paths: str) -> str:
    """The commit of what these notes say, in words: its beginning, or why there is none."""
    from notebook_sync.files.commits import why_no_commit

    if commit:
        return text.short(commit)
    if notebook.settings.git.commit == "off":
        return "none: git.commit is off in notebook.toml"
    try:
        return f"none: {why_no_commit(notebook.root, paths)}"
    except (GitFailed, OSError) as failure:
        return f"none: git failed: {failure}"
