"""Private notes in words, for people at a terminal. Pure: values in, text out; control characters are shown, not
sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.surfaces.cli.text.notebook import counts, safe
from notebook_sync.surfaces.cli.text.rendering import Rendering, Shown
from notebook_sync.surfaces.cli.text.rows import aligned, local

Told = Mapping[str, Any]


def of_private_notes(found: Told, shown: Shown) -> str:
    """Two lines for each note: when, on what topic and what it says; and its path."""
    notes = found["results"]
    rows = [(local(note["created_at"], shown.zone), note["topic"], _titled(note)) for note in notes]
    lines = aligned(rows, shown.width).splitlines()
    return "\n".join(line for row, note in zip(lines, notes, strict=True) for line in (row, f"  {safe(note['path'])}"))


def of_channels(found: Told, _: Shown) -> str:
    """A line for each channel."""
    return aligned([(one["agent"], one["scope"], _counted(one), _members(one)) for one in found["results"]])


def of_writing(written: Told, shown: Shown) -> str:
    """Where a private note is, and its commit."""
    lines = [f"{written['path']} is written", f"commit   {shown.kept(written['commit'], written['path'])}"]
    return "\n".join(map(safe, [*lines, *(f"warning  {warning}" for warning in written["warnings"])]))


def _titled(note: Told) -> str:
    """A note's title, or what it says where it has none of its own; marked where somebody else wrote it."""
    has_none = note["path"].endswith(f"/{note['title']}.md")
    marked = "(external) " if note.get("provenance") == EXTERNAL else ""
    return f"{marked}{note['summary'] if has_none else note['title']}"


def _counted(channel: Told) -> str:
    return "-" if channel["notes"] is None else counts(channel["notes"], "note")


def _members(channel: Told) -> str:
    named = (f"{agent} ({', '.join(may) or 'nothing'})" for agent, may in channel["members"].items())
    return f"shared with {', '.join(named)}" if channel["members"] else "private"


CHANNELS: Mapping[str, Rendering] = {
    "note write": Rendering(of_writing),
    "note channels": Rendering(of_channels),
    **{f"note {verb}": Rendering(of_private_notes) for verb in ("search", "recent", "peek")},
}
