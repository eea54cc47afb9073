"""Who descends from a process, also in a session of its own, as a browser has one. No process is taken for another that
has its number by now.

Known from Linux's /proc alone: where that is not there, nobody is found. Nor is who was started and had lost its parent
between two looks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class _Process:
    """began: when, in ticks since this machine started, as no later process of this number did."""

    number: int
    began: int


@dataclass(frozen=True, slots=True)
class _State:
    process: _Process
    parent: int
    group: int
    has_ended: bool


class Descendants:
    """Of the process `number`, which leads a group; it is there, though it may have ended."""

    def __init__(self, number: int) -> None:
        self._group = number
        first = _state_of(number)
        self._known = {first.process} if first else set[_Process]()

    def look(self) -> None:
        """Get to know who is there now. Whoever is known stays so when its parents end."""
        states = list(_states()) if self._known else []
        known = {state.process.number for state in states if state.process in self._known}
        while found := [each for each in states if each.parent in known and each.process.number not in known]:
            known |= {state.process.number for state in found}
        self._known |= {state.process for state in states if state.process.number in known}

    def signal(self, number: int) -> bool:
        """Whether anybody who is known is there outside of the group, to whom this was sent."""
        is_anybody_there = False
        for process in self._known:
            state = _state_of(process.number)
            if state is None or state.process != process or state.has_ended or state.group == self._group:
                continue
            with suppress(ProcessLookupError, PermissionError):  # it has just ended, or is another user's
                os.kill(process.number, number)
                is_anybody_there = True
        return is_anybody_there


def _states() -> Iterator[_State]:
    try:
        numbers = [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208 - names, not paths
    except OSError:
        return
    for number in numbers:
        if state := _state_of(number):
            yield state


def _state_of(number: int) -> _State | None:
    """None of one that is not there."""
    try:
        told = (_PROC / str(number) / "stat").read_bytes()
        # A program's name, in brackets, may have brackets in it.
        state, parent, group, *others = told.rpartition(b")")[2].split()
        return _State(_Process(number, int(others[16])), int(parent), int(group), state in (b"Z", b"X"))
    except (OSError, ValueError, IndexError):
        return None
