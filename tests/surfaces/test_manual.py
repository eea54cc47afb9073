"""The parser, --help, docs/cli.md and the commands that exist are one list."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from notebook_sync.operations import OPERATIONS
from notebook_sync.surfaces.cli.commands.run import RUN
from notebook_sync.surfaces.cli.main import make_parser, run
from notebook_sync.surfaces.cli.manual import manual
from notebook_sync.surfaces.cli.reference.commands import COMMANDS
from notebook_sync.surfaces.cli.table import Command, each
from tests.surfaces.conftest import REPOSITORY

EVERY = [pytest.param(words, command, id=words) for words, command in each(COMMANDS)]
each_command = pytest.mark.parametrize(("words", "command"), EVERY)


def test_the_manual_is_up_to_date() -> None:
    written = (REPOSITORY / "docs/cli.md").read_text(encoding="utf-8")
    assert written == manual(), "make it anew: python -m notebook_sync.surfaces.cli.manual > docs/cli.md"


def test_what_is_listed_is_what_works() -> None:
    operations = {words.split()[0] for words in OPERATIONS}
    assert {command.name for command in COMMANDS} == RUN.keys() | operations
    assert not RUN.keys() & operations


@each_command
def test_help_teaches(words: str, command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*words.split(), "--help"]) == 0
    told = capsys.readouterr().out
    assert command.about in told
    assert all(example in told for example in command.examples)
    assert all(argument.help for argument in command.arguments)
    assert bool(command.shape) == any(argument.name == "--json" for argument in command.arguments)
    assert all(line in told for line in command.shape.splitlines())
    assert all(f"    {one.name}" in told and one.summary in " ".join(told.split()) for one in command.commands)


@each_command
def test_examples_are_calls_that_parse(words: str, command: Command) -> None:
    assert command.examples
    for example in command.examples:
        program, *arguments = shlex.split(example)
        assert program == "notebook-sync"
        assert shlex.split(words) == _without_folder(arguments)[: len(words.split())]
        assert make_parser().parse_args(arguments).command == words.split()[0]


def _without_folder(arguments: list[str]) -> list[str]:
    return arguments[2:] if arguments[0] == "-C" else arguments


def test_commands_named_in_messages_exist() -> None:
    """An error that says what to do next must not name a command there is not."""
    known = dict(each(COMMANDS))
    named = {
        found
        for source in (REPOSITORY / "notebook_sync").rglob("*.py")
        for found in re.findall(
            r"(?<=: notebook-sync )([a-z]+)(?: ([a-z]+))?", Path(source).read_text(encoding="utf-8")
        )
    }
    assert named
    for name, subcommand in named:
        assert name in known
        assert not known[name].commands or f"{name} {subcommand}" in known
