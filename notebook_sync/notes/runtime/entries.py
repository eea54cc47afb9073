"""The entries of a runtime file: its top-level list items, with the headings above them and their lines.

What stands in code, in a quote or in a comment is no entry. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from notebook_sync.files.commonmark import block_tokens
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.inline import heading_text

if TYPE_CHECKING:
    from markdown_it.token import Token


@dataclass(frozen=True, slots=True)
class Entry:
    """One list item. `headings` are the level 2 and 3 headings above it, "" for none; `line` is 1-based in the file.

    `text` is its first paragraph on one line, without comments. `in_list` is False for a line that only looks like an
    entry: no space after its mark, no mark at all, or so far indented that it is code.
    """

    line: int
    headings: tuple[str, str]
    text: str
    in_list: bool = True


@dataclass(frozen=True, slots=True)
class Hidden:
    """An entry inside a comment: no reader ever sees it. As for an entry."""

    line: int
    headings: tuple[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class Contents:
    """A runtime file in pieces. `headings` are `(line, level, text)`; `unclosed` is the line of a comment without end,
    `unclosed_code` that of a block of code.

    Of the comment that a file opens with, which tells its grammar, nothing is in `hidden`.
    """

    headings: tuple[tuple[int, int, str], ...]
    entries: tuple[Entry, ...]
    hidden: tuple[Hidden, ...]
    unclosed: int = 0
    unclosed_code: int = 0


def contents_of(text: str) -> Contents:
    """The pieces of a runtime file's text."""
    front = read_frontmatter(text)
    above = front.head.count("\n") + 1
    tokens = block_tokens(front.content)
    headings: list[tuple[int, int, str]] = []
    entries: list[Entry] = []
    hidden: list[Hidden] = []
    unclosed = unclosed_code = 0
    under = ("", "")
    for index, token in enumerate(tokens):
        line = above + token.map[0] if token.map else 0
        if token.type == "heading_open" and token.level == 0:
            title = heading_text(tokens[index + 1].content)
            headings.append((line, int(token.tag[1]), title))
            under = _below(under, token.tag, title)
        elif token.type == "list_item_open" and token.level == 1:
            entries += _item(_first_paragraph(tokens, index), line, under)
        elif token.type == "paragraph_open" and token.level == 0:
            entries += _lookalikes(tokens[index + 1].content, line, under)
        elif token.type == "code_block" and token.level == 0:
            entries += _lookalikes(token.content, line, under)
        elif token.type == "html_block" and token.content.lstrip().startswith("<!--"):
            if "-->" not in token.content:
                unclosed = unclosed or line
            elif index:
                hidden += _commented(token.content, line, under)
        elif token.type == "fence" and not _is_closed(token, front.content):
            unclosed_code = unclosed_code or line
    return Contents(tuple(headings), tuple(entries), tuple(hidden), unclosed, unclosed_code)


def _is_closed(fence: Token, source: str) -> bool:
    """Whether a line of its own ends the block; else it runs on to the end of what it stands in."""
    first, last = fence.map or (0, 0)
    line = _LINE_END.split(source)[last - 1].lstrip(" \t>").rstrip()
    return last - first > 1 and len(line) >= len(fence.markup) and not line.strip(fence.markup[0])


# As markdown-it counts them.
_LINE_END = re.compile(r"\r\n|\r|\n")


def _below(under: tuple[str, str], tag: str, title: str) -> tuple[str, str]:
    if tag == "h3":
        return under[0], title
    return (title, "") if tag == "h2" else ("", "") if tag == "h1" else under


def _first_paragraph(tokens: Sequence[Token], item: int) -> str:
    if item + 2 >= len(tokens) or tokens[item + 1].type != "paragraph_open":
        return ""
    return tokens[item + 2].content


def _item(paragraph: str, line: int, under: tuple[str, str]) -> list[Entry]:
    """The entry that a list item is, and those that were meant to be their own and became its next lines."""
    first, *others = paragraph.split("\n")
    strays = _lookalikes("\n".join(others), line + 1, under)
    stray_lines = {stray.line for stray in strays}
    own = [first, *(text for number, text in enumerate(others, line + 1) if number not in stray_lines)]
    return [Entry(line, under, " ".join(_without_comments("\n".join(own)).split())), *strays]


def _without_comments(text: str) -> str:
    """No regular expression: one that is never closed would be searched for from each that is opened."""
    kept = []
    at = 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[at:start])
        at = end + 3
    return " ".join([*kept, text[at:]])


_LOOKALIKE = re.compile(r"[ \t]*(?:[-+*](?=\*\*|\[[ xX]?\])|(?=\*\*[^*]+\*\*[ \t]*\([^()]*\):)|[-+*][ \t]+(?=\*\*|\[))")


def _lookalikes(source: str, line: int, under: tuple[str, str]) -> list[Entry]:
    return [
        Entry(line + number, under, text[found.end() :].strip(), in_list=False)
        for number, text in enumerate(source.splitlines())
        if (found := _LOOKALIKE.match(text))
    ]


_COMMENTED = re.compile(r"[ \t]*(?:<!--[ \t]*)?[-+*][ \t]+(.*?)(?:-->.*)?$")


def _commented(source: str, line: int, under: tuple[str, str]) -> list[Hidden]:
    return [
        Hidden(line + number, under, found[1].strip())
        for number, text in enumerate(source.splitlines())
        if (found := _COMMENTED.match(text)) and found[1].strip()
    ]
