"""Reading, parsing and projecting files: here, or ahead of the writer in two processes where there are many.

That is what a cold sync waits for, and it holds the interpreter's lock; writing the rows is the other half.
"""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import tzinfo
from typing import TYPE_CHECKING

import msgspec

from notebook_sync.errors import NoSuchNote, NotebookError
from notebook_sync.files.beneath import looks_unfinished, why_not_text
from notebook_sync.files.tree import Tree
from notebook_sync.search.words import WordAnalyzer
from notebook_sync.settings import Settings
from notebook_sync.sync.diff import Look

if TYPE_CHECKING:
    import subprocess

# Below this, another process costs more to start than it saves.
WORTH_A_PROCESS = 500
_PROCESSES = 2
_BOM = b"\xef\xbb\xbf"

# A path, and the digest of bytes that need no parsing ("" for none).
Order = tuple[str, str]


class Reader(msgspec.Struct, frozen=True):
    """Looks at single files of one notebook."""

    tree: Tree
    settings: Settings
    zone: tzinfo
    analyzer: WordAnalyzer

    def look(self, path: str, digest: str = "") -> Look:
        """What is at `path`. Never raises: what is wrong with one file is said in its look."""
        # Where nothing changed, nothing is parsed, and a `sync` takes less time than these two take to load.
        from notebook_sync.files.parse import parse
        from notebook_sync.sync.project import project

        try:
            read = self.tree.read(path)
            if digest and digest == hashlib.sha256(read.raw).hexdigest():
                return Look(path, read.stamp, read.mtime)
            note = parse(path, read.raw, timezone=self.zone)
            fault = next((str(problem) for problem in note.problems if problem.severe), "")
            unnamed = "" if fault else why_not_text(read.raw)
            projection = project(note, read.stamp, read.mtime, self.settings.prompt, self.analyzer, damage=unnamed)
        except NoSuchNote:
            return Look(path)
        except NotebookError as error:
            return Look(path, fault=getattr(error, "reason", error.message))
        except Exception as error:  # a fault of the program, which must cost this one file only
            return Look(path, fault=f"cannot be parsed: {type(error).__name__}: {error}")
        is_guarded = note.collection in ("runtime", "facts") or projection.document["audience"] == "apart"
        is_emptied = is_guarded and not read.raw.removeprefix(_BOM).strip()
        return Look(path, read.stamp, read.mtime, projection, fault or unnamed, is_emptied, looks_unfinished(read.raw))

    def looks(self, orders: Sequence[Order]) -> Iterator[list[Look]]:
        """Looks at many files in order, a batch of the settings' size at a time."""
        is_many = len(orders) >= WORTH_A_PROCESS and (os.cpu_count() or 1) >= _PROCESSES
        # The writer begins early, and one of the processes does not read all of the last batch alone.
        size = min(self.settings.sync.batch, len(orders) // 8 if is_many else len(orders)) or 1
        batches = [orders[start : start + size] for start in range(0, len(orders), size)]
        others = [_start(self, batches[turn::_PROCESSES]) for turn in range(_PROCESSES)] if is_many else []
        try:
            for turn, batch in enumerate(batches):
                looks = _answer(others[turn % _PROCESSES]) if others else None
                yield looks or [self.look(*order) for order in batch]
        finally:
            for other in others:
                other.kill()
                other.communicate()


def _start(reader: Reader, batches: Sequence[Sequence[Order]]) -> subprocess.Popen[bytes]:
    """Another process that reads. Its orders are in a file: to send them while it answers would wait for ever once both
    pipes are full."""
    import subprocess  # the two take 10 ms to load, and most commands read few files
    import tempfile

    with tempfile.TemporaryFile() as orders:
        pickle.dump((reader.tree, reader.settings, reader.zone, batches), orders)
        orders.seek(0)
        return subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],  # -P: no file of the notebook can pass for a module
            stdin=orders,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            process_group=0,  # a terminal's Ctrl-C is for the process that reads, which ends this one
        )


def _answer(other: subprocess.Popen[bytes]) -> list[Look] | None:
    """The next batch that the other process has read; None where it has ended, so that it is read here."""
    with suppress(OSError, EOFError, pickle.UnpicklingError):
        return pickle.load(other.stdout)  # type: ignore[arg-type, no-any-return]  # noqa: S301 - from our own child
    return None


def _serve() -> None:
    """Carry out the orders on standard input: what `_start` starts."""
    tree, settings, zone, batches = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    reader = Reader(tree, settings, zone, WordAnalyzer())
    gc.disable()  # what is read has no cycles, and to look for them takes a tenth of the time
    for batch in batches:
        pickle.dump([reader.look(*order) for order in batch], sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
