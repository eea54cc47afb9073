"""Other processes and threads in tests: the command line, and functions that work while a test does."""

import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.servers import RUN_FOLDER

# Not forked from the test's own process, which has threads and connections; nor spawned, which takes a second each.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["notebook_sync.notebook"])


def start_process(function: Callable[..., Any], *arguments: Any) -> BaseProcess:
    """Call `function` in a process of its own, with the environment of the test as it is now."""
    process = _CONTEXT.Process(target=_call, args=(dict(os.environ), function, arguments), daemon=True)
    process.start()
    return process


@contextmanager
def repeating(act: Callable[[], object]) -> Iterator[None]:
    """Call `act` again and again in a thread while the block runs; what it raises is raised at the end."""
    done = threading.Event()

    def repeat() -> None:
        while not done.is_set():
            act()

    with ThreadPoolExecutor(1) as thread:
        repeated = thread.submit(repeat)
        try:
            yield
        finally:
            done.set()
        repeated.result()


def start_command(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start `notebook-sync ARGUMENTS`, its standard streams connected to pipes."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*quick_command(), *map(str, arguments)], text=True, **{**streams, **options})


def run_command(*arguments: str | Path, stdin: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `notebook-sync ARGUMENTS` to its end, whatever its exit code."""
    arguments = (*quick_command(), *map(str, arguments))
    return subprocess.run(arguments, input=stdin, capture_output=True, text=True, check=False, timeout=120, **options)


def command() -> list[str]:
    """How `notebook-sync` is started, whether or not the package is installed."""
    return [sys.executable, "-m", "notebook_sync"]


def quick_command() -> list[str]:
    """The same by the command server: a process of its own, in which the program is loaded already."""
    client = Path(__file__).with_name("command_client.py")
    return [sys.executable, "-I", "-S", str(client), _command_server()[0]]


@cache
def _command_server() -> tuple[str, subprocess.Popen[bytes]]:
    """Its address, and the process, which ends with this one."""
    address = str(Path(os.environ[RUN_FOLDER]) / f"commands-{os.getpid()}")
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.command_server", address],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    assert server.stdout.readline()
    return address, server


def _call(environment: dict[str, str], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.environ.clear()  # the fork server has the environment of the first test that used it
    os.environ.update(environment)
    function(*arguments)
