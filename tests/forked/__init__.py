"""The command `notebook-sync` without the cost of its start: forked from a process that has imported it already.

Tests run it some two thousand times, and starting takes longer than most of what it then does. Forked, it has the
arguments, folder, environment, mask and streams it is started with, and ends as it would; what it does not have is a
start of its own, a terminal, and the caller's process group. What is about one of those, or about being killed, starts
the real one. So does everything where NOTEBOOK_TEST_REAL_COMMANDS is set.
"""

from __future__ import annotations

import atexit
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.forked import shim

REPOSITORY = Path(__file__).parents[2]
PROGRAM = "notebook_sync"
_SHARED = "NOTEBOOK_TEST_FORKING_SERVER"
_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1"}  # else numpy starts some as soon as it is imported


def command(module: str = PROGRAM) -> list[str]:
    """What starts `python -m MODULE` as a process that can be signalled and waited for; arguments may follow."""
    if is_real():
        return real_command(module)
    return [sys.executable, "-IS", shim.__file__, _address(), module]


def real_command(module: str = PROGRAM) -> list[str]:
    """The same, started as anybody starts it."""
    return [sys.executable, "-m", module]


def python_command() -> list[str]:
    """What a program follows, and its arguments, as they follow `python -c`."""
    return real_python_command() if is_real() else command("tests.forked.source")


def real_python_command() -> list[str]:
    """The same, started as anybody starts it."""
    return [sys.executable, "-c"]


def is_real() -> bool:
    """Whether nothing is to be forked."""
    return bool(os.environ.get("NOTEBOOK_TEST_REAL_COMMANDS"))


def write_command(folder: Path) -> Path:
    """Put an executable `notebook-sync` into the folder, which goes to the front of a PATH; its path."""
    return _write(folder, command())


def write_real_command(folder: Path) -> Path:
    """The same, which is started as anybody starts it."""
    return _write(folder, real_command())


def _write(folder: Path, started: list[str]) -> Path:
    path = folder / "notebook-sync"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(started)} "$@"\n')
    path.chmod(0o755)
    return path


def run(
    arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None, text: str = "", timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, with this text as standard input; what it printed, as text."""
    if is_real():
        return subprocess.run(
            [*real_command(), *arguments],
            env=env,
            cwd=cwd,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
    place = os.open(cwd or ".", os.O_PATH)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(text.encode())
        given.seek(0)
        try:
            streams = [given.fileno(), out.fileno(), err.fileno()]
            words = b"\0".join(map(os.fsencode, [PROGRAM, *arguments]))
            environ = b"\0".join(os.fsencode(f"{name}={value}") for name, value in env.items())
            with socket.socket(socket.AF_UNIX) as asked:
                asked.settimeout(timeout)
                asked.connect(_address())
                shim.ask(asked, words, environ, place, streams, [])
                code = shim.ended(asked)
        finally:
            os.close(place)
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess([*arguments], code, out.read().decode(), err.read().decode())


def share() -> None:
    """Start the server here, for all processes that this one starts from now on."""
    if not is_real():
        os.environ[_SHARED] = _address()


@cache
def _address() -> str:
    """Where the server listens: a shared one, or one that starts when first asked for and ends with this process."""
    if shared := os.environ.get(_SHARED):
        return shared
    folder = tempfile.TemporaryDirectory(prefix="notebook-commands-")
    address = f"{folder.name}/socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(128)
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.forked.server", str(listening.fileno())],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "LC_ALL": "C.UTF-8", **_NO_THREADS},
            pass_fds=[listening.fileno()],
            stdin=subprocess.PIPE,  # which ends with this process, however that ends
            start_new_session=True,
        )

    def end() -> None:
        server.communicate()
        folder.cleanup()

    atexit.register(end)
    return address
