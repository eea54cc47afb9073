"""Notes in words, for people at a terminal: lists of them, and what became of one. Pure: values in, text out; control
characters are shown, not sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.surfaces.cli.text.editing import undoing
from notebook_sync.surfaces.cli.text.notebook import safe
from notebook_sync.surfaces.cli.text.rows import aligned, local

_LENGTH_OF_DAY = 10


def of_notes(notes: Sequence[Mapping[str, Any]], zone: tzinfo, width: int | None = None) -> str:
    """A line for each note, from its light fields."""
    return aligned(
        [
            (local(note["updated_at"], zone)[:_LENGTH_OF_DAY], f"{note['status']:<11}", note["path"], _titled(note))
            for note in notes
        ],
        width,
    )


def _titled(note: Mapping[str, Any]) -> str:
    """The title, marked where somebody else wrote the note."""
    return f"{'(external) ' if note.get('provenance') == EXTERNAL else ''}{note['title']}"


def of_creation(written: Mapping[str, Any], kept: str, *, read: Callable[[str], str]) -> str:
    """Where a new note is and what names it."""
    told = [f"{written['path']} is created", f"id       {written['notebook_id']}"]
    return "\n".join([*map(safe, told), *_after(written, kept), f"next     {safe(read(written['notebook_id']))}"])


def of_update(written: Mapping[str, Any], kept: str, *, undo: Callable[[str], str]) -> str:
    """What changed of a note, and how to take that back."""
    if not written["changed"]:
        return safe(f"{written['path']} says so already: nothing is changed")
    told = [f"{written['path']} is updated: {', '.join(written['changed'])}"]
    told += [] if written["version"] is None else [f"version  {written['version']}"]
    return "\n".join([*map(safe, told), *_after(written, kept), *undoing(written, undo)])


def _after(written: Mapping[str, Any], kept: str) -> Iterator[str]:
    yield f"commit   {kept}"
    yield from (safe(f"warning  {warning}") for warning in written["warnings"])
