"""A note as passages, each short enough to say one thing. Pure.

No passage holds what a model is never shown: comments, and data written into the text (pictures, payloads).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

# Characters of a passage, except in a long note, and of its heading; and passages of a note that get vectors.
LONGEST = 400
MOST_EMBEDDED = 400

# `model.Section`s, or lists of their values.
Sections = Sequence[Sequence[Any]]


class Passage(NamedTuple):
    """`content[start:end]`, below the section `anchor` ("" before the first heading) with this heading as plain text.

    `line` is the 1-based line of the file. `opens` is the heading as written, for the first passage below it, else "".
    """

    anchor: str
    heading: str
    line: int
    start: int
    end: int
    opens: str


def passages_of(content: str, sections: Sections) -> list[Passage]:
    """The passages of a note in order, without overlap. A section without text has an empty one at its heading.

    Without sections, the lines are those of `content`.
    """
    shown = _Shown(content)
    longest = max(LONGEST, 2 * shown.characters // MOST_EMBEDDED)
    line = sections[0][3] - content.count("\n", 0, sections[0][4]) if sections else 1
    ends = [*(section[4] for section in sections), len(content)]
    found: list[Passage] = []
    counted = 0
    for section, end in zip([None, *sections], ends, strict=True):
        anchor, heading, opens, start = "", "", "", 0
        if section:
            anchor, heading, start = section[2], plain(section[0])[:LONGEST], _below_heading(content, section)
            opens = shown.text(section[4], start)
        pieces = [piece for stretch in shown.between(start, end) for piece in _cut(content, *stretch, longest)]
        for first, last in pieces or ([(section[4], section[4])] if section else []):
            line += content.count("\n", counted, first)
            counted = first
            found.append(Passage(anchor, heading, line, first, last, opens))
            opens = ""
    return found


def texts_to_embed(title: str, content: str, sections: Sections) -> list[tuple[Passage, str]]:
    """The passages that get vectors, at most 400, each with what a model is given: the title on the first line, then
    heading and words. Passages without words are left out; where all are, there is one of the title alone."""
    title = plain(title)[:LONGEST]

    def texts() -> Iterator[tuple[Passage, str]]:
        for passage in passages_of(content, sections):
            if words := plain(content[passage.start : passage.end]):
                above = f"{passage.heading}. " if passage.heading not in ("", title) else ""
                yield passage, f"{title}\n{above}{words}"

    return list(islice(texts(), MOST_EMBEDDED)) or [(Passage("", "", 1, 0, 0, ""), title)] * bool(title)


def plain(text: str) -> str:
    """Text as its reader hears it, on one line: without images, tags, targets of links and marks of Markdown."""
    if _MAY_BE_SILENT.search(text):
        text = _SILENT.sub(" ", text)
    return " ".join(text.translate(_MARKS).split())


def without_hidden(text: str) -> str:
    """The text without comments and data."""
    return _Shown(text).text(0, len(text))


_MAY_BE_SILENT = re.compile(r"[<\]&]|://|www\.|```|~~~")
# Each looks no further than the next mark, so that the whole is linear in the text.
_SILENT = re.compile(
    r"</?[A-Za-z][^<>]{0,2000}>"
    r"|!\[[^\[\]\n]*\](?:\([^()\n]*\)|\[[^\[\]\n]*\])"
    r"|\](?:\([^()\n]*\)|\[[^\[\]\n]*\])"
    r"|\]:[^\n]*"
    r"|(?:```|~~~)[^\n]*"
    r"|\b(?:[a-z]{2,10}://|www\.)[^\s)>\]]+"
    r"|&(?:[a-z]{2,8}|#[0-9]{1,7});"
)
_MARKS = str.maketrans(dict.fromkeys("`*#>|[]~\0", " "))
# Data in code, which its readers see, and compressed or encoded data of any kind.
_DATA = re.compile(r"\bdata:[\w.+/-]*[;,][^\s)>\"'`]{24,}|(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{160,}", re.IGNORECASE)
_LONG_WORD = 160
_MAY_HIDE = ("<!--", "%%", "data:", "compressed-json")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*\r?(?:\n|\Z)")


class _Shown:
    """What is left of a text without comments and data."""

    def __init__(self, text: str) -> None:
        self._text = text
        gaps: list[tuple[int, int]] = []
        if any(mark in text for mark in _MAY_HIDE):
            from prompt.hidden import visible  # half of what a search by words would import

            # Content has no frontmatter: what looks like it is text.
            gaps += [(gap.start, gap.end) for gap in visible(text, now=None).gaps if gap.reason != "frontmatter"]
        if "data:" in text or _has_long_word(text):
            gaps += [match.span() for match in _DATA.finditer(text)]
        self._gaps: list[tuple[int, int]] = []
        for start, end in sorted(gaps):
            if not self._gaps or end > self._gaps[-1][1]:
                self._gaps.append((start, end))
        self._ends = [end for _, end in self._gaps]
        self.characters = sum(end - start for start, end in self.between(0, len(text)))

    def between(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The stretches of what is shown from start to end, in order."""
        for at in range(bisect_right(self._ends, start), len(self._gaps)):
            gap_start, gap_end = self._gaps[at]
            if gap_start >= end:
                break
            if gap_start > start:
                yield start, gap_start
            start = max(start, gap_end)
        if start < end:
            yield start, end

    def text(self, start: int, end: int) -> str:
        """What is shown from start to end."""
        return " ".join(self._text[first:last] for first, last in self.between(start, end))


def _has_long_word(text: str) -> bool:
    """Whether a word has the length of data. A text is split only where a stretch of half that length has no space,
    since wherever a long word begins, it has all of one such stretch."""
    step = _LONG_WORD // 2
    stretches = range(0, len(text) - step + 1, step)
    may_have = any(text.find(" ", at, at + step) < 0 for at in stretches)
    return may_have and any(len(word) >= _LONG_WORD for word in text.split())


def _below_heading(content: str, section: Sequence[Any]) -> int:
    """Where the line below a heading, and below its underline, begins."""
    _, _, _, _, start, end = section
    body = content.find("\n", start, end) + 1 or end
    underline = _UNDERLINE.match(content, body, end)
    return underline.end() if underline else body


def _cut(content: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """The stretch as pieces of at most `longest` characters, split where the text splits, without space around."""
    while start < end:
        stop = end if end - start <= longest else _last_break(content, start, start + longest)
        piece = content[start:stop]
        if words := piece.strip():
            first = start + len(piece) - len(piece.lstrip())
            yield first, first + len(words)
        start = stop


def _last_break(content: str, start: int, end: int) -> int:
    """The last end of a paragraph in the latter half, else of a line, a sentence, a word; else the end."""
    for mark in ("\n\n", "\n", ". ", "。", " "):
        at = content.rfind(mark, start + (end - start) // 2, end)
        if at >= 0:
            return at + len(mark)
    return end
