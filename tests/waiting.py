"""Waiting for a condition, with a deadline, instead of for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_POLL_SECONDS = 0.01


def eventually(condition: Callable[[], T], what: str, deadline: float = 30.0) -> T:
    """Return the first true result of `condition`; fail, naming `what` was expected, after `deadline` seconds."""
    end = time.monotonic() + deadline
    while not (result := condition()):
        assert time.monotonic() < end, f"after {deadline:g} s still not true: {what}"
        time.sleep(_POLL_SECONDS)  # between two looks, up to the deadline
    return result
