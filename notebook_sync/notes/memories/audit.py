"""What the memories of a notebook lack, counted and told one by one; nothing is changed. A memory that the session may
not read is not counted, and a link to it leads nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from statistics import fmean, pstdev
from typing import Any

from notebook_sync.errors import UnreadableFile
from notebook_sync.files.vault import Vault
from notebook_sync.mirror.base import Mirror
from notebook_sync.mirror.memories import Memory
from notebook_sync.notes.memories.findings import Finding, findings_in, is_sound
from notebook_sync.notes.memories.reach import MemoryReach
from notebook_sync.notes.memories.text import FOLDER
from notebook_sync.sessions import Session

# More than that nobody reads; they are counted.
MOST_FINDINGS = 1000
_SIMILAR = "similar"
_DIGITS = 4


class MemoryAudit:
    """For one notebook. `follow` brings the rows of memories in step with the files."""

    def __init__(
        self, vault: Vault, reach: MemoryReach, mirror: Callable[[], Mirror], follow: Callable[[], object]
    ) -> None:
        self._vault = vault
        self._reach = reach
        self._mirror = mirror
        self._follow = follow

    def audit(self, session: Session) -> dict[str, Any]:
        """The counts, and the first findings by path. Raises BackendDown."""
        memories, findings = self.found(session)
        return counted(memories, findings)

    def found(self, session: Session) -> tuple[list[Memory], list[Finding]]:
        """The memories that the session may know of, and all that is amiss with them, by path. Raises BackendDown."""
        self._follow()
        memories = list(self._reach.all(session))
        ids = {memory.id for memory in memories}
        known = {row.path: row for row in self._mirror().known([FOLDER])}
        findings: list[Finding] = []
        for memory in sorted(memories, key=lambda one: one.path):
            row = known.get(memory.path)
            if row is not None and row.stale:
                advice = "mend the file; until then its last good text counts"
                findings.append(Finding(memory.path, 1, row.stale, advice, "field", bool(memory.provenance)))
            elif not is_sound(memory, ids) or (row is not None and row.problems):
                with suppress(FileNotFoundError, UnreadableFile):
                    findings += findings_in(memory, self._vault.read(memory.path)[0], ids)
        return memories, findings


def counted(memories: Sequence[Memory], findings: Sequence[Finding]) -> dict[str, Any]:
    """The shape that `--json` prints. Means, deviations and shares are None of nothing."""
    about = Counter(finding.about for finding in findings)
    priorities = [memory.priority for memory in memories]
    links = [link for memory in memories for link in memory.relations]
    tags = [len(memory.tags) for memory in memories]
    scores = [memory.score for memory in memories if memory.score is not None]
    return {
        "memories": len(memories),
        "timestamps": {"missing": about["missing"], "unparsable": about["unparsable"]},
        "agents": {"unknown": about["agent"]},
        "unstructured": sum(not memory.is_structured for memory in memories),
        "needs_review": about["needs_review"],
        "importance": {
            **_spread(priorities),
            "saturated": _share(max(Counter(priorities).values(), default=0), len(priorities)),
        },
        "similar_share": _share(sum(link.type == _SIMILAR for link in links), len(links)),
        "links": len(links),
        "links_broken": about["link"],
        "tags": {"per_memory": _spread(tags)["mean"], "none": tags.count(0)},
        "score": _spread(scores),
        "findings": [finding.as_dict() for finding in findings[:MOST_FINDINGS]],
        "findings_left_out": max(len(findings) - MOST_FINDINGS, 0),
    }


def _spread(values: Sequence[float]) -> dict[str, float | None]:
    if not values:
        return {"mean": None, "sigma": None}
    return {"mean": round(fmean(values), _DIGITS), "sigma": round(pstdev(values), _DIGITS)}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, _DIGITS) if whole else None
