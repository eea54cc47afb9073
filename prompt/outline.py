"""Where the sections of a text begin, for telling people under which heading something stands."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from prompt.anchors import anchors_of, heading_text
from prompt.blocks import Lines, parse_blocks


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, as its reader sees it, and the character at which its section begins."""

    start: int
    anchor: str
    text: str


class Outline:
    """The headings of a text; those in code, comments, lists and quotes are none."""

    def __init__(self, text: str) -> None:
        lines = Lines(text)
        found = [lines.span_of(node) for node in parse_blocks(text).children if node.type == "heading"]
        names = [heading_text(text[start:end]) for start, end in found]
        self._starts = [start for start, _ in found]
        self._headings = [
            Heading(start, anchor, name)
            for start, anchor, name in zip(self._starts, anchors_of(names), names, strict=True)
        ]

    def at(self, position: int) -> Heading:
        """The heading under which the character at `position` stands; one without anchor or text before the first."""
        index = bisect_right(self._starts, position)
        return self._headings[index - 1] if index else Heading(0, "", "")
