"""Running git on a repository that may be anyone's: no hook, pager, filter or other program that its settings name is
run, no network is reached, and nothing waits for ever."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from notebook_sync.errors import GitFailed

GIT_SECONDS = 30.0
_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showRoot=true", "diff.orderFile=/dev/null")


def run_git(
    root: Path,
    *arguments: str,
    given: bytes = b"",
    variables: Mapping[str, str] | None = None,
    seconds: float = GIT_SECONDS,
) -> subprocess.CompletedProcess[bytes]:
    """Run one command of git in `root`. Raises FileNotFoundError where there is no git, GitFailed when it takes longer
    than `seconds`."""
    arguments_of_all = command(root, *arguments)
    with subprocess.Popen(
        arguments_of_all,
        env=environment() | dict(variables or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        try:
            output, complaint = running.communicate(given, timeout=max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            running.terminate()  # it takes its locks away then, as it does not when it is killed
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.communicate(timeout=1)
            raise GitFailed(f"git {arguments[0]} took too long and was stopped") from None
        finally:
            running.kill()
    return subprocess.CompletedProcess(arguments_of_all, running.returncode, output, complaint)


def blobs_of(root: Path, names: Iterable[str], *, seconds: float = GIT_SECONDS) -> dict[str, bytes]:
    """The bytes of those blobs that git has, by the name each is asked for by: its id, or `HEAD:./path`. No name has a
    line end in it. Raises as `run_git`."""
    asked = list(dict.fromkeys(names))
    given = "".join(f"{name}\n" for name in asked).encode()
    answer = run_git(root, "cat-file", "--batch", given=given, seconds=seconds).stdout
    held, start = {}, 0
    for name in asked:
        end = answer.find(b"\n", start)
        if end < 0:
            break
        _, kind, size = (b"", *answer[start:end].rsplit(b" ", 2))[-3:]  # of `ID blob SIZE`, or of `NAME missing`
        start = end + 1
        if size.isdigit():
            if kind == b"blob":
                held[name] = answer[start : start + int(size)]
            start += int(size) + 1
    return held


def command(root: Path, *arguments: str) -> list[str]:
    """What `run_git` runs."""
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    return ["git", "--no-pager", "--no-optional-locks", "-C", str(root), *settings, *arguments]


def environment() -> dict[str, str]:
    """What git is to know of this process's environment."""
    # Inside a hook, GIT_DIR and its like point at the hook's repository, which need not be the notebook's.
    kept = {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"}
    own = {name: value for name, value in os.environ.items() if name in kept or not name.startswith("GIT_")}
    # No protocol is allowed: a partial clone would fetch what it lacks, by a program that its settings name.
    return own | {"LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "none", "GIT_TERMINAL_PROMPT": "0"}


def why(complaint: str) -> str:
    """Why git would not answer, for a person; "" where there is only no repository, or no commit yet."""
    if "not a git repository" in complaint or "does not have any commits yet" in complaint:
        return ""
    advice = [line.strip() for line in complaint.splitlines() if "--add safe.directory" in line]
    if advice:
        return f"git does not trust this repository, which is another user's. If you do, run: {advice[0]}"
    return f"git does not answer: {first_line(complaint)}"


def first_line(complaint: str) -> str:
    """The line of a complaint that says what is wrong."""
    lines = complaint.splitlines() or ["no reason given"]
    return next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0])
