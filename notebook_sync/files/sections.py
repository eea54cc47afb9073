"""The sections of a note: which heading heads what, under which anchor, at how many tokens. Pure."""

from __future__ import annotations

from itertools import accumulate, pairwise

from notebook_sync.files.note import Section
from notebook_sync.files.outline import Heading
from prompt.anchors import anchors_of
from prompt.budget import count_many


def sections_of(
    content: str, headings: tuple[Heading, ...], *, lines_before: int = 0, encoding: str = "cl100k_base"
) -> tuple[tuple[Section, ...], int]:
    """The sections of `content`, and the tokens of all of it; `lines_before` are the file's lines above `content`.

    Each stretch between two headings is counted once and the sections are sums of them. That is exact: no token
    spans the end of a line that a heading begins after.
    """
    starts = [0, *(heading.start for heading in headings), len(content)]
    counts = count_many([content[start:end] for start, end in pairwise(starts)], encoding)
    tokens_before = [0, *accumulate(counts)]
    ends = _last_stretches([heading.level for heading in headings])
    anchors = anchors_of([heading.text for heading in headings])
    sections = tuple(
        Section(
            heading.text,
            heading.level,
            anchor,
            heading.line + lines_before,
            heading.start,
            starts[end],
            tokens_before[end] - tokens_before[index],
        )
        for index, (heading, anchor, end) in enumerate(zip(headings, anchors, ends, strict=True), start=1)
    )
    return sections, tokens_before[-1]


def _last_stretches(levels: list[int]) -> list[int]:
    """For each heading, the number of the next one of the same or a higher level, counting headings from 1."""
    ends = [len(levels) + 1] * len(levels)
    still_open: list[int] = []
    for index, level in enumerate(levels):
        while still_open and levels[still_open[-1]] >= level:
            ends[still_open.pop()] = index + 1
        still_open.append(index)
    return ends
