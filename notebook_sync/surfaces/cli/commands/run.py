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
from notebook_sync.surfaces.cli.addressed import program
from notebook_sync.surfaces.cli.answers import (
    as_json,
    complain,
    opened,
    root_of,
    session_of,
    show,
    shown_as_it_is,
)
from notebook_sync.surfaces.cli.commands.archive import ARCHIVE
from notebook_sync.surfaces.cli.commands.channels import note
from notebook_sync.surfaces.cli.commands.editing import EDITING
from notebook_sync.surfaces.cli.commands.finding import FINDING
from notebook_sync.surfaces.cli.commands.operations import run as operation
from notebook_sync.surfaces.cli.commands.pages import MAKING
from notebook_sync.surfaces.cli.commands.stream import STREAM
from notebook_sync.surfaces.cli.progress import progress
from notebook_sync.surfaces.cli.text import notebook as text

if TYPE_CHECKING:
    from notebook_sync.sync.report import Report
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


def _sync(arguments: Namespace) -> int:
    with opened(arguments) as notebook, progress("sync") as told:
        report = notebook.sync(allow_empty=arguments.allow_empty, progress=told)
    return _tell_report(arguments, report)


def _rebuild(arguments: Namespace) -> int:
    with opened(arguments) as notebook, progress("rebuild") as told:
        report = notebook.rebuild(progress=told)
    return _tell_report(arguments, report)


def _tell_report(arguments: Namespace, report: Report) -> int:
    show(arguments, report.as_dict(), text.of_report)
    if report.refs_trouble:
        complain(f"the mirror is up to date, the refs are not: {report.refs_trouble}")
    if report.facts_trouble:
        complain(f"the mirror is up to date, what is known of facts is not: {report.facts_trouble}")
    if report.refs_trouble or report.facts_trouble:
        return _DOWN
    return _FAILED if report.failed else 0


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


def _status(arguments: Namespace) -> int:
    with opened(arguments) as notebook:
        status = notebook.status()
    show(arguments, status, lambda told: text.of_status(told, program()))
    return 0 if status["mirror"]["ok"] and status["refs"]["ok"] else _DOWN


def _verify(arguments: Namespace) -> int:
    with opened(arguments) as notebook, progress("verify") as told:
        verdict = notebook.verify(repair=arguments.repair, progress=told)
    show(arguments, verdict.as_dict(), lambda told: text.of_verdict(told, program()))
    return 0 if verdict.consistent else _FAILED


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


def _config(arguments: Namespace) -> int:
    with opened(arguments) as notebook:
        resolved = notebook.resolved_settings()
    show(arguments, resolved, text.of_settings)
    return 0


def _mcp(arguments: Namespace) -> int:
    from notebook_sync.surfaces.cli.commands import mcp as cli_mcp

    session = cli_mcp.session_of(arguments.session, arguments.agent, os.environ)
    with opened(arguments) as notebook:
        return cli_mcp.serve(notebook, session)


def _serve(arguments: Namespace) -> int:
    from notebook_sync.surfaces.cli.commands import (
        serving as cli_serving,  # logs and secrets, which no other command needs
    )

    return cli_serving.serve(arguments)


def _token(arguments: Namespace) -> int:
    from notebook_sync.surfaces.cli.commands import serving as cli_serving

    return cli_serving.token(arguments)


RUN: Mapping[str, Callable[[Namespace], int]] = {
    "init": _init,
    "demo": _demo,
    "sync": _sync,
    "watch": _watch,
    "status": _status,
    "verify": _verify,
    "rebuild": _rebuild,
    "read": _read,
    **FINDING,
    **MAKING,
    **EDITING,
    "note": note,
    **STREAM,
    **ARCHIVE,
    "doctor": _doctor,
    "config": _config,
    "mcp": _mcp,
    "serve": _serve,
    "token": _token,
}


def run_command(arguments: Namespace) -> int:
    """Run the command that was parsed; the exit code. What is not wired by hand is an operation."""
    return RUN.get(arguments.command, operation)(arguments)
