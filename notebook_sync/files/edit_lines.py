"""Putting lines between lines and taking lines out, with the blank lines and line ends of the place. Pure.

Each function gives the ways to do it, the one that suits the place best first. Whether a way is right, only reading
the result can tell: what is put above a line may take it in. No way changes a byte of the lines that stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_ENDS = ("\n", "\r")


def lines_of(text: str) -> list[str]:
    """The lines of `text`, their ends included, as CommonMark counts them."""
    return _LINE.findall(text)


def is_blank(line: str) -> bool:
    return not line.strip(" \t\r\n")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some lines of a file. `ends_file`: none follow. `eol` is how lines end where none of these tells."""

    lines: Sequence[str]
    eol: str
    ends_file: bool


def put(stretch: Stretch, first: int, after: int, text: str, *, gap: bool) -> tuple[str, ...]:
    """The stretch with `text` in place of the lines from `first` up to `after`: of none, where these are equal.

    `gap` asks for a blank line above it. The second way, where there is one, has a blank line below it.
    """
    lines = stretch.lines
    eol = _end_of(lines[after - 1]) if first < after else _eol_near(lines, first)
    eol = eol or _eol_near(lines, first) or stretch.eol
    above, below = "".join(lines[:first]), "".join(lines[after:])
    body = (eol if gap else "") + text.replace("\n", eol)
    if first == after and above and not above.endswith(_ENDS):
        return (above + eol + body,)
    if first < after and not lines[after - 1].endswith(_ENDS):
        return (above + body,)
    tight = above + body + eol + below
    followed = not is_blank(lines[after]) if after < len(lines) else not stretch.ends_file
    return (tight, above + body + eol + eol + below) if followed else (tight,)


def take_out(stretch: Stretch, first: int, after: int, *, ends_list: bool) -> tuple[str, ...]:
    """The stretch without the lines from `first` up to `after`, and without the blank lines that parted them from
    what stands above. `ends_list`: they were the last of their list."""
    lines = stretch.lines
    above = first
    while above and is_blank(lines[above - 1]):
        above -= 1
    below = after
    while below < len(lines) and is_blank(lines[below]):
        below += 1
    ends_file = below == len(lines) and stretch.ends_file
    start = above if ends_list or below > after else first
    stop = below if first == 0 and not ends_file else after
    ways = (
        (lines[:start], lines[stop:]),
        (lines[:first], lines[after:]),
        ([*lines[:first], _eol_near(lines, first) or stretch.eol], lines[after:]),
    )
    return tuple(dict.fromkeys(_joined(kept, rest, lines[-1]) for kept, rest in ways))


def _joined(kept: Sequence[str], rest: Sequence[str], last: str) -> str:
    """The two as one text, which ends in a line end only where the text whose last line was `last` did."""
    text = "".join(kept)
    if not rest and not last.endswith(_ENDS):
        return text.removesuffix("\n").removesuffix("\r")
    return text + "".join(rest)


def _eol_near(lines: Sequence[str], at: int) -> str:
    """How the line above `at` ends, else the one above that, else the one below; "" where none of them has an end."""
    for line in (*lines[max(at - 1, 0) : at], *lines[max(at - 2, 0) : max(at - 1, 0)], *lines[at : at + 1]):
        if end := _end_of(line):
            return end
    return ""


def _end_of(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
