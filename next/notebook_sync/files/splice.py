"""Putting lines into a page and taking lines out. Pure; no byte of the lines that stay changes.

There are several ways to do either, with a blank line more or less. Each is tried and the result read again: it must be
the old file with exactly the change that was meant, else the edit fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from notebook_sync.errors import EditFailed
from notebook_sync.files.page import Page, page_of
from prompt.outline import Outline

# Below a text, this reads as a paragraph of its own unless the text leaves something open.
END = "\n\nend"


def put(page: Page, first: int, after: int, text: str, *, gap: bool, apart: bool = False) -> Page:
    """The page with `text` (\\n at its line ends) in place of the lines from `first` up to `after`.

    `gap` asks for a blank line above it, `apart` prefers one below it.
    """
    low, high = page.unit_from(first), page.unit_from(after)
    meant = [*page.units[:low], *Page("", "", text).units, *page.units[high:]]
    if not text:
        return take_out(page, [(first, after, True)], lambda new: new.units == meant)
    lines = page.lines
    end = (_end_of(lines[after - 1]) if first < after else "") or _end_near(page, first)
    written = (end if gap else "") + text.replace("\n", end)
    last = lines[after - 1] if after else "\n"
    if not _end_of(last):
        ways = [written if first < after else end + written]
    elif after < len(lines) and not is_blank(lines[after]):
        ways = [written + end + end, written + end] if apart else [written + end, written + end + end]
    else:
        ways = [written + end]
    texts = (["".join(lines[:first]), way, *lines[after:]] for way in ways)
    return first_right(page, after, texts, lambda new: new.units == meant)


def take_out(page: Page, runs: Sequence[tuple[int, int, bool]], is_right: Callable[[Page], bool]) -> Page:
    """The page without runs of lines, `(first, after, ends its list)`, in order, and without the blank lines that
    separated them from what is above. Raises as `first_right`."""
    ways = []
    for with_gaps, blank in ((True, ""), (False, ""), (False, _end_near(page, runs[0][0]))):
        lines = [*page.lines]
        for first, after, ends_list in reversed(runs):
            start, stop = _with_gaps(lines, first, after, ends_list) if with_gaps else (first, after)
            is_open = stop == len(lines) and not _end_of(lines[-1])
            lines[start:stop] = [blank] if blank else []
            if is_open and lines:
                lines[-1] = lines[-1].removesuffix("\n").removesuffix("\r")
        ways.append(lines)
    return first_right(page, runs[-1][1], ways, is_right)


def _with_gaps(lines: Sequence[str], first: int, after: int, ends_list: bool) -> tuple[int, int]:
    """The lines from `first` up to `after` with the blank lines that only they needed."""
    above, below = first, after
    while above and is_blank(lines[above - 1]):
        above -= 1
    while below < len(lines) and is_blank(lines[below]):
        below += 1
    start = above if ends_list or below > after else first
    return start, below if first == 0 and below < len(lines) else after


def first_right(page: Page, after: int, ways: Iterable[Sequence[str]], is_right: Callable[[Page], bool]) -> Page:
    """The page with the first of `ways` as its lines that `is_right`, under the same head.

    Raises EditFailed where none is: what is around line `after` would take the edit in, or be taken in by it.
    """
    head = page.head
    if "\n" in head and not head.endswith("\n"):  # frontmatter that is all of the file
        head += "\r\n" if "\r\n" in head else "\n"
    for way in ways:
        new = page_of(page.path, head + "".join(way))
        if new.head == head and is_right(new):
            return new
    reason = "the file would not read as meant: the change would join, or separate, what is above and below it"
    line = page.line + after
    text = "".join(page.lines[:after])
    if not is_closed(text):
        reason = "this line opens a code fence, a comment or HTML that nothing closes; close it first"
        line = page.line + Outline(text).root.children[-1].first
    raise EditFailed(page.path, reason, line=line)


def is_closed(text: str) -> bool:
    """Whether a text leaves nothing open, as a code fence without an end does."""
    last = Outline(text + END).root.children[-1]
    return last.type == "paragraph" and last.content == END.strip()


def is_blank(line: str) -> bool:
    return not line.strip(" \t\r\n")


_EOL = re.compile(r"(\r\n?|\n)")
_LAST_EOL = re.compile(r"(\r\n?|\n)[^\r\n]*\Z")


def _end_near(page: Page, at: int) -> str:
    """How the line above `at` ends, else the one above that, else the first of the file."""
    found = _LAST_EOL.search("".join(page.lines[max(at - 2, 0) : at])) or _EOL.search(page.text)
    return found[1] if found else "\n"


def _end_of(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
