"""The records of an export that became no memory, kept as they stood there in a file beside it."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import BinaryIO


class LeftOver:
    """Makes the file when the first record is to be kept, and never writes over another. `trouble` says why it cannot,
    "" while it can; `path` is "" where there was nothing to keep."""

    def __init__(self, export: Path, *, is_wanted: bool) -> None:
        self._export = export
        self._is_wanted = is_wanted
        self._stack = ExitStack()
        self._file: BinaryIO | None = None
        self.path = ""
        self.trouble = ""

    def __enter__(self) -> LeftOver:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def keep(self, raw: bytes) -> None:
        """Keep a record, on a line of its own."""
        if not self._is_wanted or self.trouble:
            return
        try:
            if self._file is None:
                self._file = self._stack.enter_context(self._made())
                self.path = self._file.name
            self._file.write(raw.rstrip(b"\r\n") + b"\n")
            self._file.flush()
        except OSError as error:
            self.trouble = (
                f"what was left out could not be kept beside {self._export}: {(error.strerror or str(error)).lower()}; "
                "keep the export"
            )

    def _made(self) -> BinaryIO:
        for number in count(1):
            ending = ".left.jsonl" if number == 1 else f".left-{number}.jsonl"
            try:
                return self._export.with_name(self._export.name + ending).open("xb")
            except FileExistsError:
                continue
        raise AssertionError("there is always a next number")
