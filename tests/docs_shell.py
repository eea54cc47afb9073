"""Documentation as a reader follows it: a shell that keeps its folder and variables, an editor, a second terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from notebook_sync.files.parse import parse
from tests import forked

REPOSITORY = Path(__file__).parents[1]
_FENCE = re.compile(r'^```(\w+)(?: file="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_DONE = "the command ended with"
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block. `file` is where a reader's editor saves it, "" for one that is only shown."""

    line: int
    language: str
    file: str
    text: str


def blocks_of(markdown: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(markdown.count("\n", 0, found.start()) + 1, found[1], found[2] or "", found[3])
        for found in _FENCE.finditer(markdown)
    ]


def section_of(page: Path, heading: str) -> str:
    """The section of a page with this heading."""
    note = parse(page.name, page.read_bytes())
    (section,) = (section for section in note.sections if section.heading == heading)
    return note.content[section.start : section.end]


def steps_of(console: str) -> list[tuple[int, str, str]]:
    """`(line, command, expected output)` of each step: `$ ` begins a command, `> ` goes on with it."""
    steps: list[tuple[int, str, str]] = []
    for number, line in enumerate(console.splitlines(), start=1):
        if line.startswith("$ "):
            steps.append((number, line[2:], ""))
            continue
        at, command, expected = steps.pop()
        is_more = line.startswith("> ") and not expected
        steps.append((at, f"{command}\n{line[2:]}", "") if is_more else (at, command, f"{expected}{line}\n"))
    return steps


def pattern_of(expected: str) -> re.Pattern[str]:
    """What has to be printed: `…` is any text on its line, a line that is only `…` any lines."""
    lines = expected.strip("\n").splitlines()
    return re.compile("".join(r"(?:[^\n]*\n)*" if line == "…" else _line(line) for line in lines) or "\n?")


def _line(line: str) -> str:
    return "[^\n]*".join(map(re.escape, line.split("…"))) + "\n"


class Reader:
    """Follows blocks in a home of their own.

    console: each `$ ` command is run, and what it prints compared. A command that watches goes to the second terminal;
    a block without a command is what is to appear there next, and `^C` ends it. python: run by itself; a text block
    below it is its output. A block with `file=` is saved there. shown: what stands in the text for each value that is
    used here.
    """

    def __init__(self, home: Path, shown: Mapping[str, str] | None = None, *, is_real: bool = False) -> None:
        self._home = home
        self._shown = dict(shown or {})
        self.saved: dict[str, bytes] = {}
        self._environment = environment(home, is_real=is_real)
        self._python = forked.real_python_command() if is_real else forked.python_command()
        self._output = ""
        self._second: subprocess.Popen[bytes] | None = None
        self._seen = 0
        self._shell = subprocess.Popen(
            ["bash"],
            cwd=home,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        for process in (self._shell, self._second):
            if process is not None:
                process.terminate()
                process.communicate(timeout=_SECONDS)

    def shows(self, shown: str, used: str) -> None:
        """From here on, `shown` stands in the text for the server at `used`."""
        self._shown |= {shown: used, urlsplit(shown).netloc: urlsplit(used).netloc}

    def follow(self, block: Block) -> None:
        """Do what the block says, and compare what it shows."""
        if block.file:
            path = self._home / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            self.saved[block.file] = block.text.encode()
            path.write_bytes(self.saved[block.file])
        elif block.language == "python":
            self._output = self._run_python(block.text)
        elif block.language == "text":
            self._compare(block.line, "python", block.text, self._output)
        elif block.text == "^C\n":
            self._stop_second()
        elif block.language == "console" and not block.text.startswith("$ "):
            self._expect_of_second(block.line, block.text)
        elif block.language == "console":
            for offset, command, expected in steps_of(block.text):
                self._follow_command(block.line + offset, command, expected)

    def _follow_command(self, line: int, command: str, expected: str) -> None:
        if re.fullmatch(r"notebook-sync( -C \S+)? watch", command):
            with (self._home / "second.log").open("wb") as log:
                self._second = subprocess.Popen(
                    ["sh", "-c", f"exec {command}"], cwd=self._home, env=self._environment, stdout=log, stderr=log
                )
            self._expect_of_second(line, expected)
        else:
            self._compare(line, command, expected, self.run(command))

    def run(self, command: str) -> str:
        """What a command prints in the shell, with `[exit N]` below where it fails."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{{ {self._used(command)}\n}} < /dev/null\nprintf '\\n{_DONE} %s\\n' $?\n")
        self._shell.stdin.flush()
        printed: list[str] = []
        for text in self._shell.stdout:
            if text.startswith(_DONE):
                code = text.removeprefix(_DONE).strip()
                failed = f"\n[exit {code}]" if code != "0" else ""
                return "".join(printed).strip("\n") + failed
            printed.append(text)
        raise AssertionError(f"the shell ended in: {command}\n{''.join(printed)}")

    def _run_python(self, source: str) -> str:
        done = subprocess.run(
            [*self._python, source],
            cwd=self._home,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _expect_of_second(self, line: int, expected: str) -> None:
        """Wait until the second terminal has gone on to say what is expected, and no more."""
        deadline = time.monotonic() + _SECONDS
        pattern = pattern_of(expected)
        while not pattern.fullmatch(told := self._second_said()[self._seen :]):
            assert time.monotonic() < deadline, f"line {line}, second terminal\nexpected:\n{expected}\nprinted:\n{told}"
            time.sleep(0.02)  # between two looks, up to the deadline
        self._seen += len(told)

    def _stop_second(self) -> None:
        assert self._second is not None
        self._second.send_signal(signal.SIGINT)
        assert self._second.wait(_SECONDS) == 0
        assert self._second_said()[self._seen :] == ""

    def _second_said(self) -> str:
        return self._as_shown((self._home / "second.log").read_text(encoding="utf-8"))

    def _compare(self, line: int, command: str, expected: str, printed: str) -> None:
        printed = self._as_shown(printed).strip("\n") + "\n"
        assert pattern_of(expected).fullmatch(printed), (
            f"line {line}: {command}\nexpected:\n{expected}\nprinted:\n{printed}"
        )

    def _used(self, text: str) -> str:
        for shown, used in self._shown.items():
            text = text.replace(shown, used)
        return text

    def _as_shown(self, text: str) -> str:
        for shown, used in self._shown.items():
            text = text.replace(used, shown)
        return text


def environment(home: Path, *, is_real: bool = False) -> dict[str, str]:
    """A home without settings, in which `notebook-sync` is the code under test, started anew each time if `is_real`."""
    folder = Path(tempfile.mkdtemp(dir=home.parent))
    write = forked.write_real_command if is_real else forked.write_command
    write(folder)
    return {
        "HOME": str(home),
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
