"""Running a command: an operation, or one of those written by hand."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from notebook_sync.errors import UsageError
from notebook_sync.notebook import Notebook
from notebook_sync.registry import Operation, as_json, call
from notebook_sync.sessions import Session
from notebook_sync.surfaces.cli import render
from notebook_sync.surfaces.cli.arguments import Parser, add_common, given_in, parser_of

if TYPE_CHECKING:
    from argparse import Namespace

SESSION_VARIABLE = "NOTEBOOK_SESSION"
_LONG_SECONDS = 0.5


def run_operation(operation: Operation, folder: str | None, argv: list[str]) -> int:
    """Parse, call, print. Returns the exit code."""
    parser = parser_of(operation)
    if operation.words == "events":
        parser.add_argument("--follow", action="store_true", help="print new events until stopped")
    parsed = parser.parse(argv)
    session = session_of(parsed, asks=operation.asks)
    given = given_in(operation, parsed)
    with Notebook.find(folder or ".", adopt=operation.adopts) as notebook:
        if getattr(parsed, "follow", False):
            return _follow_events(notebook, session, parsed.json)
        unchecked: dict[str, Any] = {}
        if operation.is_confirmed and not given.get("dry_run"):
            seen = call(notebook, operation, {**given, "dry_run": True}, session, from_text=True)
            if not _is_confirmed(operation, seen, parsed):
                return 0
            unchecked["seen"] = seen
        with _progress(operation) as progress:
            if progress:
                unchecked["progress"] = progress
            result = call(notebook, operation, given, session, from_text=True, **unchecked)
    show(operation, result, as_json_text=parsed.json)
    return operation.exit_code(result)


def session_of(parsed: Namespace, *, asks: str = "owner", default: str = "") -> Session:
    """Who asks: --session, else the variable, else the owner; for what a caller answers for, the owner on a terminal
    and a task session elsewhere. `default` stands for the rest. Raises UsageError."""
    named = parsed.session or os.environ.get(SESSION_VARIABLE, "") or default
    if named:
        kind, _, agent = named.partition(":")
        return Session.named(kind, parsed.agent or agent)
    if asks == "caller" and (parsed.agent or not sys.stdin or not sys.stdin.isatty()):
        return Session.task(parsed.agent)
    return Session.owner(parsed.agent)


def show(operation: Operation, result: Any, *, as_json_text: bool) -> None:
    """Print a result, and what it lacks to standard error."""
    answer = as_json(result)
    if as_json_text:
        print(msgspec.json.encode(answer).decode())
        return
    if text := render.rendered(operation, answer):
        print(text)
    sys.stdout.flush()
    for line in render.complaints_of(answer):
        sys.stderr.write(f"notebook-sync: {render.safe(line)}\n")


@contextmanager
def _progress(operation: Operation) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal for work that lasts; None where nobody would see it."""
    if "progress" not in operation.parameters or not sys.stderr or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm  # 30 ms that short work need not pay

    with tqdm(desc=operation.words, unit=" files", leave=False, delay=_LONG_SECONDS) as bar:

        def update(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield update


def _is_confirmed(operation: Operation, seen: Any, parsed: Namespace) -> bool:
    """Show the dry run and ask. Raises UsageError where nobody can be asked."""
    if parsed.yes:
        return True
    if not sys.stdin or not sys.stdin.isatty():
        raise UsageError(
            f"{operation.words} asks before it changes something", next="run it on a terminal, or with --yes"
        )
    show(operation, seen, as_json_text=False)
    if not as_json(seen).get("results", True):
        return False
    return input("Go on? [y/N] ").strip().lower() in ("y", "yes")


def _follow_events(notebook: Notebook, session: Session, as_json_text: bool) -> int:
    for event in notebook.admin.follow_events(session):
        row = as_json(event)
        print(msgspec.json.encode(row).decode() if as_json_text else render.table([row]), flush=True)
    return 0


# ---- written by hand


def _init(folder: str | None, argv: list[str]) -> int:
    parser = Parser("init", "Create a notebook, or add the owner's files to a folder of notes")
    parser.add_argument("dir", metavar="DIR", nargs="?", default=folder or ".")
    parser.add_argument("--name", default="", help="the notebook's name")
    parser.add_argument("--no-git", action="store_true", help="make no git repository")
    parser.add_argument("--brain", metavar="FILE", default="", help="keep a block about the notebook in this file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parsed = parser.parse(argv)
    from notebook_sync.services.setup import initialize  # no other command creates a notebook

    brain = Path(parsed.brain) if parsed.brain else None
    made = initialize(Path(parsed.dir).expanduser(), name=parsed.name, git=not parsed.no_git, brain=brain)
    print(json.dumps(as_json(made)) if parsed.json else render.fields_of(as_json(made)))
    return 0


def _demo(folder: str | None, argv: list[str]) -> int:
    parser = Parser("demo", "Show the main job in a temporary notebook")
    parser.add_argument("dir", metavar="DIR", nargs="?", default=folder or "")
    parsed = parser.parse(argv)
    from notebook_sync.surfaces.cli.demo import play  # starts other commands

    return play(Path(parsed.dir) if parsed.dir else None)


def _watch(folder: str | None, argv: list[str]) -> int:
    parser = Parser("watch", "Sync every save until stopped")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parsed = parser.parse(argv)
    from notebook_sync.surfaces.background import stopped_by_signals  # loads what servers need

    stopping = threading.Event()
    with stopped_by_signals(stopping.set), Notebook.find(folder or ".", adopt=True) as notebook:
        for event in notebook.admin.watch(stop=stopping):
            row = event.as_json()
            print(msgspec.json.encode(row).decode() if parsed.json else render.of_watch(row), flush=True)
    return 0


def _mcp(folder: str | None, argv: list[str]) -> int:
    parser = Parser("mcp", "Serve MCP over standard input and output")
    parser.add_argument("--tools", default="core", metavar="SETS", help="all, or names of sets separated by commas")
    add_common(parser)
    parsed = parser.parse(argv)
    session = session_of(parsed, default="external")  # it never depends on a terminal
    with missing_extra("MCP", "mcp"):
        from notebook_sync.surfaces.mcp.stdio import serve_stdio
    with Notebook.find(folder or ".", adopt=True) as notebook:
        return serve_stdio(notebook, session, toolsets=parsed.tools)


def _serve(folder: str | None, argv: list[str]) -> int:
    parser = Parser("serve", "Serve HTTP and MCP on this machine")
    parser.add_argument("--host", default="", help="where it listens (default server.host)")
    parser.add_argument("--port", type=int, default=None, help="0 chooses a free one (default server.port)")
    parser.add_argument("--no-watch", action="store_true", help="do not follow the files")
    parsed = parser.parse(argv)
    with missing_extra("serving HTTP", "serve"):
        from notebook_sync.surfaces.http.serve import serve
    with Notebook.find(folder or ".", adopt=True) as notebook:
        return serve(notebook, host=parsed.host, port=parsed.port, watch=not parsed.no_watch)


def _connect(folder: str | None, argv: list[str]) -> int:
    from notebook_sync.surfaces.cli.connect import connect  # knows other programs' files

    return connect(folder, argv)


def _completion(folder: str | None, argv: list[str]) -> int:
    from notebook_sync.surfaces.cli.completion import script  # loads every operation

    parser = Parser("completion", "Print the completion script of a shell")
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))
    print(script(parser.parse(argv).shell))
    return 0


@contextmanager
def missing_extra(feature: str, extra: str) -> Iterator[None]:
    """Imports whose absence is an error with the line that installs them. Raises MissingExtra."""
    from notebook_sync.errors import MissingExtra

    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "notebook_sync":
            raise
        raise MissingExtra(feature, extra) from error


BY_HAND: Mapping[str, Callable[[str | None, list[str]], int]] = {
    "init": _init,
    "demo": _demo,
    "watch": _watch,
    "serve": _serve,
    "mcp": _mcp,
    "connect": _connect,
    "completion": _completion,
}
