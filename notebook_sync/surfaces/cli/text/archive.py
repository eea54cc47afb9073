"""Archives and imports in words, for people at a terminal. Pure; control characters are shown, not sent."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from notebook_sync.surfaces.cli.text.notebook import counts, first_of, safe


def of_export(exported: Mapping[str, Any]) -> str:
    """What is in the archive, and what is not."""
    held = f"{counts(exported['notes'], 'note')}, {counts(exported['files'], 'file')}"
    lines = [
        f"{exported['path']} has {held}, {counts(exported['commits'], 'commit')}: {counts(exported['bytes'], 'byte')}",
        *(f"warning  {warning}" for warning in exported["warnings"]),
        *first_of([f"{one['path']}: {one['reason']}" for one in exported["left_out"]], "left out"),
        f"next     notebook-sync import {shlex.quote(exported['path'])} DIR",
    ]
    return "\n".join(map(safe, lines))


def of_import(imported: Mapping[str, Any]) -> str:
    """What came back, and where."""
    held = f"{counts(imported['notes'], 'note')}, {counts(imported['files'], 'file')}"
    stream = f"{counts(imported['entries'], 'entry', 'entries')} of the stream, {imported['longterm']:,} kept for long"
    lines = [
        f"notebook in {imported['root']}",
        f"has      {held}, {counts(imported['commits'], 'commit')}, {stream}, "
        f"{counts(imported['checkpoints'], 'checkpoint')}",
        f"next     notebook-sync -C {shlex.quote(imported['root'])} status",
    ]
    return "\n".join(map(safe, lines))


def of_imported_notes(imported: Mapping[str, Any]) -> str:
    """What became of an older export's notes, and why some were not taken."""
    failed = [f"{one['where']}: {one['error']}" for one in imported["failed"]]
    told = f"{imported['written']:,} written, {imported['already']:,} there already, {len(failed):,} failed"
    lines = [
        f"{counts(imported['read'], 'note')} read: {told}",
        *(f"warning  {warning}" for warning in imported["warnings"]),
        *first_of(failed, "failed"),
    ]
    return "\n".join(map(safe, lines))
