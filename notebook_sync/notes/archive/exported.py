"""What an export made. Values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that is not in the archive, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Exported:
    """An archive that was made at `path`. `bytes` is its size."""

    path: str
    notes: int
    files: int
    bytes: int
    commits: int
    left_out: Sequence[LeftOut]
    warnings: Sequence[str] = ()
