"""A progress bar for people, on a terminal and for work that lasts; otherwise nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tqdm import tqdm

_PATIENCE_SECONDS = 0.5


@contextmanager
def progress(work: str) -> Iterator[Callable[[int, int], None] | None]:
    """What to call with `(done, total)` while the work goes on; None where nobody would see it."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(work)
    try:
        yield bar.show
    finally:
        bar.close()


class _Bar:
    def __init__(self, work: str) -> None:
        self._work = work
        self._begun = time.monotonic()
        self._bar: tqdm[NoReturn] | None = None

    def show(self, done: int, total: int) -> None:
        if self._bar is None:
            if time.monotonic() - self._begun < _PATIENCE_SECONDS:
                return
            from tqdm import tqdm  # 30 ms that short work does not pay

            self._bar = tqdm(total=total, desc=self._work, unit=" files", file=sys.stderr, leave=False)
        self._bar.total = total
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
