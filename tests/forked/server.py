"""The process that forked commands come from, `python -m tests.forked.server FD`: it has imported what they import.

It must start no thread and import nothing that starts one, and open nothing that a command would find open.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

# What is imported where it is used, but not from the packages.
_ALSO = ("markdown_it", "encodings.unicode_escape", "tokenizers")
_PACKAGES = ("notebook_sync", "prompt", "runtime_templates")
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """A command to become: its module and arguments, its environment, and open files for its folder and streams."""

    words: list[str]
    environ: dict[bytes, bytes]
    mask: int
    ignored: list[int]
    place: int
    streams: dict[int, int]


def main() -> None:
    """Serve until standard input ends. In each child, become what was asked for, and return when that is done."""
    listening = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    for module in _ALSO:
        importlib.import_module(module)
    # These load what most commands count tokens by, and look words up in.
    importlib.import_module("prompt").count_tokens("Ferry")
    importlib.import_module("notebook_sync.search.static_words").StaticWords().embed(["Ferry"])
    gc.collect()
    gc.freeze()
    assert threading.active_count() == len([*Path("/proc/self/task").iterdir()]) == 1
    request = _Server(listening).serve()
    if request is not None:
        _become(request)
        _end_after(request.words[0])


def _import_all() -> None:
    """Every module of the packages, so that none is to be named here."""
    for package in map(importlib.import_module, _PACKAGES):
        for _, name, _ in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not name.endswith(".__main__"):
                importlib.import_module(name)


class _Server:
    """One loop for everything: who asks, which signals are passed on, who has gone, which command has ended."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._waiting = selectors.DefaultSelector()
        self._waiting.register(listening, selectors.EVENT_READ)
        self._waiting.register(0, selectors.EVENT_READ)
        self._asked: dict[socket.socket, tuple[int, int]] = {}

    def serve(self) -> Request | None:
        """Returns in each child, with what it is to become, and at the end, with None."""
        while True:
            for key, _ in self._waiting.select():
                if key.fileobj is self._listening:
                    if request := self._accept():
                        return request
                elif key.fileobj == 0:
                    for pid, _ in self._asked.values():
                        os.kill(pid, signal.SIGKILL)
                    return None
                elif key.data in self._asked:
                    self._tell_end(key.data)
                elif (
                    isinstance(key.fileobj, socket.socket) and key.fileobj in self._asked
                ):  # its command may have ended
                    self._pass_on(key.fileobj)

    def _accept(self) -> Request | None:
        asked, _ = self._listening.accept()
        request = _received(asked)
        if request is None:
            asked.close()
            return None
        pid = os.fork()
        if pid == 0:
            asked.close()
            self._leave()
            return request
        for file in (request.place, *request.streams.values()):
            os.close(file)
        end = os.pidfd_open(pid)
        self._asked[asked] = pid, end
        self._waiting.register(asked, selectors.EVENT_READ)
        self._waiting.register(end, selectors.EVENT_READ, asked)
        return None

    def _leave(self) -> None:
        """In a child: close what is the server's."""
        self._waiting.close()
        self._listening.close()
        for asked, (_, end) in self._asked.items():
            asked.close()
            os.close(end)

    def _pass_on(self, asked: socket.socket) -> None:
        """A byte is a signal to pass on; where there is none any more, whoever asked was killed, and so is it."""
        pid, _ = self._asked[asked]
        try:
            numbers = asked.recv(64)
        except ConnectionError:
            numbers = b""
        for number in numbers:
            os.kill(pid, number)
        if not numbers:
            self._waiting.unregister(asked)
            os.kill(pid, signal.SIGKILL)

    def _tell_end(self, asked: socket.socket) -> None:
        pid, end = self._asked.pop(asked)
        _, status = os.waitpid(pid, 0)
        self._waiting.unregister(end)
        os.close(end)
        if asked in self._waiting.get_map():
            self._waiting.unregister(asked)
        code = os.waitstatus_to_exitcode(status)
        with asked, contextlib.suppress(ConnectionError):
            asked.sendall(code.to_bytes(4, sys.byteorder, signed=True))


def _received(asked: socket.socket) -> Request | None:
    """What is asked for; None where whoever asked has gone before it was said."""
    message, files, _, _ = socket.recv_fds(asked, _PIECE, 4)
    head, found, rest = message.partition(b"\n")
    if not found:
        return None
    (mask,), present, ignored, (words,), (variables,) = (
        [int(number) for number in part.split(b",") if number] for part in head.split(b" ")
    )
    while len(rest) < words + variables:
        piece = asked.recv(_PIECE)
        if not piece:
            return None
        rest += piece
    place, *streams = files
    return Request(
        words=[os.fsdecode(word) for word in rest[:words].split(b"\0")],
        environ=dict(variable.split(b"=", 1) for variable in rest[words : words + variables].split(b"\0") if variable),
        mask=mask,
        ignored=ignored,
        place=place,
        streams=dict(zip(present, streams, strict=True)),
    )


def _become(request: Request) -> None:
    """Be the process that `python -m MODULE ARGUMENT…` starts, as far as a process can tell, and do what it does."""
    os.setpgid(0, 0)
    os.fchdir(request.place)
    os.close(request.place)
    os.umask(request.mask)
    for number in range(3):
        if number in request.streams:
            os.dup2(request.streams[number], number)
            os.close(request.streams[number])
        else:
            os.close(number)
    for number in request.ignored:
        signal.signal(number, signal.SIG_IGN)
    module, *arguments = request.words
    if not _is_as_here(request.environ):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execve(sys.executable, [sys.executable, "-m", *request.words], request.environ)  # noqa: S606 - itself, anew
    os.environb.clear()
    os.environb.update(request.environ)
    if not _locale(request.environ):
        os.environb[b"LC_CTYPE"] = b"C.UTF-8"
    time.tzset()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.pycache_prefix = os.environ.get("PYTHONPYCACHEPREFIX") or None
    _open_streams(is_buffered=not os.environ.get("PYTHONUNBUFFERED"))
    with contextlib.suppress(FileNotFoundError):
        sys.path[0] = os.getcwd()  # noqa: PTH109 - as it is spelled by an interpreter that starts
    sys.argv[:] = [module, *arguments]


def _end_after(module: str) -> NoReturn:
    """Run the module, and end as an interpreter does, but take nothing apart, which takes longer than most commands."""
    code: Any = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as at the end of any process
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code if isinstance(code, int) else int(bool(code)))


# Set anew for each command, so that it matters not how the server was started.
_HEEDED = {b"PYTHONDONTWRITEBYTECODE", b"PYTHONPYCACHEPREFIX", b"PYTHONUNBUFFERED"}


def _is_as_here(environ: Mapping[bytes, bytes]) -> bool:
    """Whether an interpreter with these variables would be as this one is, but for what is set anew."""
    return _locale(environ) in (b"", b"C.UTF-8") and _heard(environ) == _heard(os.environb)


def _locale(environ: Mapping[bytes, bytes]) -> bytes:
    """The one that characters are read by. Where there is none, Python takes C.UTF-8, and tells what it starts so."""
    return next(filter(None, map(environ.get, (b"LC_ALL", b"LC_CTYPE", b"LANG"))), b"")


def _heard(environ: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """What an interpreter reads while it starts."""
    return {name: value for name, value in environ.items() if name.startswith(b"PYTHON") and name not in _HEEDED}


def _open_streams(*, is_buffered: bool) -> None:
    """Standard input, output and error as an interpreter opens them when it starts."""
    kinds = (("stdin", "r", "surrogateescape"), ("stdout", "w", "surrogateescape"), ("stderr", "w", "backslashreplace"))
    for number, (name, mode, errors) in enumerate(kinds):
        stream: Any = None
        with contextlib.suppress(OSError):  # where it is closed, there is none
            raw = open(number, f"{mode}b", -1 if is_buffered or mode == "r" else 0, closefd=False)  # noqa: SIM115 - stands until the end
            stream = io.TextIOWrapper(
                raw,
                encoding="utf-8",
                errors=errors,
                newline="\n" if mode == "w" else None,
                line_buffering=name == "stderr" or raw.isatty(),
                write_through=mode == "w" and not is_buffered,
            )
            stream.mode = mode
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


if __name__ == "__main__":
    main()
