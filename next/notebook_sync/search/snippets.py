"""The words of a note that show why it was found: a part of its best passage. Pure.

Nothing is quoted but what passages hold: no comments, no data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from notebook_sync.search.passages import Passage
from notebook_sync.search.words import pieces_of

LONGEST = 300
# So much of what comes before the first word of the query is shown.
_BEFORE = 60
_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Snippet:
    """`text` on one line, from the 1-based `line` of the file on, below the section with this anchor ("" above the
    first heading)."""

    text: str
    section: str
    line: int


def best_passage(passages: Sequence[tuple[Passage, int]], near: int | None) -> Passage | None:
    """The passage to quote: that with most words of the query; of equal ones the one that begins at `near`, else the
    first. Each comes with how many different words it has."""
    ranked = sorted(passages, key=lambda each: (-each[1], each[0].start != near or each[0].end == each[0].start))
    return ranked[0][0] if ranked else None


def snippet_of(content: str, passage: Passage, is_asked: Callable[[str], bool]) -> Snippet:
    """A passage on one line; of a long one, the part around the first word that is asked for."""
    start, end = passage.start, passage.end
    if end - start > LONGEST:
        found = (at for at, word in pieces_of(content, start, end) if is_asked(word))
        start = max(start, min(next(found, start) - _BEFORE, end - LONGEST))
        if start > passage.start and (space := content.find(" ", start, start + _BEFORE)) >= 0:
            start = space + 1
        end = min(end, start + LONGEST - len(f"{_ELLIPSIS} {_ELLIPSIS} "))
        if end < passage.end and (space := content.rfind(" ", end - _BEFORE, end)) > start:
            end = space
    text = " ".join(content[start:end].split()) or passage.heading
    before = f"{_ELLIPSIS} " if start > passage.start else ""
    behind = f" {_ELLIPSIS}" if end < passage.end else ""
    return Snippet(f"{before}{text}{behind}", passage.anchor, passage.line + content.count("\n", passage.start, start))
