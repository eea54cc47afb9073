"""The process of a bridge, spoken with by MCP over its standard streams, and always ended with all that it started.

The official SDK's transport lets what a server started live on where that server ends by itself, as a browser does,
and keeps a line without an end in memory. What a bridge started is its process group, everywhere; in sessions of their
own, it is who `bridge_descendants` finds, on Linux. A bridge that ends by itself may leave behind there whom it started
in its last second.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from notebook_sync.context.bridge_descendants import Descendants

_Received = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[_Received], MemoryObjectSendStream[SessionMessage]]

# What a bridge has to end by itself, and then once it is asked to: one that has a browser gives that five seconds.
_GRACE_SECONDS, _ASKED_SECONDS = 1.0, 6.0
_LOOK_SECONDS = 0.01
_DESCENDANTS_SECONDS = 1.0
_CHUNK = 1 << 16
# Of one message. No chat answers in a hundredth of it.
_LONGEST_LINE = 8 << 20
_KEPT_COMPLAINTS = 8 << 10
_LONGEST_COMPLAINT = 160
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_TELLS_WHY = re.compile(r"error|cannot|can't|unable|not found|no such|denied|failed|missing|invalid", re.IGNORECASE)


class BridgeProcess:
    """One process, which `connected` starts, in a session of its own.

    code: how it ended, where it did so unasked: an exit code, or less than 0 for a signal. said_too_much: it sent a
    message that is too long to be an answer.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        self._command = list(command)
        self._environment = dict(environment)
        self._folder = folder
        self._complaints = b""
        self.code: int | None = None
        self.said_too_much = False

    @property
    def complaint(self) -> str:
        """The last line in which it complained of something, short and without control characters; "" for none."""
        lines = _ESCAPES.sub("", self._complaints.decode(errors="replace")).splitlines()
        told = [" ".join("".join(one if one.isprintable() else " " for one in line).split()) for line in lines]
        return next((line[:_LONGEST_COMPLAINT] for line in reversed(told) if _TELLS_WHY.search(line)), "")

    @asynccontextmanager
    async def connected(self) -> AsyncGenerator[Streams, None]:
        """A `Transport` of the SDK, while the process runs. Raises OSError where it cannot be started."""
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=self._environment,
            cwd=self._folder,
            start_new_session=True,
        )
        descendants = Descendants(process.pid)
        received, receiving = anyio.create_memory_object_stream[_Received](0)
        sending, to_send = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, _waited_for(process.stdout), received)
                tasks.start_soon(self._see_it_end, process, received)
                tasks.start_soon(_see_whom_it_starts, descendants)
                tasks.start_soon(_write, _waited_for(process.stdin), to_send)
                tasks.start_soon(self._hear, _waited_for(process.stderr))
                try:
                    yield receiving, sending
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                for stream in (received, receiving, sending, to_send):
                    stream.close()
                await _end(process, descendants)

    async def _read(self, answers: IO[bytes], received: MemoryObjectSendStream[_Received]) -> None:
        """Hand on each line that is a message; what else a program prints, as its name and version, is let go."""
        rest, length = [b""], 0
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while chunk := await _some(answers):
                *ended, last = chunk.split(b"\n")
                for part in ended:
                    line, rest, length = b"".join((*rest, part)), [], 0
                    with suppress(ValueError):
                        await received.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))
                rest.append(last)
                length += len(last)
                if length > _LONGEST_LINE:
                    self.said_too_much = True
                    break
            else:
                await _until(lambda: self.code is not None, _GRACE_SECONDS)
        received.close()

    async def _see_it_end(self, process: subprocess.Popen[bytes], received: MemoryObjectSendStream[_Received]) -> None:
        """Also where somebody whom it started holds its output open."""
        while process.poll() is None:
            await anyio.sleep(_LOOK_SECONDS)
        self.code = process.returncode
        await anyio.sleep(_GRACE_SECONDS)  # what it said last may be on its way
        received.close()

    async def _hear(self, complaints: IO[bytes]) -> None:
        while chunk := await _some(complaints):
            self._complaints = (self._complaints + chunk)[-_KEPT_COMPLAINTS:]


async def _write(given: IO[bytes], to_send: MemoryObjectReceiveStream[SessionMessage]) -> None:
    with suppress(BrokenPipeError):  # that it ended is seen where its answers are read
        async for message in to_send:
            left = message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            while left:
                await anyio.wait_writable(given)
                with suppress(BlockingIOError):
                    left = left[os.write(given.fileno(), left) :]


def _waited_for(pipe: IO[bytes] | None) -> IO[bytes]:
    """A pipe that nothing blocks on."""
    assert pipe is not None  # noqa: S101 - a pipe was asked for
    os.set_blocking(pipe.fileno(), False)
    return pipe


async def _some(pipe: IO[bytes]) -> bytes:
    """What is there next; nothing at its end."""
    while True:
        await anyio.wait_readable(pipe)
        with suppress(BlockingIOError):
            return os.read(pipe.fileno(), _CHUNK)


async def _until(is_so: Callable[[], bool], seconds: float) -> bool:
    """Whether it came to be so in time."""
    with anyio.move_on_after(seconds):
        while not is_so():
            await anyio.sleep(_LOOK_SECONDS)
        return True
    return False


async def _see_whom_it_starts(descendants: Descendants) -> None:
    while True:
        descendants.look()
        await anyio.sleep(_DESCENDANTS_SECONDS)


async def _end(process: subprocess.Popen[bytes], descendants: Descendants) -> None:
    """As MCP has it: its input ends, then it is asked to end, then it is ended; it, and all that it started."""
    descendants.look()  # before their parents end
    for pipe in (process.stdin, process.stdout, process.stderr):
        _waited_for(pipe).close()
    await _until(lambda: process.poll() is not None, _GRACE_SECONDS)
    descendants.look()
    _signal(process, descendants, signal.SIGTERM)
    if not await _until(lambda: not _signal(process, descendants, 0), _ASKED_SECONDS):
        descendants.look()
        _signal(process, descendants, signal.SIGKILL)
        await _until(lambda: process.poll() is not None, _GRACE_SECONDS)


def _signal(process: subprocess.Popen[bytes], descendants: Descendants, number: int) -> bool:
    """Whether anybody of its group, or else of its descendants, is there, to whom this was sent."""
    process.poll()  # until somebody asks how it ended, it is there
    is_outside = descendants.signal(number)
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return is_outside
    except PermissionError:  # somebody whom only another user may end
        return True
    return True
