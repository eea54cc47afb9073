"""A documentation page as a reader follows it: in a home of its own, from top to bottom, in one shell.

    ```console      `$ ` begins a command and `> ` continues it. What is below is what it prints: `…` is any text on a
                    line, a line that is only `…` any lines. Without output, only the exit code counts; `[exit 3]`
                    at the end is another one than 0.
    ```sh           each line is a command whose output is not compared
    ```python       a program; a block ```text right below it is what it prints
    ```LANG file="PATH"   is saved there, below the home
    ```sh skip="reason"   cannot run in a test; the reason says why

Everything else is only shown.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
_FENCE = re.compile(r'^```(\w+)(?: (file|skip)="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_DONE = "the command ended with"
# How a hung command ends; all of a page's take less.
_SECONDS = 120


class Reader:
    """Follows a page below `home`. `shown` are texts of the page with what is used for them here; `command` is what
    runs as `notebook-sync`."""

    def __init__(self, home: Path, shown: Mapping[str, str], command: Sequence[str]) -> None:
        self._home = home
        self._shown = shown
        self.skipped: list[str] = []
        self._printed = ""
        commands = home.parent / "commands"
        commands.mkdir()
        for name, words in {"python": [sys.executable], "notebook-sync": command}.items():
            script = commands / name
            script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            script.chmod(0o755)
        kept = {name: os.environ[name] for name in os.environ if name.startswith(("NOTEBOOK_", "GIT_"))}
        self._shell = subprocess.Popen(
            ["timeout", "--foreground", str(_SECONDS), "bash"],
            cwd=home,
            env=kept
            | {"HOME": str(home), "PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY)}
            | {"LC_ALL": "C.UTF-8", "TZ": "UTC", "NOTEBOOK_SESSION": "owner"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        """End the shell and what it left in the background."""
        os.killpg(self._shell.pid, signal.SIGTERM)
        self._shell.communicate()

    def follow(self, page: Path) -> None:
        """Do what each block says, and compare what it shows."""
        text = page.read_text(encoding="utf-8")
        for found in _FENCE.finditer(text):
            language, option, value, block = found.groups()
            line = text.count("\n", 0, found.start()) + 1
            if option == "skip":
                self.skipped.append(value)
            elif option == "file":
                self._save(value, block)
            elif language == "console":
                for command, expected in steps_of(block):
                    self._follow_command(f"{page.name}:{line}", command, expected)
            elif language == "sh":
                self._follow_command(f"{page.name}:{line}", f"set -e\n{block}", "")
            elif language == "python":
                self._save("../program.py", block)
                self._printed = self._run("python ../program.py")
                assert "[exit" not in self._printed, f"{page.name}:{line}\n{self._printed}"
            elif language == "text" and text[: found.start()].rstrip().endswith("```") and self._printed:
                _compare(f"{page.name}:{line}", "the program", block, self._as_shown(self._printed))

    def _save(self, name: str, text: str) -> None:
        path = self._home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._used(text), encoding="utf-8")

    def _follow_command(self, place: str, command: str, expected: str) -> None:
        printed = self._as_shown(self._run(command))
        code = re.search(r"\[exit \d+\]\n?$", printed)
        assert expected or not code, f"{place}: {command}\n{printed}"
        if expected:
            _compare(place, command, expected, printed)

    def _run(self, command: str) -> str:
        """What a command prints, with `[exit N]` below where it fails."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        grouped = f"( {self._used(command)}\n)" if command.startswith("set -e") else f"{{ {self._used(command)}\n}}"
        self._shell.stdin.write(f"{grouped} </dev/null\nprintf '\\n{_DONE} %s\\n' $?\n")
        self._shell.stdin.flush()
        printed: list[str] = []
        for text in self._shell.stdout:
            if text.startswith(_DONE):
                code = text.removeprefix(_DONE).strip()
                return "".join(printed).strip("\n") + (f"\n[exit {code}]" if code != "0" else "") + "\n"
            printed.append(text)
        raise AssertionError(f"the shell ended in: {command}\n{''.join(printed)}")

    def _used(self, text: str) -> str:
        for shown, used in self._shown.items():
            text = text.replace(shown, used)
        return text

    def _as_shown(self, text: str) -> str:
        for shown, used in self._shown.items():
            text = text.replace(used, shown)
        return text


def steps_of(console: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with what it is to print."""
    command, expected = "", ""
    for line in console.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, expected
            command, expected = line[2:], ""
        elif line.startswith("> ") and not expected:
            command += f"\n{line[2:]}"
        else:
            expected += f"{line}\n"
    yield command, expected


def _compare(place: str, command: str, expected: str, printed: str) -> None:
    lines = expected.strip("\n").splitlines()
    pattern = "".join(r"(?:[^\n]*\n)*" if line == "…" else _pattern_of_line(line) for line in lines)
    assert re.fullmatch(pattern, printed.strip("\n") + "\n"), (
        f"{place}: {command}\nexpected:\n{expected}\nprinted:\n{printed}"
    )


def _pattern_of_line(line: str) -> str:
    return "[^\n]*".join(map(re.escape, line.split("…"))) + "\n"
