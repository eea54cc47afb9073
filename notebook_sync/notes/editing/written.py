"""What a tool that makes or changes a note answers, whatever kind of note it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from notebook_sync.files.provenance import EXTERNAL


@dataclass(frozen=True, slots=True)
class Written:
    """A note after it was written. `version` is None where the mirror could not be told, `changed` names what is new
    of it, `external` says that somebody else's words stand in it."""

    notebook_id: str
    path: str
    title: str
    collection: str
    version: int | None
    status: str
    digest: str
    changed: tuple[str, ...]
    commit: str | None
    warnings: tuple[str, ...] = ()
    external: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        return {
            "notebook_id": self.notebook_id,
            "path": self.path,
            "title": self.title,
            "collection": self.collection,
            "version": self.version,
            "status": self.status,
            "digest": self.digest,
            "changed": list(self.changed),
            "commit": self.commit,
            "warnings": list(self.warnings),
            **({"provenance": EXTERNAL} if self.external else {}),
        }
