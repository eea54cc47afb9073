"""What refs, entries and checkpoints look like, the same in every hot memory. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from notebook_sync.files.note import Ref
from notebook_sync.refs.base import CHECKPOINTS_KEPT, Checkpoint, Entry

ANNOUNCED = frozenset({"created", "opened", "updated", "moved", "deleted"})
SUMMARY_LIMIT = 200
# Of a hash, what stands there as text.
ENTRY_FIELDS = ("content", "source", "tags", "score", "timestamp", "agent", "provenance")
REF_FIELDS = (
    *("type", "notebook_id", "title", "summary", "collection", "updated_at", "status", "version", "digest", "path"),
    *ENTRY_FIELDS,
)
NOTEBOOK = "notebook"
_SCORE = 0.5
# The last second that a datetime can be.
_LAST = 253_402_300_799.0


def new_entry(
    entry_id: str,
    content: str,
    *,
    now: datetime,
    source: str = "",
    tags: Iterable[str] = (),
    score: float = _SCORE,
    agent: str = "",
    provenance: str | None = None,
) -> Entry:
    """An entry for the stream or long-term memory. A comma parts tags, as it does where they are stored."""
    entry = {
        "id": entry_id,
        "content": _storable(content),
        "source": _storable(source),
        "tags": _tags(_storable(",".join(tags))),
        "score": float(score),
        "timestamp": iso(now),
    }
    return entry | _known(agent=agent, provenance=provenance)


def ref_fields(ref: Ref) -> dict[str, str]:
    """The fields of a ref's hash, all text; `content`, `source`, `tags`, `score`, `timestamp` are there for recall."""
    return {
        "type": "notebook_ref",
        "notebook_id": ref.id,
        "title": ref.title,
        "summary": ref.summary[:SUMMARY_LIMIT],
        "collection": ref.collection,
        "updated_at": ref.updated_at.isoformat(),
        "status": ref.status,
        "version": str(ref.version),
        "digest": ref.digest,
        "agent": ref.agent,
        "path": ref.path,
        "provenance": ref.provenance or "",
        "content": _content(ref),
        "source": NOTEBOOK,
        "tags": ref.collection,
        "score": str(_SCORE),
        "timestamp": f"{ref.updated_at.timestamp():.3f}",
    }


def entry_for(ref: Ref, at: str) -> Entry:
    """The stream entry that tells what happened to a note, `at` as `iso` tells it. Told twice, it has the same id."""
    told = f"{ref.id}\n{ref.event}\n{ref.version}\n{ref.action}\n{ref.digest}\n{ref.path}"
    opened_by = ref.agent if ref.action == "opened" else ""  # who changed a note is not known here
    if opened_by:
        told += f"\n{opened_by}"
    entry = {
        "id": hashlib.sha256(told.encode()).hexdigest()[:16],
        "content": _content(ref),
        "source": NOTEBOOK,
        "tags": [ref.collection],
        "score": _SCORE,
        "timestamp": at,
        "action": ref.action,
        "ref": {
            "notebook_id": ref.id,
            "title": ref.title,
            "collection": ref.collection,
            "status": ref.status,
            "version": str(ref.version),
            "path": ref.path,
        },
    }
    return entry | _known(agent=opened_by, provenance=ref.provenance)


def entry_of_ref(fields: Mapping[str, str]) -> Entry:
    """What recall tells of a note whose ref it found."""
    entry = entry_from_hash(fields["notebook_id"], {**fields, "agent": ""})  # who made a note neither logged nor opened
    told = ("notebook_id", "title", "collection", "status", "version", "path")
    return {**entry, "ref": {key: fields.get(key, "") for key in told}}


def is_logged(entry: Entry) -> bool:
    """Whether it was logged, and does not only tell of a note, of which recall finds the ref."""
    return "action" not in entry


def entry_hash(entry: Entry) -> dict[str, str]:
    """The fields of a logged or kept entry's hash, as those of a ref that are there for recall."""
    return {
        "content": entry["content"],
        "source": entry["source"],
        "tags": ",".join(entry["tags"]),
        "score": str(entry["score"]),
        "timestamp": f"{datetime.fromisoformat(entry['timestamp']).timestamp():.3f}",
        "agent": entry.get("agent", ""),
        "provenance": entry.get("provenance", ""),
    }


def entry_from_hash(entry_id: str, fields: Mapping[str, str]) -> Entry:
    """The entry that a hash holds. Other programs write there too: what is missing or no number is taken as usual."""
    when = datetime.fromtimestamp(_number(fields.get("timestamp"), 0.0, _LAST), UTC)
    entry = {
        "id": entry_id,
        "content": fields.get("content", ""),
        "source": fields.get("source", ""),
        "tags": _tags(fields.get("tags", "")),
        "score": _number(fields.get("score"), _SCORE, 1.0),
        "timestamp": iso(when),
    }
    return entry | _known(agent=fields.get("agent", ""), provenance=fields.get("provenance", ""))


def entry_from_json(text: str) -> Entry | None:
    """The entry that a line of a list holds, read as charitably; None for what is none."""
    try:
        told = json.loads(text)
        when = datetime.fromisoformat(told["timestamp"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if when.tzinfo is None or not isinstance(told.get("content"), str):
        return None
    tags = told.get("tags")
    return {
        **told,
        "id": str(told.get("id") or hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]),
        "source": str(told.get("source", "")),
        "tags": _tags(",".join(map(str, tags)) if isinstance(tags, list) else str(tags or "")),
        "score": _number(str(told.get("score", "")), _SCORE, 1.0),
    }


def once_each(entries: list[Entry]) -> list[Entry]:
    """The entries without repetitions of one id, each where it was told first."""
    first: dict[str, Entry] = {}
    for entry in entries:
        first.setdefault(entry["id"], entry)
    return list(first.values())


def day_of(moment: datetime | str, timezone: tzinfo) -> str:
    """The day of a time, or of an entry's timestamp."""
    when = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return when.astimezone(timezone).date().isoformat()


def iso(moment: datetime) -> str:
    """A time as entries tell it: UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def light_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    """What a list of checkpoints tells of one."""
    return {
        **{key: checkpoint[key] for key in ("id", "name", "at", "commit")},
        "created_by": checkpoint.get("created_by", ""),
        "notes": len(checkpoint["notebook"]),
        "entries": sum(len(entries) for entries in checkpoint["days"].values()),
        "longterm": len(checkpoint["longterm"]),
    }


def newest_first(lights: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Checkpoints in the order they are listed, and kept."""
    return sorted(lights, key=lambda light: (datetime.fromisoformat(light["at"]), light["id"]), reverse=True)


def surplus(lights: Iterable[dict[str, Any]], spare: Collection[str]) -> list[str]:
    """The ids of the checkpoints that are too many. An agent's never pushes out one of the owner's: agents have the
    places that the owner's leave free, and one in any case."""
    owners: list[str] = []
    agents: list[str] = []
    for light in newest_first(lights):
        (agents if light.get("created_by", "").startswith("agent:") else owners).append(light["id"])
    too_many = [*owners[CHECKPOINTS_KEPT:], *agents[max(1, CHECKPOINTS_KEPT - len(owners)) :]]
    return [checkpoint_id for checkpoint_id in too_many if checkpoint_id not in spare]


def _content(ref: Ref) -> str:
    """What recall reads of a note."""
    return f"[{ref.title}] {ref.summary[:SUMMARY_LIMIT]}"


def _storable(text: str) -> str:
    """Text that UTF-8 can hold: a lone surrogate becomes what is in no text."""
    return text.encode(errors="replace").decode()


def _known(**fields: str | None) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}


def _number(text: str | None, usual: float, highest: float) -> float:
    """A number from 0 to `highest`."""
    try:
        return min(max(float(text or usual), 0.0), highest)
    except ValueError:
        return usual


def _tags(text: str) -> list[str]:
    """The tags of a list with commas. No tag holds a NUL, at which an index would end it."""
    return list(dict.fromkeys(filter(None, (tag.strip() for tag in text.replace("\0", "").split(",")))))
