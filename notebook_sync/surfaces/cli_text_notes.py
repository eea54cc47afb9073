"""Notes in words, for people at a terminal: lists of them. Pure: values in, text out; control characters are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any

from notebook_sync.surfaces.cli_rows import aligned, local

_LENGTH_OF_DAY = 10


def of_notes(notes: Sequence[Mapping[str, Any]], zone: tzinfo, width: int | None = None) -> str:
    """A line for each note, from its light fields."""
    return aligned(
        [
            (local(note["updated_at"], zone)[:_LENGTH_OF_DAY], f"{note['status']:<11}", note["path"], note["title"])
            for note in notes
        ],
        width,
    )
