"""Several checks in one test, where what they need is dear to make: all of them run, and all that fail are told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

Check = Callable[[object], AbstractContextManager[None]]


@contextlib.contextmanager
def together() -> Iterator[Check]:
    """Within it, `with check(what):` for each. At its end, fails with every `what` that did not hold.

    What is no assertion is a fault, and ends the test there.
    """
    failed: list[str] = []

    @contextlib.contextmanager
    def check(what: object) -> Iterator[None]:
        try:
            yield
        except AssertionError as error:
            failed.append(f"{what}: {error}")

    yield check
    assert not failed, f"{len(failed)} failed:\n" + "\n".join(failed)
