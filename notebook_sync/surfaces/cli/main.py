"""The command line: arguments in, one call, an exit code out. The one place that words errors for a terminal.

An error that nobody foresaw is not caught: its traceback is what helps.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import sys
from collections.abc import Collection, Sequence

from notebook_sync import __version__
from notebook_sync.errors import LONGEST_NAME, NotebookError, UsageError, did_you_mean
from notebook_sync.surfaces.cli.index import ALIASES, NAMES, PROGRAM, module_of, overview

_PIPE_CLOSED, _TERMINATED = 141, 143
_WITH_VALUE = ("--session", "--agent", "--limit", "-n", "--log-level")
# Groups of commands whose own names are no commands.
_GROUPS = ("note", "token", "stream", "checkpoint", "fact", "conversation", "memory", "context")
# An agent program would take its failure for a reason to stop.
_NEVER_FAILS = "context hook"


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    if sys.stdout is None:  # closed by the caller, as in `notebook-sync sync >&-`
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if os.getpid() == 1:
        import signal  # few processes are the first one of a container, which gets only signals that it handles

        signal.signal(signal.SIGTERM, lambda *_: os._exit(_TERMINATED))
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
    folder: str | None = None
    end = argv.index("--") if "--" in argv else len(argv)
    words, rest, before = iter(argv[:end]), list[str](), list[str]()
    for word in words:
        if word.startswith("-C"):
            given = word[2:] or next(words, None)
            if given is None:
                raise UsageError("-C needs a folder")
            folder = folder or given
        elif rest or not word.startswith("-") or word in ("-h", "--help", "--version"):
            rest.append(word)
        else:
            before += [word, *([next(words, "")] if word in _WITH_VALUE else [])]
    command = [ALIASES.get(word, word) for word in rest[:1]]
    return folder, [*command, *rest[1:], *before, *argv[end:]]


def _dispatch(argv: list[str]) -> int:
    folder, words = arranged(argv)
    if words[:1] == ["--version"]:
        print(f"{PROGRAM} {__version__}")
        return 0
    if words[:1] == ["help"]:
        words = [*(ALIASES.get(each, each) for each in words[1:]), "--help"]
    if not words or words[0] in ("-h", "--help", "-q", "-v"):
        print(overview())
        return 0
    command, rest = words[0], words[1:]
    if command not in NAMES:
        raise _unknown(command, NAMES)
    from notebook_sync.registry import OPERATIONS  # what --version and --help need not load
    from notebook_sync.surfaces.cli import commands

    if " ".join(words[:2]) == _NEVER_FAILS:
        try:
            return commands.run_by_hand(_NEVER_FAILS, folder, words[2:])
        except NotebookError as error:
            fail(error, as_json=False)
            return 0
    if not module_of(command) and command not in _GROUPS:
        return commands.run_by_hand(command, folder, rest)
    if module := module_of(command):
        importlib.import_module(module if "." in module else f"notebook_sync.services.{module}")
    if command in _GROUPS:
        every = {**OPERATIONS, **commands.BY_HAND}
        members = {words: each for words, each in every.items() if words.startswith(f"{command} ")}
        if not rest or rest[0] in ("-h", "--help"):
            print("\n".join(f"{PROGRAM} {words:<16} {each.summary}" for words, each in members.items()))
            return 0
        command, rest = f"{command} {rest[0]}", rest[1:]
        if command not in members:
            raise _unknown(command, members)
    return commands.run_operation(OPERATIONS[command], folder, rest)


def _unknown(name: str, known: Collection[str]) -> UsageError:
    advice = did_you_mean(name, known, f"see {PROGRAM} --help")
    return UsageError(f"there is no command {name[:LONGEST_NAME]!r}", next=advice)


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
