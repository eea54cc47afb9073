"""The entries of a runtime file: its list items with their headings and lines, and what only looks like an entry. Pure.

Code and quotes hold no entries, and what the prompt hides has none for anybody.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TypeVar

from prompt import Gap, end_of_frontmatter, visible
from prompt.dates import Validity, validity_of
from prompt.hidden import QUOTED
from prompt.outline import Block, Lines, Outline

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class Entry:
    """One list item: the 1-based lines `line` to `last` of the file.

    `section` is the known heading that it is below, else the one next above it; `channel` the heading below that one.
    `text` is its first paragraph on one line. `in_list` is False for a line that only looks like an entry. `within` is
    the entry around a nested one.
    """

    line: int
    last: int
    section: str
    channel: str
    text: str
    in_list: bool = True
    within: Entry | None = None
    validity: Validity | None = None

    def holds_at(self, now: datetime) -> bool:
        """Whether neither it nor an entry around it is past or has not begun. `now` is local to the notebook."""
        holds = self.validity is None or self.validity.holds_at(now)
        return holds and (self.within is None or self.within.holds_at(now))


@dataclass(frozen=True, slots=True)
class Malformed:
    """An entry that cannot be read: why, and what to write instead. The prompt shows it as it is."""

    line: int
    reason: str
    write: str

    @property
    def message(self) -> str:
        """The reason and the next step."""
        return f"{self.reason}; write: {self.write}"


def read_entries(
    text: str,
    sections: Collection[str],
    now: datetime,
    read: Callable[[Entry, date], _Read | Malformed | None],
    *,
    is_all: bool = False,
) -> tuple[list[_Read], list[Malformed]]:
    """What `read` makes of the entries of a text that hold `now`, or of all, and those that it or the reader of dates
    cannot read. An entry whose dates cannot be read counts without them. `now` is local to the notebook."""
    found: list[_Read] = []
    malformed: list[Malformed] = []
    today = now.date()
    for entry in [each for each in entries_of(text, sections) if is_all or each.holds_at(now)]:
        one, validity = read(entry, today), entry.validity
        if isinstance(one, Malformed):
            malformed.append(one)
        elif one is not None:
            found.append(one)
        if validity and validity.problem:
            malformed.append(Malformed(entry.line, f"{validity.problem}, so it is ignored", validity.corrected(today)))
    return found, malformed


def entries_of(text: str, sections: Collection[str] = ()) -> list[Entry]:
    """The entries of a runtime file that a model may see; `sections` are the headings, of any level, that its grammar
    knows."""
    return _entries(blank(text, visible(text, now=None).gaps), sections)


def hidden_entries(text: str, sections: Collection[str] = ()) -> list[Entry]:
    """The entries in comments, but for the comment that a file opens with, which explains its grammar."""
    comments = [gap for gap in visible(text, now=None).gaps if gap.reason == "comment"]
    if comments and not text[end_of_frontmatter(text) : comments[0].start].strip():
        del comments[0]
    lines = Lines(text)
    inside = {line for gap in comments for line in range(lines.at(gap.start), lines.at(gap.end - 1) + 1)}
    return [entry for entry in _entries(_MARKS.sub("", text), sections) if entry.line - 1 in inside]


def blank(text: str, gaps: Iterable[Gap]) -> str:
    """A text with spaces in place of what gaps take out; its lines stay where they are."""
    pieces, at = [], 0
    for gap in gaps:
        pieces += [text[at : gap.start], re.sub(r"[^\r\n]", " ", text[gap.start : gap.end])]
        at = gap.end
    return "".join([*pieces, text[at:]])


def plain_heading(title: str) -> str:
    """A heading as it is compared: its words, case folded."""
    return " ".join(re.findall(r"\w+", title.casefold()))


_MARKS = re.compile(r"<!--|-->|%%")
# A list mark without its space, none before a bold name with an identity, or one that is code by its indent.
_LOOKALIKE = re.compile(r"[ \t]*(?:[-+*•](?=\*\*|\[.?\])|(?=\*\*[^*]+\*\*[ \t]*\([^()]*\):)|[-+*•][ \t]+(?=\*\*|\[))")


def _entries(text: str, sections: Collection[str]) -> list[Entry]:
    outline = Outline(text)
    known, titles = {plain_heading(each) for each in sections}, iter(outline.sections)
    section, channel, level = "", "", 0
    items: dict[Block, Entry] = {}
    found: list[Entry] = []
    for block in outline.root.walk():
        line, parent = block.first + 1, block.parent
        lines: Iterable[tuple[int, str]] = ()
        if block.type == "heading" and parent is outline.root:
            title = next(titles).title
            is_below = plain_heading(section) in known and block.level > level and plain_heading(title) not in known
            section, channel, level = (section, title, level) if is_below else (title, "", block.level)
        elif block.type == "list_item" and not block.quotes:
            child = next(iter(block.children), None)
            first, *others = (child.content if child and child.type == "paragraph" else "").split("\n")
            lines = _lookalikes(others, line + 1)
            strays = {number for number, _ in lines}
            own = [first, *(each for number, each in enumerate(others, line + 1) if number not in strays)]
            said, within = (
                " ".join(" ".join(own).split()),
                items.get(parent.parent) if parent and parent.parent else None,
            )
            items[block] = Entry(line, block.last, section, channel, said, within=within, validity=_validity_in(said))
            found.append(items[block])
        elif block.type in ("paragraph", "code_block") and parent is outline.root:
            lines = _lookalikes(block.content.split("\n"), line)
        elif block.type == "row" and plain_heading(section) in known and parent and block is not parent.children[0]:
            lines = [(line, " ".join(block.content.split()))]
        for number, each in lines:
            found.append(Entry(number, number, section, channel, each, in_list=False, validity=_validity_in(each)))
    return found


def _lookalikes(lines: Sequence[str], first: int) -> list[tuple[int, str]]:
    """The lines that look like entries and are none, with their numbers."""
    matches = ((number, text, _LOOKALIKE.match(text)) for number, text in enumerate(lines, first))
    return [(number, text[found.end() :].strip()) for number, text, found in matches if found]


def _validity_in(text: str) -> Validity | None:
    """When an entry holds, as the prompt reads it: a date in code or in a link does not count."""
    if validity_of(text) is None:
        return None
    spans = (span for block in Outline(text).root.walk() for span in block.spans)
    return validity_of(text, [(span.start, span.end) for span in spans if span.kind in QUOTED])
