"""When to try again what failed."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

_PAUSE_SECONDS = (0.5, 30.0)


@dataclass(slots=True)
class Backoff:
    """When to try again something that failed: later each time, and not all processes at once."""

    reason: str = ""
    due: float = float("inf")
    _what: str = ""
    _pause: float = field(default=_PAUSE_SECONDS[0])

    def failed(self, reason: str, what: str = "") -> bool:
        """Note a failure of `what`; whether it worked before. The reason may be worded anew at each try."""
        news = not self.reason or what != self._what
        self.reason, self._what = reason, what
        self.due = time.monotonic() + self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, not a secret
        self._pause = min(self._pause * 2, _PAUSE_SECONDS[1])
        return news

    def hurry(self) -> None:
        """What made it fail may be over: try at once."""
        if self.reason:
            self.due = 0.0

    def worked(self) -> str:
        """Note a success; the reason of the failure it ends, or ""."""
        ended = self.reason
        self.reason, self.due, self._pause = "", float("inf"), _PAUSE_SECONDS[0]
        return ended
