"""A process that has loaded the program, and starts another one for each command: the loading takes most of the time
of a short command.

    python -m tests.command_server ADDRESS      prints a line once it listens, and ends with its standard input

`command_client.py` hands on what a process is started with, and ends as that process does.
"""

import gc
import importlib
import json
import multiprocessing
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
# A process that ends as those of multiprocessing do: its threads and exit handlers first, and without taking apart all
# that is loaded, which would take longer than most commands.
_CONTEXT = multiprocessing.get_context("fork")


def load() -> None:
    """Load what commands load when they need it. A module that does not exist is left out: this only saves time."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # no thread outlives a fork
    load_operations()
    for name in _LOADED:
        with suppress(ImportError):
            importlib.import_module(f"notebook_sync.{name}")
    count_tokens("")
    gc.freeze()  # nothing of this is looked at, and so copied, in every command


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
    command = _CONTEXT.Process(target=run_command, args=(*json.loads(said), streams, client))
    command.start()
    for stream in streams:
        os.close(stream)
    with suppress(BrokenPipeError, ConnectionResetError):
        client.send(str(command.pid).encode())
        if client in select.select([client, command.sentinel], [], [])[0]:
            command.kill()
        command.join()
        client.send(str(command.exitcode).encode())
    os._exit(0)


def run_command(
    arguments: list[str], folder: str, environment: dict[str, str], streams: list[int], client: socket.socket
) -> None:
    """Be the command from here on."""
    client.close()
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
    sys.exit(main())


if __name__ == "__main__":
    load()
    sys.exit(serve(sys.argv[1]))
