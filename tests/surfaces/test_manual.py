"""The parser, --help, docs/cli.md and the commands that exist are one list."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from notebook_sync.surfaces.cli import make_parser, run
from notebook_sync.surfaces.cli_commands import RUN
from notebook_sync.surfaces.cli_manual import manual
from notebook_sync.surfaces.cli_reference import COMMANDS
from notebook_sync.surfaces.cli_table import Command
from tests.surfaces.conftest import REPOSITORY

each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)


def test_the_manual_is_up_to_date() -> None:
    written = (REPOSITORY / "docs/cli.md").read_text(encoding="utf-8")
    assert written == manual(), "make it anew: python -m notebook_sync.surfaces.cli_manual > docs/cli.md"


def test_what_is_listed_is_what_works() -> None:
    assert {command.name for command in COMMANDS} == RUN.keys()


@each_command
def test_help_teaches(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command.name, "--help"]) == 0
    told = capsys.readouterr().out
    assert command.about in told
    assert all(example in told for example in command.examples)
    assert all(argument.help for argument in command.arguments)
    assert bool(command.shape) == any(argument.name == "--json" for argument in command.arguments)
    assert all(line in told for line in command.shape.splitlines())


@each_command
def test_examples_are_calls_that_parse(command: Command) -> None:
    assert command.examples
    for example in command.examples:
        program, *arguments = shlex.split(example)
        assert program == "notebook-sync"
        assert make_parser().parse_args(arguments).command == command.name


def test_commands_named_in_messages_exist() -> None:
    """An error that says what to do next must not name a command there is not."""
    names = {command.name for command in COMMANDS}
    named = {
        found
        for source in (REPOSITORY / "notebook_sync").rglob("*.py")
        for found in re.findall(r"(?<=: notebook-sync )([a-z]+)", Path(source).read_text(encoding="utf-8"))
    }
    assert named
    assert named <= names
