"""What a search found in words, for people at a terminal. Pure: values in, text out; control characters are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any

from notebook_sync.files.provenance import EXTERNAL
from notebook_sync.surfaces.cli.text.notebook import counts, safe
from notebook_sync.surfaces.cli.text.notes import of_notes
from notebook_sync.surfaces.cli.text.rows import cut

_INDENT = "    "


def of_found(notes: Sequence[Mapping[str, Any]], zone: tzinfo, width: int | None = None) -> str:
    """A line for each note, and below it what was asked for beside it: a quotation, how it came to its place."""
    if not any("snippet" in note or "explain" in note for note in notes):
        return of_notes(notes, zone, width)
    lines: list[str] = []
    for line, note in zip(of_notes(notes, zone, width).splitlines(), notes, strict=True):
        lines.append(line)
        if note.get("snippet"):
            quoted = f"{_place(note['snippet'], note)}: {safe(note['snippet']['text'])}"
            lines.append(_INDENT + (quoted if width is None else cut(quoted, max(width - len(_INDENT), 0))))
        if "explain" in note:
            lines += (_INDENT + line for line in _explained(note["explain"], note))
    return "\n".join(lines)


def of_shortcomings(mode: str, degraded: str, behind: int) -> Iterator[str]:
    """Why a search may have found less than it could, and what helps."""
    helps = "do so with: notebook-sync sync"
    if behind and degraded.startswith(f"{counts(behind, 'note')} "):  # these notes are the reason
        yield f"found by words alone: {degraded}; {helps}"
        return
    if degraded:
        yield f"found by words alone: {degraded}" if mode == "keyword" else degraded
    if behind:
        yield f"{counts(behind, 'note')} not yet to be found by meaning as now written; {helps}"


def _explained(explain: Mapping[str, Any], note: Mapping[str, Any]) -> Iterator[str]:
    words, meaning, share = explain["words"], explain["meaning"], explain["share"]
    parts = []
    if words:
        parts.append(f"words {words['part']:.2f} x {1 - share:.2f}")
    if meaning:
        parts.append(f"meaning {meaning['part']:.2f} x {share:.2f}")
    if meaning:
        yield f"score {explain['score']:.3f}  {' + '.join(parts)}"
    if words:
        yield f"by words {words['score']:.3f}, number {words['rank']:,} of those found so"
    if meaning:
        yield f"by meaning {meaning['similarity']:.3f}, nearest at {_place(explain['passage'], note)}"


def _place(place: Mapping[str, Any], note: Mapping[str, Any]) -> str:
    """`line 12 #steps`; without the heading where that is somebody else's word."""
    anchor = place["section"] if note.get("provenance") != EXTERNAL else ""
    return safe(f"line {place['line']}" + (f" #{anchor}" if anchor else ""))
