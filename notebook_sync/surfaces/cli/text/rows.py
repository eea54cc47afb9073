"""Rows of text under one another, for terminals and pipes alike. Pure; control characters are shown, not sent."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import datetime, tzinfo
from itertools import accumulate

from notebook_sync.surfaces.cli.text.notebook import moment_of, safe

_GAP = 2
# A longer cell stands out of its column, rather than pushing away those below and above it.
_WIDEST = 40
# What is left of a last cell at least, whatever stands before it.
_LEAST = 24


def aligned(rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """A line for each row, its cells in columns; the last cell is cut to the terminal's `width`, if there is one."""
    shown = [[safe(cell) for cell in row] for row in rows]
    widths = [min(_WIDEST, max(map(columns, column))) for column in list(zip(*shown, strict=True))[:-1]]
    lines = []
    for *cells, last in shown:
        padded = (cell + " " * max(0, room - columns(cell)) for cell, room in zip(cells, widths, strict=True))
        before = "".join(cell + " " * _GAP for cell in padded)
        lines.append(before + (last if width is None else cut(last, max(_LEAST, width - columns(before)))))
    return "\n".join(line.rstrip() for line in lines)


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, room: int) -> str:
    """The text, or what of it fits into so many columns with `…` behind it."""
    if columns(text) <= room:
        return text
    fitting = sum(taken < room for taken in accumulate(map(_columns, text)))
    return f"{text[:fitting].rstrip()}…"


def local(moment: str | datetime, zone: tzinfo) -> str:
    """A moment to the minute, in this timezone."""
    found = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return moment_of(found.astimezone(zone).isoformat())
