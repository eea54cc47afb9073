"""Stores that fail, and worlds that change, at a chosen store operation. They stand before a real store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from notebook_sync.mirror.base import Known, Mirror, Write
from notebook_sync.refs.base import Refs


class Crash(BaseException):
    """The process was killed at this point."""


class Fuse:
    """Counts store operations. When the count runs out, `act` is called once, before or after the effect."""

    def __init__(self) -> None:
        self.count = 0
        self._left = 0
        self._after = False
        self._act: Callable[[], object] | None = None

    def set(self, act: Callable[[], object], *, at: int, after: bool = False) -> None:
        """Act at the `at`th operation from now on (1 is the next)."""
        self._act, self._left, self._after = act, at, after

    def clear(self) -> None:
        self._act = None

    @property
    def is_set(self) -> bool:
        return self._act is not None

    def around(self, operation: Callable[[], Any]) -> Any:
        """Carry the operation out, and act where it is time to."""
        self.count += 1
        self._left -= 1
        due = self._act is not None and self._left <= 0
        if due and not self._after:
            self._burn()
        result = operation()
        if due and self._after:
            self._burn()
        return result

    def _burn(self) -> None:
        act, self._act = self._act, None
        if act is not None:
            act()


def raising(error: BaseException) -> Callable[[], object]:
    """An act for a fuse."""

    def act() -> None:
        raise error

    return act


class _Fused:
    def __init__(self, store: Any, fuse: Fuse) -> None:
        self._store = store
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found
        return lambda *args, **kwargs: self._fuse.around(lambda: found(*args, **kwargs))


def fused_mirror(mirror: Mirror, fuse: Fuse) -> Mirror:
    """The mirror, every operation of which goes through the fuse."""
    return cast("Mirror", _Fused(mirror, fuse))


def fused_refs(refs: Refs, fuse: Fuse) -> Refs:
    """Hot memory, every operation of which goes through the fuse."""
    return cast("Refs", _Fused(refs, fuse))


class WatchedMirror:
    """A mirror that proves of each `apply`: versions count changes of text exactly, and never go back."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mirror, name)

    def apply(self, writes: Sequence[Write]) -> list[Write]:
        before = self._rows()
        lost = self._mirror.apply(writes)
        self.writes += len(writes)
        for note_id, row in self._rows().items():
            old = before.get(note_id)
            if old is not None:
                assert row.version == old.version + (row.digest != old.digest), (old, row, writes)
        return lost

    def _rows(self) -> dict[str, Known]:
        return {row.id: row for row in self._mirror.known()}


class WatchedRefs:
    """Hot memory that counts what is written to it."""

    def __init__(self, refs: Refs) -> None:
        self._refs = refs
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._refs, name)

    def write(self, refs: Sequence[Any], *, announce: bool = True) -> None:
        self.writes += len(refs)
        self._refs.write(refs, announce=announce)
