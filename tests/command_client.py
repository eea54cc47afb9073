"""`notebook-sync` as a process of the command server at the address that is the first argument. It needs no package,
and starts without looking for any (`python -I -S`)."""

import json
import os
import signal
import socket
import sys

_PASSED_ON = (signal.SIGINT, signal.SIGTERM)


def main(address: str, *arguments: str) -> int:
    """Hand on everything that this process was started with, and its signals; wait for the exit code."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)  # until it is known to whom
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.connect(address)
        folder = os.getcwd()  # noqa: PTH109  # pathlib would take longer to load than everything here
        started_with = json.dumps([arguments, folder, dict(os.environ)])
        socket.send_fds(server, [started_with.encode()], [0, 1, 2])
        pid = int(server.recv(32))
        for number in _PASSED_ON:
            signal.signal(number, lambda number, _frame: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        code = int(server.recv(32))
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
