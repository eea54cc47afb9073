"""Rows of the MongoDB store: what is selected of them, how they become values, and how BSON's limits are met. Pure.

A row is a document with `_id` for `id`, and beside it `serial`, `event`, `written` (when it was put, in microseconds),
`words` (what the server would not find in its texts), `pending`, `awaits_ref` (its ref must be written or removed),
`gone` (a tombstone) and, for a tombstone or a row whose path another note took, an empty `path`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from notebook_sync.files.note import Ref, Stamp
from notebook_sync.mirror.base import Document, Known
from notebook_sync.mirror.document import beside_light, to_milliseconds, unsigned

Row = dict[str, Any]

KNOWN = [
    "wants", "path", "source", "metadata.version", "stale", "problems.line", "pending",
]  # fmt: skip
REF = [
    "title", "summary", "collection", "source.path", "source.digest", "metadata.updated_at", "metadata.status",
    "metadata.version", "metadata.created_by", "metadata.provenance", "pending", "serial", "event", "gone",
]  # fmt: skip
LIGHT = [
    "path", "collection", "title", "summary", "metadata.tags", "metadata.updated_at", "metadata.status",
    "metadata.created_by", "metadata.word_count", "metadata.version", "metadata.provenance", "metadata.created_at",
    "metadata.extra.topic", "metadata.extra.session_id", "metadata.extra.confidence", "language", "source_url",
]  # fmt: skip
# What a write must know of a row, and all that a tombstone keeps.
HEAD = [
    "wants", "path", "collection", "title", "summary", "source", "history", "usage", "metadata.created_by",
    "metadata.created_at", "metadata.created_from", "metadata.updated_at", "metadata.status", "metadata.version",
    "metadata.provenance", "serial", "event", "pending", "awaits_ref", "gone",
]  # fmt: skip
# What the store adds to a document.
_INTERNAL = frozenset({"_id", "serial", "event", "written", "words", "pending", "awaits_ref", "gone"})
# Parts of a document whose keys are the project's own: no person can choose them.
PLAIN = frozenset({"content", "sections", "metadata", "history", "source", "problems"})


def document_from(row: Row) -> Document:
    """The document of a whole row."""
    document = {"id": row["_id"], **{key: value for key, value in row.items() if key not in _INTERNAL}}
    for key in document.keys() - PLAIN:
        document[key] = _with_keys(document[key], _key_from_bson)
    document["metadata"]["extra"] = _with_keys(document["metadata"]["extra"], _key_from_bson)
    document["source"] = {key: _plain(value) for key, value in row["source"].items()}
    document["source"]["inode"] = unsigned(row["source"]["inode"])
    return document


def known_from(row: Row) -> Known:
    """What `KNOWN` selects of a row."""
    source = row["source"]
    return Known(
        id=row["_id"],
        wants=row["wants"],
        has_own_id=source["has_own_id"],
        broken=source["broken"],
        path=row["path"],
        digest=source["digest"],
        stamp=Stamp(int(source["size"]), int(source["mtime_ns"]), int(source["ctime_ns"]), unsigned(source["inode"])),
        revision=source["revision"],
        version=row["metadata"]["version"],
        stale=row["stale"] or "",
        problems=len(row["problems"]),
        pending=row["pending"],
    )


def ref_from(row: Row) -> Ref:
    """What `REF` selects of a row."""
    metadata = row["metadata"]
    return Ref(
        id=row["_id"],
        title=row["title"],
        summary=row["summary"],
        collection=row["collection"],
        updated_at=metadata["updated_at"],
        status=metadata["status"],
        version=metadata["version"],
        digest=row["source"]["digest"],
        agent=metadata["created_by"],
        path=row["source"]["path"],
        action=row["pending"],
        serial=int(row["serial"]),
        event=event_of(row),
        deleted=row["gone"],
        provenance=metadata.get("provenance"),
    )


def event_of(row: Row) -> int:
    """The row's event; the serial of one that an earlier version made."""
    return int(row["event"] if "event" in row else row["serial"])


def light_from(row: Row) -> Document:
    """What `LIGHT` selects of a row, flat."""
    metadata = row["metadata"]
    told = ["tags", "updated_at", "status", "created_by", "word_count", "version"]
    told += ["provenance"] if metadata.get("provenance") else []
    told += ["created_at"] if row["collection"] == "channels" else []
    return {
        "id": row["_id"],
        **{key: row[key] for key in ("path", "collection", "title", "summary")},
        **{key: metadata[key] for key in told},
        **beside_light(row["collection"], row, metadata.get("extra", {})),
    }


def encodable(text: str) -> str:
    """The text without lone surrogates, which BSON does not take: an undecodable file name may be in a reason."""
    return text.encode("utf-8", "replace").decode()


def is_storable(text: str) -> bool:
    """Whether a row can have this id or path."""
    return encodable(text) == text


def askable(ids: Iterable[str], size: int = 500) -> Iterator[list[str]]:
    """The ids or paths that a row can have, in pieces for one request each."""
    storable = filter(is_storable, ids)
    while piece := list(itertools.islice(storable, size)):
        yield piece


def to_bson(value: Any) -> Any:
    """A value from a person's frontmatter as BSON takes it: every key spelled safely, times in milliseconds."""
    return _with_keys(value, _key_to_bson)


def from_bson(value: Any) -> Any:
    """What `to_bson` was given."""
    return _with_keys(value, _key_from_bson)


def _with_keys(value: Any, spell: Callable[[str], str]) -> Any:
    """The value, plain, with every key in it spelled anew."""
    if isinstance(value, Mapping):
        return {spell(key): _with_keys(item, spell) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_keys(item, spell) for item in value]
    return to_milliseconds(value) if isinstance(value, datetime) else _plain(value)


def _plain(value: Any) -> Any:
    """BSON's 64-bit integers come back as a class of their own."""
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _key_to_bson(key: str) -> str:
    """NUL ends a BSON key, and a dict that opens with `$ref` would come back as a DBRef."""
    key = key.replace("%", "%25").replace("\0", "%00")
    return "%24" + key[1:] if key.startswith("$") else key


def _key_from_bson(key: str) -> str:
    if key.startswith("%24"):
        key = "$" + key[3:]
    return key.replace("%00", "\0").replace("%25", "%")
