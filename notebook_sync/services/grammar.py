"""The entries of a runtime file: its list items with their headings, lines and dates, and what only looks like one.

The one reader of rules, of reminders, and of `check`. Pure. Code and quotes hold no entries, and what the prompt hides
has none for anybody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from prompt import Block, Gap, Lines, Outline, end_of_frontmatter, visible
from prompt.dates import Validity, validity_of
from prompt.hidden import QUOTED, without

IN_FORCE, ENDED, NOT_BEGUN = "in force", "ended", "not begun"
_MARKS = re.compile(r"<!--|-->|%%")
# A list mark without its space, none before a bold name with an identity, or one that is code by its indent.
_LOOKALIKE = re.compile(r"[ \t]*(?:[-+*•](?=\*\*|\[.?\])|(?=\*\*[^*]+\*\*[ \t]*\([^()]*\):)|[-+*•][ \t]+(?=\*\*|\[))")


class Entry(NamedTuple):
    """One list item: the 1-based lines `line` to `last` of the file.

    `section` is the known heading that it is below, else the one next above it; `channel` the heading below that one.
    `text` is its first paragraph on one line. `in_list` is False for a line that only looks like an entry. `state`: in
    force, or ended or not begun, as the entry around it may be.
    """

    line: int
    last: int
    section: str
    channel: str
    text: str
    in_list: bool
    is_nested: bool
    validity: Validity | None
    state: str


class Malformed(NamedTuple):
    """An entry that cannot be read: why, and what to write instead. The prompt shows it as it is."""

    line: int
    message: str


class Contents(NamedTuple):
    """What the entries of a text say, those that cannot be read, and the 1-based lines of those that can."""

    found: list[Any]
    malformed: list[Malformed]
    lines: set[int]


class Grammar(NamedTuple):
    """How the entries of a file are written: the headings that it knows, at any level, and what reads one entry.

    `read` gives what an entry says, Malformed where it cannot be read, None where it does not try to say anything.
    Every `now` has the notebook's time zone.
    """

    sections: tuple[str, ...]
    read: Callable[[Entry, datetime], Any]

    def contents(self, text: str, now: datetime, *, is_all: bool = False) -> Contents:
        """The entries that a model may see and that hold now, or all. One whose dates cannot be read counts without
        them."""
        contents = Contents([], [], set())
        for entry in _entries(blank(text, visible(text, now=None).gaps), self.sections, now):
            if entry.state != IN_FORCE and not is_all:
                continue
            one, dates = self.read(entry, now), entry.validity
            if isinstance(one, Malformed):
                contents.malformed.append(one)
            elif one is not None:
                contents.found.append(one)
                contents.lines.update(range(entry.line, entry.last + 1))
            if dates and dates.problem:
                contents.malformed.append(
                    Malformed(entry.line, f"{dates.problem}, so it is ignored; write: {dates.corrected(now.date())}")
                )
        return contents

    def hidden(self, text: str, now: datetime) -> list[Entry]:
        """The entries in comments, but for the comment that a file opens with, which explains its grammar."""
        comments = [gap for gap in visible(text, now=None).gaps if gap.reason == "comment"]
        if comments and not text[end_of_frontmatter(text) : comments[0].start].strip():
            del comments[0]
        lines = Lines(text)
        inside = {line for gap in comments for line in range(lines.at(gap.start), lines.at(gap.end - 1) + 1)}
        entries = _entries(_MARKS.sub("", text), self.sections, now) if inside else ()
        return [
            each
            for each in entries
            if each.line - 1 in inside and not isinstance(self.read(each, now), Malformed | None)
        ]


def misplaced(entry: Entry, what: str, sections: Sequence[str]) -> Malformed:
    """The entry under none of the headings that would make it `what`."""
    where = f"is under `{entry.section}`" if entry.section else "is under no heading"
    return Malformed(entry.line, f"{where}, so it is not a {what}; write: it under {' or '.join(sections)}")


# Of files without a grammar, only the dates are read.
PLAIN = Grammar((), lambda entry, _: entry.text)


def blank(text: str, gaps: Iterable[Gap]) -> str:
    """A text with spaces in place of what gaps take out; its lines stay where they are."""
    return without(text, [gap._replace(shown=re.sub(r"[^\r\n]", " ", text[gap.start : gap.end])) for gap in gaps])


def plain_heading(title: str) -> str:
    """A heading as it is compared: its words, case folded."""
    return " ".join(re.findall(r"\w+", title.casefold()))


def _entries(text: str, sections: Collection[str], now: datetime) -> Iterator[Entry]:
    outline = Outline(text)
    known, titles = {plain_heading(each) for each in sections}, iter(outline.sections)
    section, channel, level = "", "", 0
    items: dict[Block, Entry] = {}
    for block in outline.root.walk():
        line, parent = block.first + 1, block.parent
        strays: Sequence[tuple[int, str]] = ()
        if block.type == "heading" and parent is outline.root:
            title = next(titles).title
            is_below = plain_heading(section) in known and block.level > level and plain_heading(title) not in known
            section, channel, level = (section, title, level) if is_below else (title, "", block.level)
        elif block.type == "list_item" and not block.quotes:
            child = next(iter(block.children), None)
            first, *others = (child.content if child and child.type == "paragraph" else "").split("\n")
            strays = _lookalikes(others, line + 1)
            apart = {number for number, _ in strays}
            own = [first, *(each for number, each in enumerate(others, line + 1) if number not in apart)]
            around = items.get(parent.parent) if parent and parent.parent else None
            items[block] = _entry(line, block.last, section, channel, " ".join(own), now, around=around)
            yield items[block]
        elif block.type in ("paragraph", "code_block") and parent is outline.root:
            strays = _lookalikes(block.content.split("\n"), line)
        elif block.type == "row" and plain_heading(section) in known and parent and block is not parent.children[0]:
            strays = [(line, block.content)]
        for number, each in strays:
            yield _entry(number, number, section, channel, each, now, in_list=False)


def _entry(
    line: int,
    last: int,
    section: str,
    channel: str,
    said: str,
    now: datetime,
    *,
    in_list: bool = True,
    around: Entry | None = None,
) -> Entry:
    text, local, state = " ".join(said.split()), now.replace(tzinfo=None), IN_FORCE
    dates = _validity_in(text)
    if around and around.state != IN_FORCE:
        state = around.state
    elif dates and not dates.holds_at(local):
        state = ENDED if dates.is_past(local) else NOT_BEGUN
    return Entry(line, last, section, channel, text, in_list, around is not None, dates, state)


def _lookalikes(lines: Sequence[str], first: int) -> list[tuple[int, str]]:
    """The lines that look like entries and are none, with their numbers."""
    matches = ((number, text, _LOOKALIKE.match(text)) for number, text in enumerate(lines, first))
    return [(number, text[found.end() :]) for number, text, found in matches if found]


def _validity_in(text: str) -> Validity | None:
    """When an entry holds, as the prompt reads it: a date in code or in a link does not count."""
    if validity_of(text) is None:
        return None
    spans = (span for block in Outline(text).root.walk() for span in block.spans)
    return validity_of(text, [(span.start, span.end) for span in spans if span.kind in QUOTED])
