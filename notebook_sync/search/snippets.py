"""The stretch of a note that tells best why it was found, and the words by which a stretch is known. Pure.

Nothing is quoted but what the document holds: who must not see some of it is to be given a document without that.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, Any

from notebook_sync.mirror.base import Document

if TYPE_CHECKING:
    from notebook_sync.search.base import Place

LONGEST = 300
"""Characters of a snippet."""


def snippet_of(
    document: Document, words: Set[str], *, near: Place | None = None, section: str = ""
) -> dict[str, Any] | None:
    """What to quote of a document, `{text, section, line}`: on one line, of the section with that anchor ("" before the
    first heading), from that line of the file on. None where it has no text, or none below the heading or anchor.

    It is of the passage at `near`, as long as that is one, unless it has none of the words and another has some; else
    of the passage with most of the words.
    """
    from notebook_sync.search.passages import passages_of  # which brings arrays along

    stretches = spans_of(document, section) if section else [(0, len(document["content"]))]
    places = [
        passage.place
        for passage in passages_of(document)
        if passage.place.end and any(start <= passage.place.start < end for start, end in stretches)
    ]
    if not places:
        return None
    content: str = document["content"]
    counts = {place: len(_said(content[place.start : place.end], words)) for place in places}
    richest = max(places, key=counts.__getitem__)
    chosen = near if near in counts and (counts[near] or not counts[richest]) else richest
    start, end = _window(content, chosen.start, chosen.end, words)
    text = " ".join(content[start:end].split())
    return {
        "text": f"{'… ' if start > chosen.start else ''}{text}{' …' if end < chosen.end else ''}",
        "section": chosen.anchor,
        "line": chosen.line + content.count("\n", chosen.start, start),
    }


def spans_of(document: Document, section: str) -> list[tuple[int, int]]:
    """From where to where in the content the sections of this anchor or heading stand, child headings included."""
    wanted = section.lstrip("#")
    return [
        (each["start"], each["end"])
        for each in document["sections"]
        if each["anchor"] == wanted or each["heading"].casefold() == wanted.casefold()
    ]


def says_below(document: Document, section: str, words: Set[str]) -> bool:
    """Whether a section of this anchor or heading has any of the words."""
    content: str = document["content"]
    return any(_said(content[start:end], words) for start, end in spans_of(document, section))


def share_said(text: str, words: Set[str]) -> float:
    """How many of the words stand in the text, of all of them; 0 where there are none."""
    return len(_said(text, words)) / len(words) if words else 0.0


def words_of(text: str) -> frozenset[str]:
    """The words of a text, without case and accents."""
    return frozenset(_WORD.findall(_plain(text)))


_WORD = re.compile(r"[^\W_]+")
# An ending is at most so long, and what stands before it at least.
_ENDING, _STEM = 3, 4
# So much of what comes before the first word is shown.
_BEFORE = 60


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    return "".join(each for each in unicodedata.normalize("NFKD", text) if not unicodedata.combining(each)).casefold()


def _said(text: str, words: Set[str]) -> set[str]:
    """Which of the words stand in the text, be it with another ending, as the stores' indexes take them."""
    unlike = "\n".join(set(_WORD.findall(text)))  # a long text has few words, each many times
    return {word for _, word in _found(unlike, words)}


def _found(text: str, words: Set[str]) -> Iterator[tuple[int, str]]:
    stems = [(word, word[: max(_STEM, len(word) - _ENDING)]) for word in sorted(words)]
    for match in _WORD.finditer(text):
        said = _plain(match[0])
        for word, stem in stems:
            if said == word or (len(word) >= _STEM and said.startswith(stem)):
                yield match.start(), word


def _window(content: str, start: int, end: int, words: Set[str]) -> tuple[int, int]:
    """Of a long stretch, the part with most of the words, between two spaces where there are any."""
    if end - start <= LONGEST:
        return start, end
    room = LONGEST - 2 * len("… ")
    found = [(start + at, word) for at, word in _found(content[start:end], words)]
    places = [at for at, _ in found]

    def kinds(begin: int) -> int:
        near = found[bisect_left(places, begin) : bisect_right(places, begin + room)]
        return len({word for at, word in near if at + len(word) <= begin + room})

    begin = min(max((max(start, at - _BEFORE) for at in places), key=kinds, default=start), end - room)
    stop = begin + room
    spaces = [space.span() for space in _SPACE.finditer(content, begin, stop)]
    if begin > start and spaces and spaces[0][1] - begin <= _BEFORE:
        begin = spaces[0][1]
    if stop < end and spaces and spaces[-1][0] > begin:
        stop = spaces[-1][0]
    return begin, stop


_SPACE = re.compile(r"\s+")
