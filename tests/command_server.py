"""A process that has loaded the program, and starts another one for each command: the loading takes most of the time
of a short command.

    python -m tests.command_server ADDRESS      prints a line once it listens, and ends with its standard input

`command_client.py` hands on what a process is started with, and ends as that process does.
"""

import importlib
import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress

from notebook_sync.__main__ import main
from notebook_sync.notebook import load_operations
from prompt import count_tokens

_LOADED = (
    *("surfaces.cli.commands", "surfaces.cli.render", "surfaces.http.serve", "surfaces.mcp.server"),
    *("surfaces.dashboard.app", "search.embed_static"),
)
_LARGEST = 1 << 20


def load() -> None:
    """Load what commands load when they need it. A module that does not exist is left out: this only saves time."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # no thread outlives a fork
    load_operations()
    for name in _LOADED:
        with suppress(ImportError):
            importlib.import_module(f"notebook_sync.{name}")
    count_tokens("")


def serve(address: str) -> int:
    """Start a process for each client until the input ends. Each process is a fork of this one, and returns too."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that look after a command
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()
        print("listening", flush=True)
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            client, _ = listener.accept()
            with client:
                if os.fork() == 0:
                    return look_after(client)
    return 0


def look_after(client: socket.socket) -> int:
    """Start the command of one client; send it the process' id, and its exit code at the end. If the client ends first,
    the command is killed."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    said, streams, *_ = socket.recv_fds(client, _LARGEST, 3)
    pid = os.fork()
    if pid == 0:
        client.close()
        return run_command(*json.loads(said), streams)
    for stream in streams:
        os.close(stream)
    with suppress(BrokenPipeError, ConnectionResetError):
        client.send(str(pid).encode())
        if client in select.select([client, os.pidfd_open(pid)], [], [])[0]:
            os.kill(pid, signal.SIGKILL)
        client.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
    os._exit(0)


def run_command(arguments: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> int:
    """Be the command from here on."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv[1:] = arguments
    return main()


if __name__ == "__main__":
    load()
    sys.exit(serve(sys.argv[1]))
