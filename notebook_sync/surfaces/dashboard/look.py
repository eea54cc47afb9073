"""How a notebook is, for pages that may not wait for it: a database that hangs costs a moment, and is asked once for
all pages that are open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

# As long as a page waits. A database that is away is waited for by a thread, which may take some seconds.
PATIENCE_SECONDS: Final = 1.5
Status = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known: `status` is None before the first answer, and the one before where it `is_awaited`."""

    status: Status | None
    is_awaited: bool


class Look:
    """Looks by `status`, in threads that end with the process. One that takes long is joined by whoever asks next."""

    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status
        self._lock = threading.Lock()
        self._slow: Future[Status] | None = None
        self._last: Status | None = None

    def seen(self, patience: float = PATIENCE_SECONDS) -> Seen:
        """The notebook as it is now, or what is known of it. Raises what `status` raises."""
        return self.begin()(patience)

    def begin(self) -> Callable[[float], Seen]:
        """Look, while something else is done. What `seen` is, for whoever has so much patience then."""
        with self._lock:
            is_hung = self._slow is not None and not self._slow.done()
            return partial(self._seen, self._slow if self._slow is not None and is_hung else self._begun())

    def _seen(self, looking: Future[Status], patience: float) -> Seen:
        try:
            return Seen(looking.result(patience), is_awaited=False)
        except TimeoutError:
            with self._lock:
                self._slow = looking
            return Seen(self._last, is_awaited=True)

    def _begun(self) -> Future[Status]:
        looking: Future[Status] = Future()
        threading.Thread(target=self._look, args=(looking,), name="look", daemon=True).start()
        return looking

    def _look(self, looking: Future[Status]) -> None:
        try:
            self._last = self._status()
        except Exception as error:  # whoever waits for it is told
            looking.set_exception(error)
        else:
            looking.set_result(self._last)
