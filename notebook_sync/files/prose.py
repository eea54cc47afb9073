"""The summary of a note that has none of its own: its first paragraph of prose, cut to a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from notebook_sync.files.inline import LONGEST, plain
from notebook_sync.files.outline import Outline, read

SUMMARY_LENGTH = 200


def summary_of(text: str, outline: Outline) -> str:
    """The first top-level paragraph that says something (not only an image), as plain text; "" when there is none."""
    for paragraph in _paragraphs(text, outline):
        if words := plain(paragraph[:LONGEST]):
            return shorten(words)
    return ""


def shorten(words: str, limit: int = SUMMARY_LENGTH) -> str:
    """`words` within `limit` characters: cut after a word and closed with `…` where it was longer."""
    if len(words) <= limit:
        return words
    cut = words[: limit - 1]
    if words[limit - 1] != " ":
        cut = cut[: cut.rfind(" ")] if " " in cut else cut
    return cut.rstrip(" ,;:–—-") + "…"


def _paragraphs(text: str, outline: Outline) -> Iterator[str]:
    if outline.paragraphs is not None:
        yield from outline.paragraphs
        return
    for paragraph in _plain_paragraphs(text, outline):
        if paragraph is None:
            yield from read(text).paragraphs or ()
            return
        yield paragraph


_BLANK = re.compile(r"[ \t\r]*\n|[ \t\r]+\Z")
_CHUNK_END = re.compile(r"\n[ \t\r]*+(?=\n|\Z)|\Z")
_RULE = re.compile(r"([*_-])[ \t]*+(?:\1[ \t]*+){2,}\r?(?=\n|\Z)")
# What a line at column 0 after a blank line begins, when it is neither a heading, code nor a comment.
_OTHER_BLOCK = re.compile(r"    | {0,3}\t|>|[-*+](?:[ \t\r\n]|\Z)|[0-9]{1,9}[.)](?:[ \t\r\n]|\Z)")
# A line below one of those that may be outside of it, unless it goes on with the paragraph before.
_MAY_LEAVE = re.compile(r"\n(?!>| {4}|\t|[ \t]*+(?:[-*+]|[0-9]{1,9}[.)])[ \t])(?!\Z)")
_UNCLEAR_LINE = re.compile(r"\n[ \t]*+(?:[-+=|:<>~`#]|[*_](?![*_]?[^\W_])|[0-9]{1,9}[.)])")
_SURE_END = re.compile(r"\n(?=>|[-*+][ \t]++[^\s*_-]|1[.)][ \t]++[^\s])")


def _plain_paragraphs(text: str, outline: Outline) -> Iterator[str | None]:
    """The top-level paragraphs of a text whose outline is plain; None, and no more, at the first that is unclear."""
    at = 0
    blocks = chain(_known_blocks(outline), ((len(text), len(text)),))
    block_start, block_end = next(blocks)
    while at < len(text):
        if at >= block_start:
            at = block_end if text[block_end - 1] == "\n" else text.find("\n", block_end) + 1 or len(text)
            block_start, block_end = next(blocks, (len(text), len(text)))
        elif blank := _BLANK.match(text, at):
            at = blank.end()
        elif rule := _RULE.match(text, at):
            at = rule.end() + 1
        else:
            end = min(_chunk_end(text, at), block_start)
            if _OTHER_BLOCK.match(text, at):
                is_clear = not _MAY_LEAVE.search(text, at, end)
            else:
                sure_end = _SURE_END.search(text, at, end)
                end = sure_end.start() + 1 if sure_end else end
                may_define = text[at] == "[" and "]:" in text[at:end]
                is_clear = not (text[at] in " |<" or may_define or _UNCLEAR_LINE.search(text, at, end))
                if is_clear:
                    yield text[at:end]
            if not is_clear:
                yield None
                return
            at = end


def _known_blocks(outline: Outline) -> list[tuple[int, int]]:
    return sorted([*((heading.start, heading.body) for heading in outline.headings), *outline.hidden])


def _chunk_end(text: str, at: int) -> int:
    match = _CHUNK_END.search(text, at)
    return match.start() if match else len(text)
