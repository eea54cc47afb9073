"""What a reconcile did, and what a comparison found, in counts and names. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Tally:
    """Notes whose rows were written, in counts and by their `paths`."""

    added: int = 0
    updated: int = 0
    moved: int = 0
    deleted: int = 0
    paths: set[str] = field(default_factory=set)

    @property
    def wrote(self) -> bool:
        """Whether any note was added, updated, moved or deleted."""
        return bool(self.added or self.updated or self.moved or self.deleted)


@dataclass(slots=True)
class Report(Tally):
    """`failed` maps a path to why its file is not mirrored as it is; `left` are paths that notes moved away from;
    `by_hand` is what no tool wrote.

    `refs_trouble` says why hot memory could not be told, `facts_trouble` why the rows of facts could not be written;
    the mirror is written all the same, and these follow.
    """

    unchanged: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    left: set[str] = field(default_factory=set)
    by_hand: Tally = field(default_factory=Tally)
    refs_trouble: str = ""
    facts_trouble: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints; `refs_trouble` and `facts_trouble` are in it only where there is some."""
        return {
            "added": self.added,
            "updated": self.updated,
            "moved": self.moved,
            "deleted": self.deleted,
            "unchanged": self.unchanged,
            "failed": [{"path": path, "error": error} for path, error in sorted(self.failed.items())],
            "seconds": round(self.seconds, 3),
            **({"refs_trouble": self.refs_trouble} if self.refs_trouble else {}),
            **({"facts_trouble": self.facts_trouble} if self.facts_trouble else {}),
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not in step. `what`: unmirrored, stale, differs, orphan, no ref, old ref, orphan ref, old
    facts."""

    path: str
    what: str
    detail: str = ""


@dataclass(slots=True)
class Verdict:
    """The counts of files, rows and refs, and every difference between them."""

    consistent: bool = True
    files: int = 0
    mirror: int = 0
    refs: int = 0
    differences: list[Difference] = field(default_factory=list)
