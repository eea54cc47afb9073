"""What a session's prompt leaves out of a file for lack of room, page by page: what an omission line's call returns.

Comments, frontmatter and rules that do not hold are not part of it: no prompt shows them at any cap.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise

from notebook_sync.errors import NoSuchNote, UsageError
from notebook_sync.notes import places
from prompt.budget import Count, count_tokens
from prompt.outline import Outline
from prompt.values import Part, Prompt

# A page has at most so many characters for each of its tokens, so that one page of a long text is found quickly.
_LONGEST_TOKEN = 8


@dataclass(frozen=True, slots=True)
class Omitted:
    """One page of what is left out of `path`, or of its section with the anchor `section`.

    digest: of the bytes that the prompt shows. tokens: of all pages together. next: the `offset` of the next page, 0
    after the last one.
    """

    path: str
    section: str
    digest: str
    text: str
    tokens: int
    next: int


def omitted_of(prompt: Prompt, name: str, section: str, *, max_tokens: int = 0, offset: int = 0) -> Omitted:
    """What `prompt` leaves out of a file, or of one section with all that is below it, from the character `offset` on.

    `name` is the file's path or a runtime file's bare name, and may end in `#section`. Stretches that are apart in the
    file have an empty line between them. A page has at most `max_tokens` tokens, 0 for no limit, and ends inside an
    entry only where the entry is longer than a page. Raises NoSuchNote for a file or a section that the prompt does not
    show, UsageError for an impossible offset.
    """
    part, named = places.found(partial(_part_named, prompt), name)
    count = partial(count_tokens, encoding=prompt.encoding)
    outline = Outline(part.whole)
    start, end, anchor = _range_of(part.path, outline, section or named)
    entries = list(_entries(part, outline, start, end))
    text = "".join(entries).rstrip("\r\n")
    if not 0 <= offset <= len(text):
        raise UsageError(f"offset is a number from 0 to {len(text)} here; without one, the first page is read")
    ends = [*accumulate(map(len, entries[:-1])), len(text)]
    stop = _end_of_page(text, ends, offset, max_tokens, count) if max_tokens else len(text)
    return Omitted(part.path, anchor, part.digest, text[offset:stop], count(text), stop if stop < len(text) else 0)


def _part_named(prompt: Prompt, name: str) -> Part:
    paths = (name, f"{name}.md", f"runtime/{name}", f"runtime/{name}.md")
    part = next((part for path in paths for part in prompt.parts if part.path == path), None)
    if part is None or any(gap.reason == "quarantined" for gap in part.gaps):
        raise NoSuchNote(f"{name} is not in the prompt of this session, so nothing is omitted; read it without omitted")
    return part


def _range_of(path: str, outline: Outline, name: str) -> tuple[int, int, str]:
    """Where the section with this anchor or heading begins and ends, and its anchor."""
    if not name:
        return 0, len(outline.text), ""
    wanted, sections = name.lstrip("#"), outline.sections
    found = [number for number, one in enumerate(sections) if one.anchor == wanted] or [
        number for number, one in enumerate(sections) if one.title.casefold() == wanted.casefold()
    ]
    if len(found) != 1:
        anchors = ", ".join(one.anchor for one in sections) or "none"
        what = "several sections" if found else "no section"
        raise NoSuchNote(f"{path} has {what} named {name!r} in the prompt; anchors: {anchors}")
    heading, *below = outline.headings[found[0] :]
    after = next((one for one in below if one.level <= heading.level), None)
    end = outline.lines.start(after.first) if after else len(outline.text)
    return outline.lines.start(heading.first), end, sections[found[0]].anchor


def _entries(part: Part, outline: Outline, start: int, end: int) -> Iterator[str]:
    """The stretches that are cut out of `[start, end)`, divided where an entry begins."""
    begins = []
    for block in outline.root.children:
        items = block.children if block.type in ("bullet_list", "ordered_list", "table") else ()
        begins += sorted({outline.lines.start(one.first) for one in (block, *items)})
    for first, last in part.cut:
        first, last = max(first, start), min(last, end)
        text = part.whole[first:last]
        first += len(text) - len(text.lstrip("\r\n"))
        last = first + len(text.strip("\r\n"))
        edges = [first, *begins[bisect_right(begins, first) : bisect_left(begins, last)], last]
        if text.strip():
            yield from (part.whole[one:other] for one, other in pairwise(edges))
            yield "\n\n"


def _end_of_page(text: str, ends: Sequence[int], offset: int, max_tokens: int, count: Count) -> int:
    """Where the page from `offset` ends: below an entry, else below a line, else below a character."""
    longest = min(offset + _LONGEST_TOKEN * max_tokens, len(text))
    lines = [match.end() for match in re.finditer("\n", text[:longest])]
    for stops in (ends, lines, range(longest + 1)):
        fitting = stops[bisect_right(stops, offset) : bisect_right(stops, longest)]
        fits = bisect_right(fitting, max_tokens, key=lambda end: count(text[offset:end]))
        if fits:
            return fitting[fits - 1]
    return min(offset + 1, len(text))
