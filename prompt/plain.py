"""Markdown that a glance can read: headings, one-paragraph bullets and paragraphs, as nearly every rule is written.

What is read here must be read as markdown-it would; whatever else a stretch holds, all of it is left to markdown-it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# Prose that cannot be the beginning of another block: a letter, a bracket, a quotation mark, bold, or a number that
# no `.` or `)` makes an ordered item.
_PROSE = r"""(?:[^\W\d_]|[\[("'“„«]|\*\*[^\W_]|\d(?!\d{0,8}[.)](?:[ \t\r\n]|\Z)))[^\r\n]*"""
_LINE = re.compile(
    rf"""(?:(?P<blank>[ \t]*(?:\r?\n[ \t]*(?=\r?\n))*)|(?P<heading>\#{{1,6}})(?:[ \t][^\r\n]*)?
    |(?P<item>[-+*])[ ]{_PROSE}|(?P<text>{_PROSE})|(?P<more>[ \t]+{_PROSE}))(?:\r?\n|\Z)""",
    re.VERBOSE,
)
_HEADING = re.compile(r"^#{1,6}(?:[ \t\r]|$)", re.MULTILINE)
# Fences and HTML are the blocks that a heading does not end.
_CAN_SWALLOW = re.compile(r"^[ \t>*+\-\d.)]*(?:```|~~~|<)", re.MULTILINE)


class Plain(NamedTuple):
    """A block on the lines `[first, last)`: a heading, an item or a paragraph; markup is its `##` or bullet."""

    kind: str
    first: int
    last: int
    markup: str


class Stretch(NamedTuple):
    """`[start, end)` of a text, which begins on `line`; its blocks, or None where markdown-it has to say."""

    start: int
    end: int
    line: int
    plain: list[Plain] | None


def stretches_of(text: str) -> Iterator[Stretch]:
    """The text from each heading at the margin to the next, each of which can be read for itself."""
    if text.count("\r") != text.count("\r\n") or "\0" in text:
        yield Stretch(0, len(text), 0, None)
        return
    start = line = 0
    while start < len(text):
        plain: list[Plain] = []
        stop, lines = _read(text, start, line, plain)
        if stop == len(text):
            yield Stretch(start, stop, line, plain)
            return
        # What is not plain may reach back to the heading above it, not further.
        heading = next((n for n in range(len(plain) - 1, -1, -1) if plain[n].kind == "heading"), 0)
        if heading:
            begin, line_of = _start_of_line(text, stop, lines - plain[heading].first), plain[heading].first
            yield Stretch(start, begin, line, plain[:heading])
            start, line = begin, line_of
        following = _HEADING.search(text, stop)
        end = following.start() if following else len(text)
        if _CAN_SWALLOW.search(text, start, end):
            end = len(text)
        yield Stretch(start, end, line, None)
        line += text.count("\n", start, end)
        start = end


def _read(text: str, start: int, line: int, plain: list[Plain]) -> tuple[int, int]:
    """Read plain lines from `start` into `plain`. Where reading ended, as a character and as a line."""
    kind = markup = ""
    first = line
    match_line = _LINE.match
    while start < len(text) and (match := match_line(text, start)):
        seen = match.lastgroup
        if seen == "more" and not kind:
            break
        if seen in ("text", "more"):
            if not kind:
                kind, markup, first = "paragraph", "", line
        else:
            if kind:
                plain.append(Plain(kind, first, line, markup))
                kind = ""
            if seen == "heading":
                plain.append(Plain("heading", line, line + 1, match["heading"]))
            elif seen == "item":
                kind, markup, first = "item", match["item"], line
        line += text.count("\n", start, match.end()) if seen == "blank" else 1
        start = match.end()
    if kind:
        plain.append(Plain(kind, first, line, markup))
    return start, line


def _start_of_line(text: str, position: int, lines: int) -> int:
    """Where the line begins that is `lines` above the one that begins at `position`."""
    for _ in range(lines):
        position = text.rfind("\n", 0, position - 1) + 1
    return position
