"""The command line: arguments in, one call, an exit code out.

The one place that words errors. An error that nobody foresaw is not caught here: its traceback is what helps.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from notebook_sync import __version__
from notebook_sync.errors import NotebookError, UsageError
from notebook_sync.surfaces.cli.addressed import PROGRAM, about
from notebook_sync.surfaces.cli.reference.commands import ALIASES, COMMANDS, GROUPS
from notebook_sync.surfaces.cli.table import Command

_INTERRUPTED = 130
_PIPE_CLOSED = 141


def run(argv: Sequence[str]) -> int:
    """Run one command; the exit code is returned. Prints to standard output and standard error."""
    if sys.stdout is None:  # closed by whoever started us, as in `notebook-sync sync >&-`
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 - stands until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    argv = arranged(argv)
    try:
        code = _dispatch(argv)
        sys.stdout.flush()
        return code
    except NotebookError as error:
        return _fail(error, error.exit_code, as_json="--json" in argv)
    except BrokenPipeError:
        # Whoever read the output has gone, as in `notebook-sync list | head`. Python would complain once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _fail(NotebookError("what was to be printed could not be written: no space left"), 1, as_json=False)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except SystemExit as done:  # how argparse ends --help and --version
        return int(done.code or 0)
    except Exception as error:
        from prompt.errors import PromptError  # only now: it brings the assembler along

        if not isinstance(error, PromptError):
            raise
        return _fail(error, NotebookError.exit_code, as_json="--json" in argv)


def arranged(argv: Sequence[str]) -> list[str]:
    """The arguments in the order that argparse takes: -C first, then the command by its own name, then the options that
    came before it. Nothing, and `help`, ask for help."""
    words, first, early = list(argv), [], 0
    end = words.index("--") if "--" in words else len(words)
    for place in reversed([place for place in range(end) if words[place].startswith("-C")]):
        first = words[place : place + 1 + (words[place] == "-C")]
        del words[place : place + len(first)]
    while early < len(words) and words[early].startswith("-") and words[early] not in _ROOT_OPTIONS:
        early += 1 + (words[early] in _WITH_VALUE)
    if not words[early:]:
        return [*first, *(words or ["--help"])]
    before, (command, *rest) = words[:early], words[early:]
    if command == "help":
        return [*first, *rest, "--help"]
    end = rest.index("--") if "--" in rest else len(rest)
    return [*first, ALIASES.get(command, command), *rest[:end], *before, *rest[end:]]


_ROOT_OPTIONS = ("-h", "--help", "--version", "--")
_WITH_VALUE = ("--session", "--agent", "--limit", "-n")


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line. A command of a group is parsed as `command` and `subcommand`."""
    parser = _RootParser(
        prog=PROGRAM,
        description="A notebook of Markdown files for AI agents: the files are the truth, databases mirror them.",
        epilog="`notebook-sync help COMMAND` explains a command. Start with: notebook-sync init ~/notebook",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.add_argument(
        "-C", dest="folder", metavar="DIR", help="the notebook's folder; else the nearest one with a notebook.toml"
    )
    _add_all(parser, COMMANDS, "command")
    return parser


class _Parser(argparse.ArgumentParser):
    """argparse, with its complaints as errors of ours. `commands` are those it knows, `empty_of` the command whose
    arguments it gets when it is first used: most calls use one of sixty, and to fill all takes longer than most calls.
    """

    commands: Sequence[Command] = ()
    empty_of: Command | None = None
    _is_parsing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Options may stand between the arguments, as in `token add --session task scribe`."""
        if self.empty_of:
            command, self.empty_of = self.empty_of, None
            _fill(self, command)
        if self.commands or self._is_parsing:
            return super().parse_known_args(args, namespace)
        self._is_parsing = True  # argparse comes back here while it parses like this
        try:
            found, unknown = self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_parsing = False
        if unknown:
            near = _nearest(unknown[0].partition("=")[0], list(self._option_string_actions))
            self.error(f"unrecognized arguments: {' '.join(unknown)}" + (f" (did you mean {near}?)" if near else ""))
        return found, unknown

    def error(self, message: str) -> NoReturn:
        group = self.prog.removeprefix(PROGRAM).strip()
        if unknown := _UNKNOWN_COMMAND.match(message):
            message = _unknown_command(group, unknown[1], self.commands)
        elif group and message == _NO_COMMAND:
            message = f"{group} is several commands: {', '.join(command.name for command in self.commands)}"
        raise UsageError(f"{message}; see: {self.prog} --help")


class _RootParser(_Parser):
    """Its help lists the commands in groups."""

    def format_help(self) -> str:
        commands = {command.name: command.summary for command in self.commands}
        groups = ["\n".join([title, *(f"  {name:<10}  {commands[name]}" for name in names)]) for title, names in GROUPS]
        options = "Options\n  -C DIR      the notebook's folder; default: the nearest with a notebook.toml\n  --version"
        usage = f"usage: {PROGRAM} [-C DIR] COMMAND [arguments]"
        return "\n\n".join([usage, self.description or "", *groups, options, self.epilog or ""]) + "\n"


# How argparse puts it, which goes on to name every command.
_UNKNOWN_COMMAND = re.compile(r"argument COMMAND: invalid choice: ['\"](.*)['\"] \(", re.DOTALL)
_NO_COMMAND = "the following arguments are required: COMMAND"


def _unknown_command(group: str, name: str, commands: Sequence[Command]) -> str:
    near = _nearest(name, [command.name for command in commands])
    meant = f" (did you mean {f'{group} {near}'.lstrip()!r}?)" if near else ""
    return f"there is no command {f'{group} {name}'.lstrip()!r}{meant}"


def _nearest(name: str, known: Sequence[str]) -> str:
    import difflib

    return next(iter(difflib.get_close_matches(name, known, n=1)), "")


def _add_all(parser: _Parser, commands: Sequence[Command], dest: str) -> None:
    parser.commands = commands
    parsers = parser.add_subparsers(title="commands", dest=dest, metavar="COMMAND", required=True, parser_class=_Parser)
    for command in commands:
        _add(parsers, command)


def _add(commands: Any, command: Command) -> None:
    parser = commands.add_parser(
        command.name,
        help=command.summary,
        description=f"{command.summary[0].upper()}{command.summary[1:]}.\n\n{command.about}",
        epilog=_lesson(command),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.empty_of = command


def _fill(parser: _Parser, command: Command) -> None:
    parser.add_argument("-h", "--help", action="help", help="show this help message and exit")
    parser.register("type", "count", _count)
    parser.register("type", "share", _share)
    for argument in command.arguments:
        short = ("-n",) if argument.name == "--limit" else ()
        parser.add_argument(*short, argument.name, help=argument.help, **argument.options)
    if command.commands:
        _add_all(parser, command.commands, "subcommand")


def _lesson(command: Command) -> str:
    answer = ["", "--json prints:", *_indented(command.shape.splitlines())] if command.shape else []
    return "\n".join(("examples:", *_indented(command.examples), *answer))


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a count; write a number like 20")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1; write one like 0.8")
    return share


def _dispatch(argv: Sequence[str]) -> int:
    about(None)
    arguments = make_parser().parse_args(argv)
    about(arguments.folder)
    from notebook_sync.surfaces.cli.commands.run import (
        run_command,  # not for --help and wrong calls: it brings the notebook along
    )

    return run_command(arguments)


def _fail(error: Exception, code: int, *, as_json: bool) -> int:
    sys.stdout.flush()
    steps: list[str] = getattr(error, "__notes__", [])
    if as_json:
        import json

        from notebook_sync.surfaces.errors import error_body  # it brings more along than a good call needs

        body = error_body(error)["error"]
        # What only a command line says, as which command helps, follows the message.
        message, _, after = str(error).partition(f"{body['message']}; ")
        body["next"] = "; ".join(steps) or (after if not message else "") or body["next"]
        print(json.dumps({"error": body}), flush=True)
        return code
    from notebook_sync.surfaces.cli.text.notebook import safe

    for line in [*f"{PROGRAM}: {error}".split("\n"), *(f"  {step}" for step in steps)]:
        sys.stderr.write(f"{safe(line)}\n")
    return code
