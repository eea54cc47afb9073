"""The entries of a runtime file: its top-level list items, with their headings and lines, and what is wrong with them.

Code, quotes and comments hold no entries. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TypeVar

from notebook_sync.files.frontmatter import read_frontmatter
from prompt.dates import Validity, validity_of
from prompt.hidden import QUOTED
from prompt.outline import Block, Outline

T = TypeVar("T")


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

    @property
    def validity(self) -> Validity | None:
        """From when until when it holds, as the prompt reads it: a date in code or in a link does not count."""
        if validity_of(self.text) is None:
            return None
        spans = (span for block in Outline(self.text).root.walk() for span in block.spans)
        return validity_of(self.text, [(span.start, span.end) for span in spans if span.kind in QUOTED])


@dataclass(frozen=True, slots=True)
class Malformed:
    """An entry that does not do what it says: why, and what to write. The prompt shows it as it is, unless it is past.

    `text` is the entry, `line` its line.
    """

    line: int
    reason: str
    write: str
    text: str

    @property
    def message(self) -> str:
        """The reason and the next step."""
        return f"{self.reason}; write: {self.write}"


@dataclass(frozen=True, slots=True)
class Contents:
    """A runtime file in pieces. `headings` are `(line, level, text)`; `hidden` are entries inside a comment, which no
    reader sees; `unclosed` is the line of a comment without end, `unclosed_code` that of a block of code.

    The comment that a file opens with, which explains its grammar, has no part in `hidden`.
    """

    headings: tuple[tuple[int, int, str], ...]
    entries: tuple[Entry, ...]
    hidden: tuple[Entry, ...]
    unclosed: int = 0
    unclosed_code: int = 0

    def holding_at(self, now: datetime) -> Contents:
        """Without the entries that are past or have not begun. `now` is local to the notebook."""
        kept = (one for one in self.entries if not (validity := one.validity) or validity.holds_at(now))
        return replace(self, entries=tuple(kept))


def read_entries(
    contents: Contents, today: date, read: Callable[[Entry, date], T | Malformed | None]
) -> tuple[list[T], list[Malformed]]:
    """What `read` makes of the entries, and what is malformed: for it, or because a date cannot be read. `read` gives
    None for an entry that it does not know."""
    found: list[T] = []
    malformed: list[Malformed] = []
    for entry in contents.entries:
        one, validity = read(entry, today), entry.validity
        if isinstance(one, Malformed):
            malformed.append(one)
        elif one is not None:
            found.append(one)
        if validity and validity.problem:
            reason = f"{validity.problem}, so it is ignored"
            malformed.append(Malformed(entry.line, reason, validity.corrected(today), entry.text))
    return found, malformed


def contents_of(text: str) -> Contents:
    """The pieces of a runtime file's text."""
    front = read_frontmatter(text)
    above = front.head.count("\n") + 1
    outline = Outline(front.content)
    sections = iter(outline.sections)
    headings: list[tuple[int, int, str]] = []
    entries: list[Entry] = []
    hidden: list[Entry] = []
    unclosed = unclosed_code = 0
    under = ("", "")
    opening = next(iter(outline.root.children), None)
    for block in outline.root.walk():
        line = above + block.first
        parent = block.parent
        is_top = parent is outline.root
        if block.type == "heading" and is_top:
            title = next(sections).title
            headings.append((line, block.level, title))
            under = _below(under, block.level, title)
        elif block.type == "list_item" and parent is not None and parent.parent is outline.root:
            entries += _item(_first_paragraph(block), line, under)
        elif block.type in ("paragraph", "code_block") and is_top:
            entries += _lookalikes(block.content, line, under)
        elif block.type == "html_block" and block.content.startswith("<!--"):
            if "-->" not in block.content:
                unclosed = unclosed or line
            elif block is not opening:
                hidden += _commented(block.content, line, under)
        elif block.type == "fence" and not block.closed:
            unclosed_code = unclosed_code or line
    return Contents(tuple(headings), tuple(entries), tuple(hidden), unclosed, unclosed_code)


def _below(under: tuple[str, str], level: int, title: str) -> tuple[str, str]:
    if level == 3:
        return under[0], title
    return (title, "") if level == 2 else ("", "") if level == 1 else under


def _first_paragraph(item: Block) -> str:
    first = next(iter(item.children), None)
    return first.content if first and first.type == "paragraph" else ""


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


def _commented(source: str, line: int, under: tuple[str, str]) -> list[Entry]:
    return [
        Entry(line + number, under, found[1].strip())
        for number, text in enumerate(source.splitlines())
        if (found := _COMMENTED.match(text)) and found[1].strip()
    ]
