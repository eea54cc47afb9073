"""What a run that embeds did. Values only: they are known without what embedding needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Embedded:
    """`embedded` notes and `facts` got vectors; notes are `behind` after it; of those that `failed` none can be made.
    `trouble` says why it ended early."""

    model: str = ""
    embedded: int = 0
    behind: int = 0
    failed: int = 0
    seconds: float = 0.0
    facts: int = 0
    trouble: str = ""
