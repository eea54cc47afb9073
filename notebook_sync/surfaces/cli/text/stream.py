"""The stream, recall, and going back in time in words, for people at a terminal. Pure; control characters are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.surfaces.cli.text.editing import short
from notebook_sync.surfaces.cli.text.notebook import counts, safe
from notebook_sync.surfaces.cli.text.rows import aligned, local

_LENGTH_OF_DAY = 10
_LENGTH_OF_ID = 8
Told = Mapping[str, Any]
GoingBack = Callable[[str], str]


def of_entry(entry: Told, zone: tzinfo, *, keep: bool) -> str:
    """What was logged, and where it went."""
    place = "kept for long" if keep else f"in the stream of {local(entry['timestamp'], zone)[:_LENGTH_OF_DAY]}"
    return safe(f"{place}: {_said(entry)}")


def of_day(day: Told, zone: tzinfo, width: int | None = None) -> str:
    """A line for each entry: when, who or what, and what it says."""
    rows = [(local(one["timestamp"], zone)[_LENGTH_OF_DAY + 1 :], _from(one), _said(one)) for one in day["entries"]]
    return aligned(rows, width)


def of_entries(entries: Sequence[Told], zone: tzinfo, width: int | None = None) -> str:
    """As `of_day`, of any day."""
    return aligned([(local(one["timestamp"], zone), _from(one), _said(one)) for one in entries], width)


def _from(entry: Told) -> str:
    """Of a note, what became of it; else who logged it, and from where."""
    if told := entry.get("action") or ("note" if entry["source"] == "notebook" else ""):
        return str(told)
    agent = f"agent:{entry['agent']}" if entry.get("agent") else ""
    return str(entry["source"]) if agent in ("", entry["source"]) else f"{agent}, {entry['source']}"


def _said(entry: Told) -> str:
    mark = "(external) " if entry.get("provenance") == EXTERNAL else ""
    ref = entry.get("ref")
    if ref:
        return f"{ref['path']}: {mark}{ref['title']}"
    tags = "".join(f" #{tag}" for tag in entry["tags"]) if entry["source"] != "notebook" else ""
    return f"{mark}{' '.join(entry['content'].split())}{tags}"


def of_checkpoint(checkpoint: Told, going_back: GoingBack) -> str:
    """What a new checkpoint has in it, and how to go back to it."""
    files = f"with the files, as {short(checkpoint['commit'])}" if checkpoint["commit"] else "without the files"
    lines = [
        f"checkpoint {checkpoint['id']}{_named(checkpoint)}",
        f"has      {_counted(checkpoint)}, {files}",
        *(f"warning  {warning}" for warning in checkpoint["warnings"]),
        f"back     {going_back(checkpoint['id'][:_LENGTH_OF_ID])}",
    ]
    return "\n".join(map(safe, lines))


def of_checkpoints(checkpoints: Sequence[Told], zone: tzinfo, width: int | None = None) -> str:
    """A line for each: the beginning of its id, which names it, when, how much is in it, and its name."""
    return aligned(
        [(one["id"][:_LENGTH_OF_ID], local(one["at"], zone), _counted(one), one["name"]) for one in checkpoints], width
    )


def _named(checkpoint: Told) -> str:
    return f": {checkpoint['name']}" if checkpoint["name"] else ""


def _counted(checkpoint: Told) -> str:
    entries = counts(checkpoint["entries"], "entry", "entries")
    return f"{counts(checkpoint['notes'], 'note')}, {entries}, {checkpoint['longterm']:,} kept for long"


def of_rollback(rolled: Told, kept: str, going_back: GoingBack) -> str:
    """What was brought back, what became of notes since, and how to take it back; `kept` is the commit in words."""
    return "\n".join(map(safe, _rolled(rolled, kept, going_back)))


def _rolled(rolled: Told, kept: str, going_back: GoingBack) -> Iterator[str]:
    entries = counts(rolled["entries"], "entry", "entries")
    yield f"back at {rolled['id'][:_LENGTH_OF_ID]}: {entries} of the stream, {rolled['longterm']:,} kept for long"
    yield from (f"{one['change']:<8} since then: {one['path']}" for one in rolled["changed"])
    yield from (f"as then  {path}" for path in rolled["restored"])
    if rolled["restored"]:
        yield f"commit   {kept}"
    elif rolled["changed"]:
        yield "files    are left as they are; --files brings back what they said"
    yield from (f"warning  {warning}" for warning in rolled["warnings"])
    yield f"undo     {going_back(rolled['before'][:_LENGTH_OF_ID])}"
