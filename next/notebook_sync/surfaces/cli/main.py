"""The command line: arguments in, one call, an exit code out. The one place that words errors for a terminal.

An error that nobody foresaw is not caught: its traceback is what helps.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence

from notebook_sync import __version__
from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.surfaces.cli.index import ALIASES, COMMANDS, NAMES, PROGRAM, module_of, overview

_PIPE_CLOSED = 141
_WITH_VALUE = ("--session", "--agent", "--limit", "-n", "--log-level")
# Groups of commands whose own names are no commands.
_GROUPS = ("token",)


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    if sys.stdout is None:  # closed by the caller, as in `notebook-sync sync >&-`
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    as_json = "--json" in argv
    try:
        code = _dispatch(list(argv))
        sys.stdout.flush()
    except NotebookError as error:
        return fail(error, as_json=as_json)
    except BrokenPipeError:
        _drop_output()  # else Python complains at exit
        return _PIPE_CLOSED
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        _drop_output()
        return fail(NotebookError("the output could not be written: no space left"), as_json=False)
    except SystemExit as done:  # argparse's way to end --help
        return int(done.code or 0)
    return code


def fail(error: NotebookError, *, as_json: bool) -> int:
    """Print an error and return its exit code."""
    sys.stdout.flush()
    if as_json:
        import json

        print(json.dumps(error.as_json(), default=str, ensure_ascii=False), flush=True)
        return error.exit_code
    from notebook_sync.surfaces.cli.render import safe

    lines = [f"{PROGRAM}: {error.message}", *([f"  next: {error.next}"] if error.next else [])]
    for line in "\n".join(lines).split("\n"):
        sys.stderr.write(f"{safe(line)}\n")
    return error.exit_code


def arranged(argv: Sequence[str]) -> tuple[str | None, list[str]]:
    """The folder of -C, and the words with the command first: options that came before it follow it."""
    words, folder = list(argv), None
    end = words.index("--") if "--" in words else len(words)
    for place in reversed([place for place in range(end) if words[place].startswith("-C")]):
        joined = words[place][2:]
        if not joined and place + 1 >= len(words):
            raise UsageError("-C needs a folder")
        folder = joined or words[place + 1]
        del words[place : place + (1 if joined else 2)]
    early = 0
    while (
        early < len(words) and words[early].startswith("-") and words[early] not in ("-h", "--help", "--version", "--")
    ):
        early += 1 + (words[early] in _WITH_VALUE)
    before, rest = words[:early], words[early:]
    if not rest:
        return folder, before
    end = rest.index("--") if "--" in rest else len(rest)
    return folder, [ALIASES.get(rest[0], rest[0]), *rest[1:end], *before, *rest[end:]]


def _dispatch(argv: list[str]) -> int:
    folder, words = arranged(argv)
    _set_verbosity(words)
    if words[:1] == ["--version"]:
        print(f"{PROGRAM} {__version__}")
        return 0
    if words[:1] == ["help"]:
        words = [*(ALIASES.get(each, each) for each in words[1:]), "--help"]
    if not words or words[0] in ("-h", "--help"):
        print(overview())
        return 0
    command, rest = words[0], words[1:]
    if command not in NAMES:
        raise _unknown(command, NAMES)
    if not module_of(command):
        from notebook_sync.surfaces.cli.commands import run_by_hand

        return run_by_hand(command, folder, rest)
    return _run_operation(folder, command, rest)


def _run_operation(folder: str | None, command: str, rest: list[str]) -> int:
    import importlib

    from notebook_sync.registry import OPERATIONS

    importlib.import_module(f"notebook_sync.services.{module_of(command)}")
    if command in _GROUPS:
        known = [words.partition(" ")[2] for words in OPERATIONS if words.startswith(f"{command} ")]
        if not rest or rest[0] in ("-h", "--help"):
            return _show_group(command)
        if rest[0] not in known:
            raise _unknown(f"{command} {rest[0]}", [f"{command} {each}" for each in known])
        command, rest = f"{command} {rest[0]}", rest[1:]
    from notebook_sync.surfaces.cli.commands import run_operation

    return run_operation(OPERATIONS[command], folder, rest)


def _show_group(group: str) -> int:
    from notebook_sync.registry import OPERATIONS

    members = {words: each.summary for words, each in OPERATIONS.items() if words.startswith(f"{group} ")}
    summary = next(commands[group][1] for _, commands in COMMANDS if group in commands)
    print(f"{summary}\n")
    for words, about in members.items():
        print(f"  {PROGRAM} {words:<16} {about}")
    return 0


def _unknown(name: str, known: Sequence[str]) -> UsageError:
    from difflib import get_close_matches  # only for a wrong call

    near = get_close_matches(name, known, n=1)
    advice = f"did you mean {near[0]}?" if near else f"see {PROGRAM} --help"
    return UsageError(f"there is no command {name!r}", next=advice)


def _set_verbosity(words: list[str]) -> None:
    """Take -q, -v and --log-level LEVEL out of the words, and set up logging where one was given."""
    levels = {"-q": "ERROR", "-v": "INFO"}
    level = ""
    end = words.index("--") if "--" in words else len(words)
    for place in reversed(range(end)):
        if words[place] in levels:
            level = levels[words.pop(place)]
        elif words[place] == "--log-level" and place + 1 < len(words):
            level = words.pop(place + 1).upper()
            words.pop(place)
    if level:
        import logging

        if level not in logging.getLevelNamesMapping():
            raise UsageError(f"there is no log level {level!r}", next="use debug, info, warning or error")
        logging.basicConfig(level=level, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
