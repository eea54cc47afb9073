"""Waiting in tests: for a condition, with a deadline, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable

_POLL_SECONDS = 0.01


def eventually(condition: Callable[[], object], what: str, deadline: float = 30.0) -> None:
    """Return once the condition is true; fail, saying what did not come to be, after `deadline` seconds."""
    end = time.monotonic() + deadline
    while not condition():
        assert time.monotonic() < end, f"still not so: {what}"
        time.sleep(_POLL_SECONDS)  # between two looks, up to the deadline
