"""Reading and parsing files for a sweep: here, or ahead of it in other processes when there are many.

Parsing is what a cold sync waits for, and it holds the interpreter's lock; writing the batches is the other half.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from notebook_sync.errors import UnreadableFile
from notebook_sync.files.note import PARSER_REVISION
from notebook_sync.files.parse import parse
from notebook_sync.files.unfinished import looks_unfinished
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import Known
from notebook_sync.own_process import own_environment
from notebook_sync.sync.diff import Look

# Below this another process costs more to start than it saves.
_WORTH_A_PROCESS = 1500
# Parsing takes twice as long as writing what was parsed.
_READERS = 2

Order = Sequence[tuple[str, str]]


def look_at(vault: Vault, path: str, digest: str, encoding: str) -> Look:
    """What is at `path`. Bytes with this `digest` are not parsed: the look then has a stamp and no note."""
    try:
        found = vault.read_closely(path)
    except FileNotFoundError:
        return Look(path)
    except UnreadableFile as error:
        return Look(path, refusal=error.reason)
    if digest and digest == hashlib.sha256(found.raw).hexdigest():
        return Look(path, found.stamp, racy=found.racy)
    note = parse(path, found.raw, encoding=encoding)
    return Look(path, found.stamp, note, unfinished=looks_unfinished(found.raw), racy=found.racy)


def digest_to_trust(row: Known | None) -> str:
    """The digest that lets a file be taken as known without being parsed, or "" when its row has to be made anew."""
    return row.digest if row is not None and row.id == row.wants and row.revision == PARSER_REVISION else ""


def looks(
    vault: Vault, paths: Sequence[str], known: Mapping[str, Known], *, encoding: str, batch: int, force: bool
) -> Iterator[list[Look]]:
    """Looks at the paths, in order, `batch` at a time."""
    orders = [
        [(path, "" if force else digest_to_trust(known.get(path))) for path in paths[start : start + batch]]
        for start in range(0, len(paths), batch)
    ]
    if len(paths) < _WORTH_A_PROCESS or (os.cpu_count() or 1) < 2:
        for order in orders:
            yield [look_at(vault, path, digest, encoding) for path, digest in order]
    else:
        with contextlib.ExitStack() as stack:
            readers = [stack.enter_context(_Reader(vault, encoding)) for _ in range(_READERS)]
            shares = [reader.carry_out(orders[turn::_READERS]) for turn, reader in enumerate(readers)]
            for turn in range(len(orders)):
                yield next(shares[turn % _READERS])


class _Reader:
    """Another process that reads ahead; what it cannot do is done here."""

    def __init__(self, vault: Vault, encoding: str) -> None:
        self._vault = vault
        self._encoding = encoding
        self._process = _start()
        self._sender: threading.Thread | None = None

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            if self._sender is not None:
                self._sender.join()  # its pipe is broken now
            self._process.communicate()

    def carry_out(self, orders: Sequence[Order]) -> Iterator[list[Look]]:
        """The looks of each order. The reader begins at once, before the first of them is asked for."""
        return self._answers(orders, self._send(orders))

    def _answers(self, orders: Sequence[Order], answers: IO[bytes] | None) -> Iterator[list[Look]]:
        for order in orders:
            found = _receive(answers) if answers is not None else None
            if found is None:
                answers = None
                found = [look_at(self._vault, path, digest, self._encoding) for path, digest in order]
            yield found

    def _send(self, orders: Sequence[Order]) -> IO[bytes] | None:
        """Where the answers come from. The orders are sent beside that: an order may be larger than the pipe, whose
        other end takes no more of them before its last answer is taken."""
        if self._process is None or self._process.stdin is None:
            return None
        first = (self._vault.root, self._vault.max_file_bytes, self._encoding)
        self._sender = threading.Thread(target=_write, args=(self._process.stdin, (first, *orders)), daemon=True)
        self._sender.start()
        return self._process.stdout


def _start() -> subprocess.Popen[bytes] | None:
    """The other process, or None where there is no room for one."""
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "notebook_sync.sync.reading"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=own_environment(),
            process_group=0,  # a terminal's Ctrl-C is for the process that reads, which ends this one
        )
    except OSError:
        return None


def _write(pipe: IO[bytes], messages: Sequence[object]) -> None:
    with contextlib.suppress(OSError):  # who waits for the answers learns of it there
        for message in messages:
            pickle.dump(message, pipe)
            pipe.flush()


def _receive(answers: IO[bytes]) -> list[Look] | None:
    try:
        found: list[Look] = pickle.load(answers)  # noqa: S301 - our own child
    except (OSError, EOFError, pickle.UnpicklingError):
        return None
    return found


def _serve(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Carry out orders until there are no more: the other end of `_Reader`."""
    root, max_file_bytes, encoding = pickle.load(orders)  # noqa: S301 - written by the process that started this one
    vault = Vault(root, max_file_bytes=max_file_bytes)
    while True:
        try:
            order: Order = pickle.load(orders)  # noqa: S301 - as above
        except EOFError:
            return
        pickle.dump([look_at(vault, path, digest, encoding) for path, digest in order], answers)
        answers.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
