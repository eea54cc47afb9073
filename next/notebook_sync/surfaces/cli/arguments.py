"""An operation's parameters as command-line arguments: parsing and help."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args, get_origin

from msgspec import Meta

from notebook_sync.errors import UsageError
from notebook_sync.registry import Arg, Operation, annotation_of, plain_type
from notebook_sync.surfaces.cli.index import PROGRAM


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
        found, unknown = self.parse_known_intermixed_args(argv)
        if unknown:
            from difflib import get_close_matches  # only for a wrong call

            near = get_close_matches(unknown[0].partition("=")[0], list(self._option_string_actions), n=1)
            self.error(f"unknown argument {unknown[0]}" + (f"; did you mean {near[0]}?" if near else ""))
        return found

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
    return parser


def given_in(operation: Operation, parsed: argparse.Namespace) -> dict[str, Any]:
    """The arguments that were given, for `registry.call` with `from_text`. Raises UsageError."""
    given: dict[str, Any] = {}
    for name, hint in operation.hints.items():
        value = getattr(parsed, name, None)
        file = getattr(parsed, f"{name}_file", None)
        if file is not None:
            value = read_text(file)
        elif value == "-" and (annotation_of(hint, Arg) or Arg()).from_file:
            value = read_text("-")
        if value is None or name == "return":
            continue
        if get_origin(plain_type(hint)) is dict:
            value = dict(_pair(each) for each in value)
        given[name] = value
    return given


def read_text(file: str) -> str:
    """The text of a file, or of standard input for `-`, with its line ends as they are. Raises UsageError."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).expanduser().read_bytes()
        return raw.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text (byte {error.start + 1})", next="save it as UTF-8") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None


def _add(parser: Parser, operation: Operation, name: str, hint: Any) -> None:
    kind, arg = plain_type(hint), annotation_of(hint, Arg) or Arg()
    described, default = annotation_of(hint, Meta), operation.parameters[name].default
    text = arg.help or (described.description if described and described.description else "")
    flag = f"--{name.replace('_', '-')}"
    options: dict[str, Any] = {"default": None, "dest": name}
    if kind is bool:
        parser.add_argument(flag, action="store_true", help=text, **options)
        return
    if get_origin(kind) is Literal:
        text = f"{text}{text and ': '}{', '.join(map(str, get_args(kind)))}"
    if get_origin(kind) is list:
        text = f"{text}{text and ', '}separated by commas"
    if get_origin(kind) is dict:
        options["action"] = "append"
    if arg.from_file:
        text = f"{text}{text and '; '}- reads standard input"
        parser.add_argument(f"{flag}-file", metavar="FILE", help=f"read the {name.replace('_', ' ')} from a file")
    if default not in (operation.parameters[name].empty, None, "", 0):
        text = f"{text} (default {default})".lstrip()
    metavar = arg.metavar or name.upper()
    if arg.positional:
        needed = default is operation.parameters[name].empty and not arg.from_file
        del options["dest"]
        parser.add_argument(name, metavar=metavar, nargs=None if needed else "?", help=text, **options)
    else:
        short = ("-n",) if name == "limit" else ()
        needed = default is operation.parameters[name].empty
        parser.add_argument(*short, flag, metavar=metavar, help=text, required=needed, **options)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} is not a pair", next="write it as KEY=VALUE")
    return name, value
