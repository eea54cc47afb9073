"""Reading and parsing files for a sweep: here, or ahead of it in another process when there are many.

Parsing is what a cold sync waits for, and it holds the interpreter's lock; writing the batches is the other half.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from notebook_sync.errors import UnreadableFile
from notebook_sync.files.note import PARSER_REVISION
from notebook_sync.files.parse import parse
from notebook_sync.files.unfinished import looks_unfinished
from notebook_sync.files.vault import Vault, is_racy
from notebook_sync.mirror.base import Known
from notebook_sync.sync.diff import Look

# Below this another process costs more to start than it saves.
_WORTH_A_PROCESS = 1500

Order = Sequence[tuple[str, str]]


def look_at(vault: Vault, path: str, digest: str, encoding: str) -> Look:
    """What is at `path`. Bytes with this `digest` are not parsed: the look then has a stamp and no note."""
    try:
        raw, stamp = vault.read(path)
    except FileNotFoundError:
        return Look(path)
    except UnreadableFile as error:
        return Look(path, refusal=error.reason)
    racy = is_racy(stamp)
    if digest and digest == hashlib.sha256(raw).hexdigest():
        return Look(path, stamp, racy=racy)
    return Look(path, stamp, parse(path, raw, encoding=encoding), unfinished=looks_unfinished(raw), racy=racy)


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
        with _Reader(vault, encoding) as reader:
            yield from reader.carry_out(orders)


class _Reader:
    """Another process that reads ahead by one batch; what it cannot do is done here."""

    def __init__(self, vault: Vault, encoding: str) -> None:
        self._vault = vault
        self._encoding = encoding
        self._process = subprocess.Popen(
            [sys.executable, "-m", "notebook_sync.sync.reading"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            process_group=0,  # a terminal's Ctrl-C is for the process that reads, which ends this one
        )

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def carry_out(self, orders: Sequence[Order]) -> Iterator[list[Look]]:
        """The looks of each order. Two orders are under way at a time, so that the reader never waits."""
        works = self._send((self._vault.root, self._vault.max_file_bytes, self._encoding), orders[0])
        for order, following in zip(orders, [*orders[1:], None], strict=True):
            works = works and (following is None or self._send(following))
            found = self._receive() if works else None
            works = found is not None
            yield found or [look_at(self._vault, path, digest, self._encoding) for path, digest in order]

    def _send(self, *messages: object) -> bool:
        pipe = self._process.stdin
        try:
            for message in messages:
                pickle.dump(message, pipe)  # type: ignore[arg-type]
            pipe.flush()  # type: ignore[union-attr]
        except OSError:
            return False
        return True

    def _receive(self) -> list[Look] | None:
        try:
            found: list[Look] = pickle.load(self._process.stdout)  # type: ignore[arg-type]  # noqa: S301 - our own child
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
