"""Markdown that a glance can read: headings, one-paragraph bullets and paragraphs, as nearly every rule is written.

What is read here must be read as markdown-it would; whatever else a stretch holds, all of it is left to markdown-it.
"""

from __future__ import annotations

import re
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


class Plain(NamedTuple):
    """A block on the lines `[first, last)`: a heading, an item or a paragraph; markup is its `##` or bullet."""

    kind: str
    first: int
    last: int
    markup: str


class Glance(NamedTuple):
    """The blocks up to where the text is no longer plain, at `stop`.

    What follows begins at `end`, on `line`: at the heading above `stop`, for it may reach back so far, not further.
    """

    blocks: list[Plain]
    end: int
    line: int
    stop: int


def is_readable(text: str) -> bool:
    """Whether a glance may be taken at all: lines end in one way, and nothing is replaced."""
    return text.count("\r") == text.count("\r\n") and "\0" not in text


def read_plain(text: str, start: int, line: int) -> Glance:
    """What stands from `start` on, which is where a heading at the margin or the text begins, and on `line`."""
    blocks: list[Plain] = []
    stop, lines = _read(text, start, line, blocks)
    if stop == len(text):
        return Glance(blocks, stop, lines, stop)
    heading = next((n for n in range(len(blocks) - 1, -1, -1) if blocks[n].kind == "heading"), 0)
    if not heading:
        return Glance([], start, line, stop)
    begin = _start_of_line(text, stop, lines - blocks[heading].first)
    return Glance(blocks[:heading], begin, blocks[heading].first, stop)


def next_heading(text: str, position: int) -> int:
    """Where the next line begins that may be a heading at the margin: it ends all but code and HTML."""
    following = _HEADING.search(text, position)
    return following.start() if following else len(text)


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
