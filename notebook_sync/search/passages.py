"""A note as passages, each to have a vector of its own: short enough to say one thing. Pure.

No passage has any of what a model is never shown, which is comments. What says nothing of the matter (targets of links,
images, tags of HTML) stands within a passage's place, but not in its text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice

from notebook_sync.files.excerpt import without_comments
from notebook_sync.mirror.base import Document
from notebook_sync.search.base import Passage, Place
from prompt.outline import Outline

LONGEST = 400
"""Characters of a passage, but for those of a long note."""
MOST = 400
"""Passages of a note. Those of a long note are longer; of one of more sections than this, the first are taken."""


def passages_of(document: Document) -> list[Passage]:
    """The passages of a note, in order and apart; one that stands nowhere, for a note of a title alone.

    A text has the title on its first line, then the heading, then what the passage says. Where a note has no heading,
    the line is that of the text below its frontmatter.
    """
    title = said(document["title"])
    found = list(islice(_below_headings(document, title), MOST))
    return found or ([Passage(title, Place("", 1, 0, 0))] if title else [])


def _below_headings(document: Document, title: str) -> Iterator[Passage]:
    content: str = document["content"]
    headings, shown = _read(content)
    longest = max(LONGEST, 2 * len(content) // MOST)
    for heading, anchor, line, start, end in _stretches(document, headings):
        above = f"{heading}. " if heading not in ("", title) else ""
        counted = start
        for begin, stop in shown.between(start, end):
            for first, last in _cut(content, begin, stop, longest):
                if words := said(content[first:last]):
                    line += content.count("\n", counted, first)
                    counted = first
                    yield Passage(f"{title}\n{above}{words}", Place(anchor, line, first, last))


def said(text: str) -> str:
    """What a text says to a reader, on one line: without comments, images, tags, addresses and marks of Markdown."""
    if _MAY_BE_UNSAID.search(text):
        text = _UNSAID.sub(" ", without_comments(text))
    return " ".join(text.translate(_MARKS).split())


_MAY_BE_UNSAID = re.compile(r"[<\]&]|://|www\.|```|~~~")
# Each takes what it looks at, or looks no further than the next mark: linear in the text.
_UNSAID = re.compile(
    r"</?[A-Za-z][^<>]{0,2000}>"
    r"|!\[[^\[\]\n]*\](?:\([^()\n]*\)|\[[^\[\]\n]*\])"
    r"|\](?:\([^()\n]*\)|\[[^\[\]\n]*\])"
    r"|\]:[^\n]*"
    r"|(?:```|~~~)[^\n]*"
    r"|\b(?:[a-z]{2,10}://|www\.)[^\s)>\]]+"
    r"|&(?:[a-z]{2,8}|#[0-9]{1,7});"
)
_MARKS = str.maketrans(dict.fromkeys("`*#>|[]~\0", " "))


@lru_cache(maxsize=8)  # what is found once is mostly found again
def _read(content: str) -> tuple[Sequence[tuple[int, int]], _Shown]:
    """Where each heading and the text below it begin, and what is shown."""
    outline = Outline(content)
    return [(section.start, section.body) for section in outline.sections], _Shown(outline)


def _stretches(document: Document, headings: Sequence[tuple[int, int]]) -> Iterator[tuple[str, str, int, int, int]]:
    """What stands right below each heading: heading, anchor, the line it begins in, and from where to where."""
    content: str = document["content"]
    sections = document["sections"]
    starts = [*(start for start, _ in headings), len(content)]
    first = sections[0]["line"] - content.count("\n", 0, sections[0]["start"]) if sections else 1
    yield "", "", first, 0, starts[0]
    for (start, body), section, end in zip(headings, sections, starts[1:], strict=False):
        line = section["line"] + content.count("\n", start, body)
        yield said(section["heading"]), section["anchor"], line, body, end


class _Shown:
    """What is left of a text without its comments. Those in code are code, and one that is never closed is text."""

    def __init__(self, outline: Outline) -> None:
        # To know what is code, all blocks are made: only where a comment may be in one.
        blocks = outline.root.walk() if "<!--" in outline.text else ()
        code = [(block.start, block.end) for block in blocks if block.type in ("fence", "code_block")]
        self._comments = list(_comments(outline.text, code))
        self._ends = [end for _, end in self._comments]

    def between(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The stretches of what is shown from start to end, in order."""
        for index in range(bisect_right(self._ends, start), len(self._ends)):
            begin, stop = self._comments[index]
            if begin >= end:
                break
            yield start, max(start, begin)
            start = stop
        yield min(start, end), end


def _comments(content: str, code: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    at = 0
    of_code = iter([*code, (len(content), len(content))])
    code_start, code_end = next(of_code)
    while (start := content.find("<!--", at)) >= 0:
        while code_end <= start:
            code_start, code_end = next(of_code)
        if start >= code_start:
            at = code_end
        elif (stop := content.find("-->", start)) >= 0:
            at = stop + len("-->")
            yield start, at
        else:
            return


def _cut(content: str, start: int, end: int, longest: int) -> Iterator[tuple[int, int]]:
    """The stretch as pieces of at most `longest` characters, parted where that parts least, no white space around."""
    while start < end:
        stop = end if end - start <= longest else _last_break(content, start, start + longest)
        piece = content[start:stop]
        if words := piece.strip():
            first = start + len(piece) - len(piece.lstrip())
            yield first, first + len(words)
        start = stop


def _last_break(content: str, start: int, end: int) -> int:
    """The last end of a paragraph in the latter half, else of a line, a sentence, a word; else the end."""
    for mark in ("\n\n", "\n", ". ", " "):
        at = content.rfind(mark, start + (end - start) // 2, end)
        if at >= 0:
            return at + len(mark)
    return end
