"""The sections of a note: which heading heads what, under which anchor, at how many tokens. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from notebook_sync.files.note import Section
from prompt.budget import count_many
from prompt.outline import Outline


def sections_of(
    outline: Outline, *, lines_before: int = 0, encoding: str = "cl100k_base"
) -> tuple[tuple[Section, ...], int]:
    """The sections of a note's text, and the tokens of all of it; `lines_before` are the file's lines above the text.

    Each stretch between two headings is counted once and the sections are sums of them. That is exact: no token
    spans the end of a line that a heading begins after.
    """
    headed = outline.sections
    starts = [0, *(section.start for section in headed), len(outline.text)]
    counts = count_many([outline.text[start:end] for start, end in pairwise(starts)], encoding)
    tokens_before = [0, *accumulate(counts)]
    ends = ends_of([section.level for section in headed])
    sections = tuple(
        Section(
            each.title,
            each.level,
            each.anchor,
            outline.lines.at(each.start) + 1 + lines_before,
            each.start,
            starts[end + 1],
            tokens_before[end + 1] - tokens_before[index],
        )
        for index, (each, end) in enumerate(zip(headed, ends, strict=True), start=1)
    )
    return sections, tokens_before[-1]


def ends_of(levels: Sequence[int]) -> list[int]:
    """For each of a list of levels, the index of the next one that is the same or higher (a lower number)."""
    ends = [len(levels)] * len(levels)
    still_open: list[int] = []
    for index, level in enumerate(levels):
        while still_open and levels[still_open[-1]] >= level:
            ends[still_open.pop()] = index
        still_open.append(index)
    return ends
