"""The command line as people meet it: each transcript is a shell session that has to happen again as it is written.

`$ ` begins a command; what follows is all it prints, standard error included. `…` is any text on its line, a line that
is only `…` any lines. `[exit 3]` is the exit code where it is not 0. `> ` continues a command, `# ` is for the reader,
and empty lines at the end of what is printed do not count.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

TRANSCRIPTS = sorted(Path(__file__).parent.glob("*.transcript"))


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(transcript: Path, tmp_path: Path, shell_environment: dict[str, str]) -> None:
    for line, command, expected in _steps(transcript.read_text(encoding="utf-8")):
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env=shell_environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=60,
        )
        printed = done.stdout.rstrip("\n") + (f"\n[exit {done.returncode}]" if done.returncode else "")
        printed = printed.strip("\n") + "\n"
        assert _pattern(expected).fullmatch(printed), (
            f"{transcript.name}:{line}: $ {command}\nexpected:\n{expected}\nprinted:\n{printed}"
        )


def test_a_line_that_differs_is_noticed() -> None:
    assert _pattern("ready\n…\nend …\n").fullmatch("ready\none\ntwo\nend here\n")
    assert _pattern("ready\n…\nend\n").fullmatch("ready\nend\n")
    assert not _pattern("ready\nend …\n").fullmatch("ready\nend\nmore\n")
    assert not _pattern("ready.\n").fullmatch("ready!\n")


def _steps(transcript: str) -> list[tuple[int, str, str]]:
    """`(line, command, expected output)` of each step."""
    steps: list[tuple[int, str, str]] = []
    for number, line in enumerate(transcript.splitlines(), start=1):
        if line.startswith("$ "):
            steps.append((number, line[2:], ""))
        elif line.startswith("> ") and steps:
            at, command, _ = steps.pop()
            steps.append((at, f"{command}\n{line[2:]}", ""))
        elif not line.startswith("# ") and steps:
            at, command, expected = steps.pop()
            steps.append((at, command, f"{expected}{line}\n"))
    return [(at, command, expected.strip("\n") + "\n") for at, command, expected in steps]


def _pattern(expected: str) -> re.Pattern[str]:
    lines = expected.splitlines()
    return re.compile("".join(r"(?:[^\n]*\n)*" if line == "…" else _line(line) for line in lines))


def _line(line: str) -> str:
    return "[^\n]*".join(map(re.escape, line.split("…"))) + "\n"
