"""Where prose and code may end early, and what has to be written there so that nothing stays open.

Never breaks a character a reader sees as one, a link, or the marks around code and emphasis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from prompt.inline import Span, inline_spans, links

# What tells a reader that the sentence goes on where it is not shown.
MORE = "…"
# About how many characters of a long text leave together; of a script that takes more bytes, fewer.
STRETCH = 160
# Marks nested deeper than this are nobody's prose; no end is looked for among them.
_DEEPEST = 16
# What could join with what closes the marks around it.
_MARKS = frozenset("\\`*_~<!")
_SENTENCE = re.compile(r"""[.!?…:;]["'”’)\]*_]*(?=\s)|[。！？；]|\n""")
_SPACE = re.compile(r"\s+")
# A last line that, cut short, could open a fence: its closing marks are what made it prose.
_COULD_OPEN = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*`{3}")


class End(NamedTuple):
    """A place where a text may end, and what is written there."""

    at: int
    closing: str


def size_of(text: str) -> int:
    """How large a text is, in bytes: for every script nearer to its tokens than a number of characters."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def prose_ends(text: str, *, finely: bool) -> list[End]:
    """Where a block of prose may end, in order, its own end apart: about each 160 characters, at the end of a sentence
    where there is one, else of a word; `finely`, after every character.

    What is open there is closed, and an ellipsis follows.
    """
    spans = sorted([*inline_spans(text), *links(text)], key=lambda span: span.start)
    closed = {span.end for span in spans}
    found: list[End] = []
    around: list[Span] = []
    upcoming = line = 0
    for end in _boundaries(text) if finely else _stretches(text):
        at = len(text[max(0, end - 2 * STRETCH) : end].rstrip()) + max(0, end - 2 * STRETCH)
        if at <= (found[-1].at if found else 0):
            continue
        while upcoming < len(spans) and spans[upcoming].start < at:
            around.append(spans[upcoming])
            upcoming += 1
        while around and around[-1].end <= at:
            around.pop()
        line = max(line, text.rfind("\n", line, at) + 1)
        if (text[at - 1] in _MARKS and (around or at not in closed)) or _COULD_OPEN.match(text, line, at):
            continue
        if len(around) <= _DEEPEST and (closing := _closing(text, at, around)) is not None:
            found.append(End(at, closing + MORE))
    return found


def bare_ends(text: str, *, finely: bool) -> list[int]:
    """As `prose_ends`, for text in which marks mean nothing."""
    return [end for end in (_boundaries(text) if finely else _stretches(text)) if end < len(text)]


def _closing(text: str, at: int, around: list[Span]) -> str | None:
    """What closes the marks that are open at `at`, innermost first; None where the text cannot end there."""
    closing = ""
    for span in around:
        if span.end <= at:
            continue
        if span.kind in ("comment", "link") or not span.start + span.width < at <= span.end - span.width:
            return None
        if span.kind == "code" and text[span.start + span.width].isspace():
            return None  # a space at both ends is not shown, one at a single end is
        closing = text[span.start : span.start + span.width] + closing
    return closing


def _stretches(text: str) -> Iterator[int]:
    step = max(STRETCH // 4, STRETCH * len(text) // max(size_of(text), 1))
    start = 0
    while len(text) - start > step:
        window = text[start + step // 2 : start + step]
        ends = [match.end() for match in _SENTENCE.finditer(window)] or [
            match.start() for match in _SPACE.finditer(window) if match.start()
        ]
        start = start + step // 2 + ends[-1] if ends else _boundary_near(text, start, start + step)
        yield start


def _boundary_near(text: str, start: int, end: int) -> int:
    """The last boundary of characters up to `end`, counting from the one at `start`; else the first one after it."""
    if text[start : end + 1].isascii():
        return end
    last = start
    for boundary in _boundaries(text, start):
        if boundary > end and last > start:
            break
        last = boundary
        if boundary >= end:
            break
    return last


def _boundaries(text: str, start: int = 0) -> Iterator[int]:
    """After each grapheme from `start` on."""
    # Imported when a text must be cut inside a paragraph, which is rare: it costs 20 ms.
    import regex

    for match in regex.finditer(r"\X", text, pos=start):
        yield int(match.end())
