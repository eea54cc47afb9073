"""From a note to the document that both stores hold, and to the part of it that files alone decide. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from notebook_sync.files.note import PARSER_REVISION, Note, Ref, Section, Stamp
from notebook_sync.mirror.base import Document, Put

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
# Of a longer query these words say what it is about.
MOST_WORDS = 64
OPERATIONAL = frozenset({"history", "usage"})
_OF_A_CHANNEL = ("topic", "session_id")
_OF_A_COLLECTION = {"code_snippets": ("language",), "research_notes": ("source_url",)}


def document_of(put: Put) -> Document:
    """The document of a Put, without `metadata.version` and `history`, which the store counts itself.

    `metadata.created_at` is what a *new* row gets; a store keeps the one it has unless `created_from` is frontmatter.
    """
    note, stamp = put.note, put.stamp
    updated_at = moment(stamp.mtime_ns)
    created_at, created_from = updated_at, "file"
    if note.created_at is not None:
        created_at, created_from = to_milliseconds(note.created_at), "frontmatter"
    elif put.seed is not None:
        created_at, created_from = to_milliseconds(put.seed.created_at), put.seed.created_from
    document: Document = {
        "id": put.id,
        "wants": note.wants,
        "path": note.path,
        "collection": note.collection,
        "title": note.title,
        "summary": note.summary,
        "content": note.content,
        "sections": [section_fields(section, note.content) for section in note.sections],
        **note.fields,
        "metadata": {
            "created_by": note.created_by,
            "created_at": created_at,
            "created_from": created_from,
            "updated_at": updated_at,
            "tags": list(note.tags),
            "status": note.status,
            "word_count": note.word_count,
            "token_count": note.token_count,
            "links": list(note.links),
            "extra": dict(note.extra),
            "provenance": note.provenance,
        },
        "source": source_of(note, stamp),
        "problems": [{"line": p.line, "message": p.message, "severe": p.severe} for p in note.problems],
        "stale": None,
    }
    if note.code is not None:
        document["code"] = note.code
    return document


def section_fields(section: Section, content: str) -> dict[str, Any]:
    """A section as documents hold it, with its text."""
    # Written out: `dataclasses.asdict` copies deeply and takes half the time of storing a note.
    return {
        "heading": section.heading,
        "level": section.level,
        "anchor": section.anchor,
        "line": section.line,
        "start": section.start,
        "end": section.end,
        "token_count": section.token_count,
        "content": content[section.start : section.end],
    }


def source_of(note: Note, stamp: Stamp) -> dict[str, Any]:
    """The document's `source`: where it came from, and the file's stamp when it was read."""
    return {
        "path": note.path,
        "digest": note.digest,
        "size": stamp.size,
        "mtime_ns": stamp.mtime_ns,
        "ctime_ns": stamp.ctime_ns,
        "inode": stamp.inode,
        "revision": PARSER_REVISION,
        "has_own_id": note.has_own_id,
        "broken": note.broken,
    }


def beside_light(collection: str, fields: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """What light rows of this collection tell beside what all do, of a document's own fields and its `extra`."""
    if collection == "channels":
        told: dict[str, Any] = {name: _line(extra.get(name)) for name in _OF_A_CHANNEL}
        confidence = extra.get("confidence")
        if isinstance(confidence, int | float) and not isinstance(confidence, bool):
            told["confidence"] = min(1.0, max(0.0, float(confidence)))
    else:
        told = {name: fields.get(name) for name in _OF_A_COLLECTION.get(collection, ())}
    return {name: value for name, value in told.items() if value not in (None, "")}


def askable(text: str) -> str:
    """The text as a store is asked for it: a lone surrogate, which no row can hold, becomes NUL, which none does."""
    return text if text.isascii() else "".join("\0" if "\ud800" <= each <= "\udfff" else each for each in text)


def _line(value: Any) -> str:
    """A topic or session as it is asked for: YAML makes a number of one that looks like one."""
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def superseded(refs: Iterable[Ref], now: Iterable[Ref]) -> list[Ref]:
    """Of refs that were told to hot memory, those that are no longer true, as they should have been told."""
    rows = {ref.id: ref for ref in now}
    late = []
    for ref in refs:
        row = rows.get(ref.id)
        if row is None and not ref.deleted:
            late.append(replace(ref, action="", deleted=True))
        elif row is not None and row.serial != ref.serial:
            late.append(row)
    return late


def canonical(document: Document) -> Document:
    """The part of a document that the files alone decide: what a rebuild reproduces and `verify` compares."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "version"}
    if metadata["created_from"] != "frontmatter":
        del metadata["created_at"], metadata["created_from"]
    source = {key: document["source"][key] for key in ("path", "digest", "size", "revision")}
    rest = {key: value for key, value in document.items() if key not in OPERATIONAL}
    return {**rest, "metadata": metadata, "source": source}


def moment(time_ns: int) -> datetime:
    """Nanoseconds since the epoch → aware UTC datetime in whole milliseconds, as BSON keeps it."""
    try:
        return _EPOCH + timedelta(milliseconds=time_ns // 1_000_000)
    except OverflowError:  # a file's time can be set to a year that no calendar here has
        return _EPOCH


def to_milliseconds(when: datetime) -> datetime:
    """The same moment, cut to what BSON keeps."""
    return when.astimezone(UTC).replace(microsecond=when.microsecond // 1000 * 1000)


def to_ms_after(when: datetime) -> int:
    """The first whole millisecond that is not before `when`."""
    return -((_EPOCH - when) // _MILLISECOND)


def signed(inode: int) -> int:
    """An inode number as the signed integer that both stores count with: some file systems use all 64 bits."""
    return inode - 2**64 if inode >= 2**63 else inode


def unsigned(inode: int) -> int:
    """What `signed` was given."""
    return int(inode) % 2**64
