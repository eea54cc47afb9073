"""What a look at the files did, and what a comparison found, in counts and names. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Report:
    """What looks did: counts of notes; `paths` are those whose rows were written or ended, in order.

    `faults` maps a path to why its row is not what the file says. `warnings` are about the run, not about one note.
    """

    added: int = 0
    updated: int = 0
    moved: int = 0
    deleted: int = 0
    unchanged: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0
    paths: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[dict[str, str]]:
        """The faults as `{path, error}`, by path."""
        return [{"path": path, "error": error} for path, error in sorted(self.faults.items())]

    def as_dict(self) -> dict[str, Any]:
        """The shape that `sync --json` prints."""
        counts = {name: getattr(self, name) for name in ("added", "updated", "moved", "deleted", "unchanged")}
        return {**counts, "failed": self.failed, "warnings": self.warnings, "seconds": round(self.seconds, 3)}


@dataclass(frozen=True, slots=True)
class Verified:
    """Files, index and servers compared: how many notes each has (None: not set, or not asked), and every difference as
    `{path, what, detail}`. `what`: missing, stale, differs, facts, orphan; of a server, what its publisher says."""

    files: int
    index: int
    mongodb: int | None
    redis: int | None
    differences: list[dict[str, str]]
