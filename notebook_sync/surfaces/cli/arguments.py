"""An operation's parameters as command-line arguments: parsing and help."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NoReturn, get_args, get_origin

from msgspec import Meta

from notebook_sync.errors import UsageError, did_you_mean
from notebook_sync.files.state import expanded
from notebook_sync.registry import Arg, Operation, annotation_of, plain_type
from notebook_sync.surfaces.cli.index import PROGRAM

_LOG_LEVELS = ("debug", "info", "warning", "error")


class Parser(argparse.ArgumentParser):
    """argparse with errors of ours, and options between the arguments."""

    def __init__(self, words: str, summary: str, about: str = "", examples: tuple[str, ...] = ()) -> None:
        epilog = "\n".join(["examples:", *(f"  {each}" for each in examples)]) if examples else None
        super().__init__(
            prog=f"{PROGRAM} {words}",
            description="\n\n".join(filter(None, (f"{summary}.", about))),
            epilog=epilog,
            formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=80),
            allow_abbrev=False,
        )

    def parse(self, argv: list[str]) -> argparse.Namespace:
        """The parsed arguments. Raises UsageError; exits for --help."""
        # With options between the arguments, argparse does not understand `--`.
        parse = self.parse_known_args if "--" in argv else self.parse_known_intermixed_args
        found, unknown = parse(argv)
        if unknown:
            advice = did_you_mean(unknown[0].partition("=")[0], self.flags, f"see {self.prog} --help")
            raise UsageError(f"unknown argument {unknown[0]}", next=advice)
        if found.log_level:
            import logging  # nobody else needs it

            level, form = found.log_level.upper(), "%(levelname)s %(name)s: %(message)s"
            logging.basicConfig(level=level, stream=sys.stderr, format=form)
        return found

    @property
    def flags(self) -> list[str]:
        """The long options."""
        return sorted(each for each in self._option_string_actions if each.startswith("--"))

    def format_help(self) -> str:
        """The help, as wide as the terminal. Measuring it loads every compression module, so no other call does."""
        self.formatter_class = argparse.RawDescriptionHelpFormatter
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, next=f"see {self.prog} --help")


def parser_of(operation: Operation) -> Parser:
    """The parser of a command, with the options that every operation has."""
    parser = Parser(operation.words, operation.summary, operation.about, operation.examples)
    for name, hint in operation.hints.items():
        if name != "return":
            _add(parser, operation, name, hint)
    if operation.is_confirmed:
        parser.add_argument("--yes", action="store_true", help="do not ask")
    if operation.service:
        parser.add_argument("--session", metavar="KIND", help="who asks: owner, task or external")
        parser.add_argument("--agent", metavar="NAME", default="", help="the agent that asks")
        parser.add_argument("--json", action="store_true", help="print JSON")
    for flag, level, what in (("-q", "error", "log errors only"), ("-v", "info", "log what is done")):
        parser.add_argument(flag, action="store_const", const=level, dest="log_level", help=what)
    parser.add_argument("--log-level", metavar="LEVEL", choices=_LOG_LEVELS, help=", ".join(_LOG_LEVELS))
    return parser


def given_in(operation: Operation, parsed: argparse.Namespace) -> dict[str, Any]:
    """The arguments that were given, for `registry.call` with `from_text`. Raises UsageError."""
    given: dict[str, Any] = {}
    for name, hint in operation.hints.items():
        value = getattr(parsed, name, None)
        file = getattr(parsed, f"{name}_file", None)
        if file is not None:
            value = read_text(file)
        elif value is not None:
            arg = annotation_of(hint, Arg) or Arg()
            value = read_text(value) if arg.is_file or (arg.from_file and value == "-") else value
        if value is None or name == "return":
            continue
        if get_origin(plain_type(hint)) is dict:
            value = dict(_pair(each) for each in value)
        given[name] = value
    return given


def read_text(file: str) -> str:
    """The text of a file, or of standard input for `-`, with its line ends as they are. Raises UsageError."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else expanded(file).read_bytes()
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text (byte {error.start + 1})", next="save it as UTF-8") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", next="name a file, or - for a pipe") from None


def confirmed(what: str, show: Callable[[], object]) -> bool:
    """Show what would be done, and ask. Raises UsageError where nobody can be asked."""
    if not sys.stdin or not sys.stdin.isatty():
        raise UsageError(f"{what} asks before it changes something", next="run it on a terminal, or with --yes")
    show()
    print("Go on? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _add(parser: Parser, operation: Operation, name: str, hint: Any) -> None:
    kind, arg, meta = plain_type(hint), annotation_of(hint, Arg) or Arg(), annotation_of(hint, Meta)
    parameter, origin, flag = operation.parameters[name], get_origin(kind), f"--{name.replace('_', '-')}"
    notes = [meta.description if meta and meta.description else ""]
    if kind is bool:
        parser.add_argument(flag, action="store_true", default=None, dest=name, help=notes[0])
        return
    notes += [", ".join(map(str, get_args(kind)))] if origin is Literal else []
    is_many = arg.positional and origin is list and plain_type(get_args(kind)[0]) is str
    notes += ["separated by commas"] if origin is list and not is_many else []
    if arg.from_file:
        notes.append("- reads standard input")
        parser.add_argument(f"{flag}-file", metavar="FILE", help=f"read the {name.replace('_', ' ')} from a file")
    if parameter.default not in (parameter.empty, None, "", 0):
        notes.append(f"default {parameter.default}")
    shown: dict[str, Any] = {"metavar": arg.metavar or name.upper(), "help": "; ".join(filter(None, notes))}
    if origin is dict:
        shown["action"] = "append"
    is_needed = parameter.default is parameter.empty
    if arg.positional:
        parser.add_argument(name, nargs="+" if is_many else None if is_needed and not arg.from_file else "?", **shown)
    else:
        short = ("-n",) if name == "limit" else ()
        parser.add_argument(*short, flag, dest=name, required=is_needed, **shown)


def _pair(text: str) -> tuple[str, Any]:
    """A name, and its value: what the text is as JSON, else the text itself."""
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} is not a pair", next="write it as KEY=VALUE")
    try:
        return name, json.loads(value)
    except (ValueError, RecursionError):
        return name, value
