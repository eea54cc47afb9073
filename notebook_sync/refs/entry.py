"""What a ref and a stream entry look like, the same in every hot memory. Pure."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

from notebook_sync.files.note import Ref
from notebook_sync.refs.base import Entry

ANNOUNCED = frozenset({"created", "opened", "updated", "moved", "deleted"})
SUMMARY_LIMIT = 200
_SCORE = 0.5


def ref_fields(ref: Ref) -> dict[str, str]:
    """The fields of a ref's hash, all text; `content`, `source`, `tags`, `score`, `timestamp` are there for recall."""
    summary = ref.summary[:SUMMARY_LIMIT]
    return {
        "type": "notebook_ref",
        "notebook_id": ref.id,
        "title": ref.title,
        "summary": summary,
        "collection": ref.collection,
        "updated_at": ref.updated_at.isoformat(),
        "status": ref.status,
        "version": str(ref.version),
        "digest": ref.digest,
        "agent": ref.agent,
        "path": ref.path,
        "content": f"[{ref.title}] {summary}",
        "source": "notebook",
        "tags": ref.collection,
        "score": str(_SCORE),
        "timestamp": f"{ref.updated_at.timestamp():.3f}",
    }


def entry_for(ref: Ref, now: datetime) -> Entry:
    """The stream entry that tells what happened to a note. Told twice, it has the same id."""
    told = f"{ref.id}\n{ref.serial}\n{ref.version}\n{ref.action}\n{ref.digest}\n{ref.path}"
    fields: dict[str, Any] = ref_fields(ref)
    return {
        "id": hashlib.sha256(told.encode()).hexdigest()[:16],
        "content": fields["content"],
        "source": "notebook",
        "tags": [ref.collection],
        "score": _SCORE,
        "timestamp": now.astimezone(UTC).isoformat(),
        "action": ref.action,
        "ref": {key: fields[key] for key in ("notebook_id", "title", "collection", "status", "version", "path")},
    }


def once_each(entries: list[Entry]) -> list[Entry]:
    """The entries without repetitions of one id, each where it was told first."""
    first: dict[str, Entry] = {}
    for entry in entries:
        first.setdefault(entry["id"], entry)
    return list(first.values())
