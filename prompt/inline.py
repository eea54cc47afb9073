"""Where code, comments and emphasis stand in one Markdown block. Reads only; positions are characters of its text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# An escape, a run of backticks, a comment, a tag or an address in angles, a run of emphasis.
_INTERESTING = re.compile(
    r"""\\.|`+|<!--
    |</?[A-Za-z][A-Za-z0-9-]*(?:\s+[A-Za-z_:][\w:.-]*(?:\s*=\s*(?:[^\s"'=<>`]+|'[^']*'|"[^"]*"))?)*\s*/?>
    |<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]*>|<[^\s<>@]{1,64}@[^\s<>@]{1,255}>|<[?!][^<>]*>
    |\*+|_+|~~""",
    re.VERBOSE | re.DOTALL,
)
_BAR = re.compile(r"(?<!\\)\|")
_LINK = re.compile(
    r"""!?\[(?:[^\[\]\\]|\\.|\[[^\[\]]{0,200}\]){0,500}\](?:\((?:[^()\\]|\\.|\([^()]{0,200}\)){0,1000}\)|\[[^\[\]]{0,200}\])?
    |<[A-Za-z/](?:[^<>"']|"[^"]{0,300}"|'[^']{0,300}'){0,500}>|https?://[^\s<>]{1,500}
    |&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"<!--(?:-?>|.*?-->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Span:
    """An inline construct `[start, end)`; `width` is the length of its delimiter on either side."""

    kind: Literal["code", "comment", "emphasis", "link"]
    start: int
    end: int
    width: int = 0


def inline_spans(text: str, *, in_row: bool = False) -> list[Span]:
    """Code spans, comments and emphasis of one block of prose, in order of their ends.

    An escaped character opens nothing; of code, a comment and a tag the one that begins first wins; a comment that is
    never closed is text. `in_row` is for a row of a table: no code reaches from one cell into the next.
    """
    closing = _backtick_runs(text)
    last_comment_end = text.rfind("-->")
    found: list[Span] = []
    openers: dict[str, list[tuple[int, int]]] = {"*": [], "_": [], "~": []}
    position = 0
    while match := _INTERESTING.search(text, position):
        start, position, mark = match.start(), match.end(), match.group()
        if mark[0] == "\\":
            continue
        if mark[0] == "`":
            # An escape may have taken the first mark of a run, which leaves a length that closes nothing.
            runs = closing.get(len(mark), [])
            after = bisect_left(runs, position)
            if after < len(runs) and not (in_row and _BAR.search(text, position, runs[after])):
                position = runs[after] + len(mark)
                found.append(Span("code", start, position, len(mark)))
        elif mark == "<!--":
            if start + 2 <= last_comment_end and (comment := _COMMENT.match(text, start)):
                position = comment.end()
                found.append(Span("comment", start, position))
        elif mark[0] != "<":
            found.extend(_emphasis(text, mark, start, openers))
    return found


def links(text: str) -> Iterator[Span]:
    """Links, images, wikilinks, tags, addresses, entities, and what stands in brackets as `[until 2031-05-09]` does."""
    for match in _LINK.finditer(text):
        yield Span("link", *match.span())


def comments_in_html(text: str) -> Iterator[tuple[int, int]]:
    """The comments of a block of HTML, where backticks mean nothing."""
    for match in _COMMENT.finditer(text[: text.rfind("-->") + 3]):
        yield match.span()


def _backtick_runs(text: str) -> dict[int, list[int]]:
    runs: dict[int, list[int]] = {}
    for match in re.finditer("`+", text):
        runs.setdefault(len(match.group()), []).append(match.start())
    return runs


def _emphasis(text: str, mark: str, start: int, openers: dict[str, list[tuple[int, int]]]) -> Iterator[Span]:
    """Close what this run of delimiters closes, and remember what is left of it as an opener (position, length)."""
    before = text[start - 1] if start else " "
    after = text[start + len(mark)] if start + len(mark) < len(text) else " "
    left, right = _flanks(before, after), _flanks(after, before)
    closes = right and (mark[0] != "_" or not left or _punctuation(after))
    opens = left and (mark[0] != "_" or not right or _punctuation(before))
    same = openers[mark[0]]
    while closes and mark and same:
        at, length = same.pop()
        for other in openers.values():
            while other and other[-1][0] > at:
                other.pop()
        width = min(2, length, len(mark))
        if length > width:
            same.append((at, length - width))
        start += width
        mark = mark[width:]
        yield Span("emphasis", at + length - width, start, width)
    if opens and mark:
        same.append((start, len(mark)))


def _flanks(outside: str, inside: str) -> bool:
    """CommonMark: whether a delimiter run hugs what is `inside`."""
    return not inside.isspace() and (not _punctuation(inside) or outside.isspace() or _punctuation(outside))


def _punctuation(character: str) -> bool:
    return not character.isalnum() and not character.isspace()
