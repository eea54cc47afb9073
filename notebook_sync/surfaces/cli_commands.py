"""What each command does: open the notebook, call one method, print the answer, choose the exit code."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from notebook_sync.errors import BackendDown
from notebook_sync.notebook import Notebook
from notebook_sync.sessions import OWNER, Session
from notebook_sync.surfaces import cli_serving, places
from notebook_sync.surfaces import cli_text as text
from notebook_sync.surfaces.cli_answers import (
    as_json,
    complain,
    opened,
    opened_for_prompt,
    root_of,
    session_of,
    show,
    text_given,
)
from notebook_sync.surfaces.cli_archive import ARCHIVE
from notebook_sync.surfaces.cli_channels import note
from notebook_sync.surfaces.cli_editing import EDITING
from notebook_sync.surfaces.cli_finding import FINDING
from notebook_sync.surfaces.cli_pages import MAKING
from notebook_sync.surfaces.cli_progress import progress
from notebook_sync.surfaces.cli_stream import STREAM

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
    from notebook_sync.surfaces.demo import show  # starts other processes; no other command needs it

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
        return _DOWN
    return _FAILED if report.failed else 0


class _Stopped(BaseException):
    """Asked to stop before the watch was ready. No `Exception`, so that nothing on the way takes it for trouble."""


def _watch(arguments: Namespace) -> int:
    with opened(arguments) as notebook:
        watch: Watch | None = None
        is_ready = False

        def stop(number: int, _: object) -> None:
            signal.signal(number, before[number])  # asked twice, it ends at once
            if watch is not None:
                watch.stop()
            if not is_ready:
                raise _Stopped  # the first reconcile may take long, and may be broken off anywhere

        before: dict[int, Any] = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            prompts = notebook.prompt_changes()
            watch = notebook.watch()
            for event in watch.events():
                told = text.event_as_dict(event)
                is_ready = is_ready or told["event"] == "ready"
                _tell_event(arguments, told)
                if changed := prompts.after(set(told.get("paths", ()))):
                    _tell_event(arguments, changed.as_dict())
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
    show(arguments, status, text.of_status)
    return 0 if status["mirror"]["ok"] and status["refs"]["ok"] else _DOWN


def _verify(arguments: Namespace) -> int:
    with opened(arguments) as notebook, progress("verify") as told:
        verdict = notebook.verify(repair=arguments.repair, progress=told)
    show(arguments, verdict.as_dict(), text.of_verdict)
    return 0 if verdict.consistent else _FAILED


def _check(arguments: Namespace) -> int:
    with opened(arguments) as notebook:
        findings = notebook.check()
    show(arguments, findings, text.of_findings)
    return _FAILED if any(finding["severity"] == "error" for finding in findings) else 0


def _read(arguments: Namespace) -> int:
    with opened(arguments) as notebook:
        document, section = places.found(notebook, arguments.id, arguments.section or "", OWNER)
        if document["stale"]:
            sys.stderr.write(f"notebook-sync: {document['path']} is shown as it was; its file: {document['stale']}\n")
    show(arguments, section or document, text.of_note)
    return 0


def _prompt(arguments: Namespace) -> int:
    with opened_for_prompt(arguments) as notebook:
        include = [part.strip() for part in (arguments.include or "").split(",") if part.strip()]
        task = text_given(arguments.task, arguments.task_file, "--task") or ""
        prompt = notebook.prompt(session_of(arguments), max_tokens=arguments.max_tokens, include=include, task=task)
    for problem in prompt.problems:
        complain(problem)
    show(arguments, prompt.as_json(), lambda _: prompt.text.rstrip("\n"))
    return 0


def _explain(arguments: Namespace) -> int:
    with opened(arguments) as notebook:
        # Whoever has a shell here has the files: --session says whose prompt it is about, and hides nothing.
        found = notebook.explain(arguments.text, session_of(arguments), asking=Session.owner())
    show(arguments, {"found": [asdict(place) for place in found]}, text.of_explanation)
    return 0 if found else _FAILED


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
    from notebook_sync.surfaces import cli_mcp

    session = cli_mcp.session_of(arguments.session, arguments.agent, os.environ)
    with opened(arguments) as notebook:
        return cli_mcp.serve(notebook, session)


RUN: Mapping[str, Callable[[Namespace], int]] = {
    "init": _init,
    "demo": _demo,
    "sync": _sync,
    "watch": _watch,
    "status": _status,
    "verify": _verify,
    "rebuild": _rebuild,
    "check": _check,
    "read": _read,
    **FINDING,
    "prompt": _prompt,
    "explain": _explain,
    **MAKING,
    **EDITING,
    "note": note,
    **STREAM,
    **ARCHIVE,
    "doctor": _doctor,
    "config": _config,
    "mcp": _mcp,
    "serve": cli_serving.serve,
    "token": cli_serving.token,
}
