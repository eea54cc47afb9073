"""What each command does: open the notebook, call one method, print the answer, choose the exit code."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import BackendDown
from notebook_sync.notebook import Notebook
from notebook_sync.notes import places
from notebook_sync.surfaces.cli.answers import (
    as_json,
    opened,
    root_of,
    session_of,
    show,
    shown_as_it_is,
)
from notebook_sync.surfaces.cli.commands.archive import ARCHIVE
from notebook_sync.surfaces.cli.commands.editing import EDITING
from notebook_sync.surfaces.cli.commands.finding import FINDING
from notebook_sync.surfaces.cli.commands.operations import run as operation
from notebook_sync.surfaces.cli.commands.pages import MAKING
from notebook_sync.surfaces.cli.text import notebook as text

if TYPE_CHECKING:
    from notebook_sync.sync.watch import Watch

_FAILED = 1
_DOWN = BackendDown.exit_code


def _init(arguments: Namespace) -> int:
    made = Notebook.init(arguments.dir, git=not arguments.no_git, brain=arguments.brain)
    show(arguments, made.as_dict(), text.of_init)
    return 0


def _demo(arguments: Namespace) -> int:
    from notebook_sync.surfaces.cli.demo import show  # starts other processes; no other command needs it

    return show(Path(arguments.dir) if arguments.dir else None)


class _Stopped(BaseException):
    """Asked to stop before the watch was ready. No `Exception`, so that nothing on the way takes it for trouble."""


def _watch(arguments: Namespace) -> int:
    from notebook_sync.surfaces.beside.embedding_process import (
        EmbeddingProcess,  # starts processes, as no other command does
    )
    from notebook_sync.surfaces.beside.prefetching_process import prefetching

    with opened(arguments) as notebook:
        watch: Watch | None = None
        is_ready = False
        is_embedding = notebook.settings.search.embeddings != "off"

        def stop(number: int, _: object) -> None:
            signal.signal(number, before[number])  # asked twice, it ends at once
            if watch is not None:
                watch.stop()
            if not is_ready:
                raise _Stopped  # the first reconcile may take long, and may be broken off anywhere

        before: dict[int, Any] = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            prompts = notebook.prompts.prompt_changes()
            watch = notebook.watch()
            beside = EmbeddingProcess(notebook.root) if is_embedding else nullcontext()
            with beside as embedding, prefetching(notebook) as saved:
                for event in watch.events():
                    told = text.event_as_dict(event)
                    is_ready = is_ready or told["event"] == "ready"
                    _tell_event(arguments, told)
                    if changed := prompts.after(set(told.get("paths", ()))):
                        _tell_event(arguments, changed.as_dict())
                    if embedding is not None and told["event"] in ("ready", "batch"):
                        embedding.changed()
                    if told["event"] == "batch":
                        saved(told["paths"])
        except _Stopped:
            pass
        finally:
            for number, previous in before.items():
                signal.signal(number, previous)
    return 0


def _tell_event(arguments: Namespace, told: Mapping[str, Any]) -> None:
    print(as_json(told) if arguments.json else text.of_event(told), flush=True)


_NOTHING_LEFT_OUT = "nothing is left out here: the prompt shows all of it"


def _read(arguments: Namespace) -> int:
    with opened(arguments) as notebook:
        if arguments.omitted:
            omitted = notebook.prompts.omitted(arguments.id, session_of(arguments), section=arguments.section or "")
            show(arguments, asdict(omitted), lambda left: shown_as_it_is(left["text"] or _NOTHING_LEFT_OUT))
            return 0
        document, named = places.found(notebook.read, arguments.id)
        wanted = arguments.section or named
        section = notebook.section(document, wanted) if wanted else None
        if document["stale"]:
            sys.stderr.write(f"notebook-sync: {document['path']} is shown as it was; its file: {document['stale']}\n")
    show(arguments, section or document, lambda found: shown_as_it_is(found["content"]))
    return 0


def _doctor(arguments: Namespace) -> int:
    from notebook_sync.doctor import examine

    checks = examine(root_of(arguments))
    show(arguments, [check.as_dict() for check in checks], text.of_checks)
    if any(check.is_backend and not check.ok for check in checks):
        return _DOWN
    return 0 if all(check.ok for check in checks) else _FAILED


def _mcp(arguments: Namespace) -> int:
    from notebook_sync.surfaces.cli.commands import mcp as cli_mcp

    session = cli_mcp.session_of(arguments.session, arguments.agent, os.environ)
    with opened(arguments) as notebook:
        return cli_mcp.serve(notebook, session)


def _serve(arguments: Namespace) -> int:
    import gc
    import logging  # no other command logs

    gc.disable()  # to look for garbage among what an import makes takes an eighth of the time, and there is hardly any
    from notebook_sync.surfaces.serving import serve as serving  # it takes a second, and no other command needs it

    gc.enable()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("notebook_sync").setLevel(logging.INFO)
    with opened(arguments) as notebook:
        settings = notebook.settings.server
        serving.serve(
            notebook,
            host=arguments.host or settings.host,
            port=settings.port if arguments.port is None else arguments.port,
            watch=not arguments.no_watch,
            say=lambda line: print(line, flush=True),
        )
    serving.leave()
    return 0


RUN: Mapping[str, Callable[[Namespace], int]] = {
    "init": _init,
    "demo": _demo,
    "watch": _watch,
    "read": _read,
    **FINDING,
    **MAKING,
    **EDITING,
    **ARCHIVE,
    "doctor": _doctor,
    "mcp": _mcp,
    "serve": _serve,
}


def run_command(arguments: Namespace) -> int:
    """Run the command that was parsed; the exit code. What is not wired by hand is an operation."""
    return RUN.get(arguments.command, operation)(arguments)
