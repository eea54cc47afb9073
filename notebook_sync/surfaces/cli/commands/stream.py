"""The commands of the daily stream, and of going back in time."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Callable, Mapping

from notebook_sync.errors import UsageError
from notebook_sync.surfaces.cli.addressed import program
from notebook_sync.surfaces.cli.answers import (
    complain,
    listed,
    moment_given,
    opened,
    session_of,
    show,
    tags_wanted,
    terminal_width,
    text_given,
)
from notebook_sync.surfaces.cli.next_steps import keeping, next_steps
from notebook_sync.surfaces.cli.text import stream as text


def _log(arguments: Namespace) -> int:
    content = text_given(arguments.text, None, "TEXT") or ""
    with next_steps(arguments), opened(arguments) as notebook:
        entry = notebook.log(
            content,
            session_of(arguments),
            tags=listed(arguments.tags or ""),
            score=arguments.score,
            keep=arguments.keep,
        )
        zone = notebook.settings.timezone
    show(arguments, entry, lambda told: text.of_entry(told, zone, keep=arguments.keep))
    return 0


def _today(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        day = notebook.today(session_of(arguments), arguments.day, arguments.limit)
        zone = notebook.settings.timezone
    show(arguments, day.as_dict(), lambda told: text.of_day(told, zone, terminal_width()))
    if day.lost:
        complain(day.lost)
    if day.earlier:
        complain(f"{day.earlier:,} earlier entries are left out; for more of them: --limit N")
    elif not day.entries:
        complain(f"nothing is told of {day.day}; a line is put there with: notebook-sync log TEXT")
    return 0


def _recall(arguments: Namespace) -> int:
    if not arguments.query.strip():
        raise UsageError("say what to recall, as in: notebook-sync recall 'pier 3'; all of a day is shown by `today`")
    with next_steps(arguments), opened(arguments) as notebook:
        recalled = notebook.recall(
            arguments.query,
            session_of(arguments),
            tags=tags_wanted(arguments),
            since=moment_given(arguments.since, notebook),
            limit=arguments.limit,
        )
        zone = notebook.settings.timezone
    show(arguments, recalled, lambda told: text.of_entries(told["results"], zone, terminal_width()))
    if recalled["partial"]:
        complain(recalled["partial"])
    if not recalled["results"]:
        complain(
            "nothing recalled; what notes say is searched with: notebook-sync search; "
            "what became of notes that are gone is told day by day: notebook-sync today DAY"
        )
    return 0


def _checkpoint(arguments: Namespace) -> int:
    if arguments.list and arguments.name:
        raise UsageError("a name is for a new checkpoint; --list takes none")
    with next_steps(arguments), opened(arguments) as notebook:
        session = session_of(arguments)
        zone = notebook.settings.timezone
        if arguments.list:
            checkpoints = [one.as_dict() for one in notebook.checkpoints(session)]
            show(arguments, checkpoints, lambda told: text.of_checkpoints(told, zone, terminal_width()))
            if lost := notebook.checkpoints_lost(session):
                complain(lost)
            if not checkpoints:
                complain("no checkpoints; one is made with: notebook-sync checkpoint NAME")
            return 0
        made = notebook.checkpoint(session, arguments.name)
    show(arguments, made.as_dict(), lambda told: text.of_checkpoint(told, _going_back(arguments)))
    return 0


def _rollback(arguments: Namespace) -> int:
    with next_steps(arguments), opened(arguments) as notebook:
        rolled = notebook.rollback(arguments.id, session_of(arguments), files=arguments.files)
        kept = keeping(notebook, rolled.commit, *rolled.restored)
    going_back = _going_back(arguments, files=arguments.files)
    show(arguments, rolled.as_dict(), lambda told: text.of_rollback(told, kept, going_back))
    return 0


def _going_back(arguments: Namespace, *, files: bool = False) -> Callable[[str], str]:
    """The command that goes back to a checkpoint, in the session of this one."""
    who = f" --session {shlex.quote(arguments.session)}" if arguments.session else ""
    return lambda checkpoint: f"{program()} rollback {checkpoint}{' --files' if files else ''}{who}"


STREAM: Mapping[str, Callable[[Namespace], int]] = {
    "log": _log,
    "today": _today,
    "recall": _recall,
    "checkpoint": _checkpoint,
    "rollback": _rollback,
}
