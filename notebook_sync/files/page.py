"""One Markdown file as edits see it: its lines, parts, units and list items, and lines put in and taken out. Pure.

A *part* is a heading with the text up to the next heading, or the text above the first one. A *unit* is a block at top
level, or an item of a list there. A name that fits nothing, or several places, is an error that lists what there is.

There are several ways to put lines in and to take them out, with a blank line more or less. Each is tried and the
result read again: it must be the old file with exactly the change that was meant, else the edit fails. No byte of the
lines that stay changes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple, TypeVar

from notebook_sync.errors import EditFailed
from prompt.blocks import LISTS
from prompt.ends import closing_line
from prompt.hidden import end_of_frontmatter
from prompt.outline import Block, Outline, plain_text

_T = TypeVar("_T")


class Part(NamedTuple):
    """Lines are 0-based in the body: `first` is its first, `body` the one below its heading, `after` below its last,
    and `below` the one below its children as well.

    The part above all headings has level 0.
    """

    level: int
    title: str
    anchor: str
    first: int
    body: int
    after: int
    below: int


class Item(NamedTuple):
    """A list item with its continuation lines and children.

    `line` is its 1-based line in the file, `unit` the number of its unit, `depth` 1 in a list at top level. `box` is
    `[ ]`, `[x]` or "", `text` the rest of its own text on one line, without comments, and `texts` its blocks.
    """

    part: Part
    unit: int
    line: int
    depth: int
    block: Block
    box: str
    text: str
    texts: Sequence[Block]

    @property
    def shown(self) -> str:
        return " ".join(filter(None, (self.block.markup, self.box, self.text)))

    @property
    def as_read(self) -> str:
        """The item as a reader sees it, with its mark."""
        words = " ".join(block.shown for block in self.texts)
        return " ".join(filter(None, (self.block.markup, self.box, words.removeprefix(self.box).strip())))


class Page:
    """`head` (byte order mark and frontmatter) and `body` are the text of the file. Lines are those of the body."""

    def __init__(self, path: str, head: str, body: str) -> None:
        self.path, self.head, self.body = path, head, body
        self.outline = Outline(body)
        self.line = head.count("\n") + 1  # the 1-based line of the file that the body begins on

    @property
    def text(self) -> str:
        return self.head + self.body

    @cached_property
    def lines(self) -> Sequence[str]:
        return [self.body[start:end] for start, end in pairwise(self.outline.lines.starts)]

    @cached_property
    def parts(self) -> Sequence[Part]:
        line_of, end = self.outline.lines.at, len(self.lines)
        headed = [
            Part(each.level, each.title, each.anchor, line_of(each.start), line_of(each.body), 0, line_of(each.end))
            for each in self.outline.sections
        ]
        firsts = [*(part.first for part in headed), end]
        above = Part(0, "", "", 0, 0, 0, end if not headed else firsts[0])
        return [part._replace(after=after) for part, after in zip((above, *headed), firsts, strict=True)]

    @cached_property
    def blocks(self) -> Sequence[Block]:
        """The block of each unit. Definitions of links are none: next to each other they are one block."""
        found: list[Block] = []
        for block in self.outline.root.children:
            found += block.children if block.type in LISTS else [block]
        return [block for block in found if block.type != "definition"]

    @cached_property
    def units(self) -> list[tuple[str, str]]:
        """Type and source of each unit, with \\n at line ends: those that are equal read the same."""
        start_of = self.outline.lines.start
        return [(block.type, _ANY_EOL.sub("\n", self.body[start_of(block.first) : block.end])) for block in self.blocks]

    def unit_from(self, line: int) -> int:
        """The number of the first unit that begins on or below a line."""
        return bisect_left(self.blocks, line, key=lambda block: block.first)

    def items(self, within: Part | None = None, words: Collection[str] = ()) -> Iterator[Item]:
        """The list items of a part and its children (of all, without one), nested ones too; those in quotes are none.

        With `words`, only those of units in which all of them are: finding words is faster than telling items apart.
        """
        numbered = iter(self.parts)
        part = next(numbered)
        for unit, (name, source) in enumerate(self.units):
            if name == "heading":
                part = next(numbered)
            elif name == "list_item" and (not within or within.first <= part.first < within.below):
                folded = source.casefold() if words else ""
                if all(word in folded for word in words):
                    yield from self.items_in(unit, part)

    def items_in(self, unit: int, part: Part) -> Iterator[Item]:
        """The item that a unit is, and those in it."""
        found: list[tuple[Block, int, list[Block]]] = []
        waiting: list[tuple[Block, int, list[Block]]] = [(self.blocks[unit], 0, [])]
        while waiting:
            block, depth, texts = waiting.pop()
            if block.type == "list_item" and not block.quotes:
                depth, texts = depth + 1, []
                found.append((block, depth, texts))
            elif block.type in _TEXTS:
                texts.append(block)
            waiting += [(child, depth, texts) for child in reversed(block.children)]
        for block, depth, texts in found:
            words = [text.content for text in texts]
            is_task = texts and texts[0] is block.children[0] and BOX.match(self.lines[block.first])
            box = words[0][:3] if is_task and texts[0].type == "paragraph" else ""
            text = " ".join(without_comments("\n".join(words)[len(box) :]).split())
            yield Item(part, unit, self.line + block.first, depth, block, box, text, texts)

    def error(self, reason: str, candidates: Sequence[str] = ()) -> EditFailed:
        more = [f"… and {len(candidates) - _MOST_CANDIDATES:,} more"] if len(candidates) > _MOST_CANDIDATES else []
        return EditFailed(self.path, reason, candidates=(*candidates[:_MOST_CANDIDATES], *more))

    def section(self, name: str) -> Part:
        """The part whose heading has this anchor or this text. Raises EditFailed with what there is.

        In a file without headings, and only there, "" names all of it.
        """
        name = name.strip()
        above, *headed = self.parts
        if not name and not headed:
            return above
        texts = {" ".join(text.split()).casefold() for text in (name, plain(name), plain(name.lstrip("#")))}
        found = [part for part in headed if part.anchor == name.removeprefix("#")] or [
            part for part in headed if name and part.title.casefold() in texts
        ]
        if len(found) == 1:
            return found[0]
        there = found or _nearest_first(name, headed[:_MOST_COMPARED], lambda part: part.title)
        reason = f"no section is called {shorten(name)!r}; there is{':' if there else ' none'}"
        if found:
            reason = f"several sections are called {shorten(name)!r}; name one by its anchor:"
        candidates = [f"#{part.anchor} (line {self.line + part.first}): {shorten(part.title)}" for part in there]
        raise self.error(reason if name else "name the section; there is:", candidates)

    def item(self, match: str, section: str) -> Item:
        """The one item whose own text has `match` in it, in any case; or whose whole line it is, mark and all.

        `section` restricts the search to one section and its children. Raises EditFailed with what there is.
        """
        wanted = " ".join(without_comments(match).split()).casefold()
        if _ONLY_MARKS.fullmatch(wanted):
            raise self.error("match is empty; give some words of the entry")
        within = self.section(section) if section.strip() else None
        items = [*self.items(within, frozenset(_WORD.findall(wanted)))]
        found = [item for item in items if wanted in item.shown.casefold()] or [
            item for item in items if wanted in item.as_read.casefold()
        ]
        whole = [item for item in found if item.shown.casefold() == wanted]
        if len(found) == 1 or len(whole) == 1:
            return (whole or found)[0]
        there = found or _nearest_first(match, [*islice(self.items(within), _MOST_COMPARED)], lambda item: item.text)
        where = f" in {shorten(section.strip())!r}" if section.strip() else ""
        reason = f"no entry{where} matches {shorten(match)!r}; there is{':' if there else ' none'}"
        if found:
            reason = f"several entries{where} match {shorten(match)!r}; give the whole line of one, or its section:"
        raise self.error(reason, [shown(item) for item in there])


def page_of(path: str, text: str) -> Page:
    """The page that `text` is."""
    start = end_of_frontmatter(text)
    return Page(path, text[:start], text[start:])


def shown(item: Item) -> str:
    """An item as a candidate: with its section's anchor, its line in the file, and its text."""
    return f"#{item.part.anchor} (line {item.line}): {shorten(item.shown)}"


def shorten(words: str, limit: int = 200) -> str:
    """`words` within `limit` characters: a longer text is cut after a word and ends with `…`."""
    if len(words) <= limit:
        return words
    cut = words[: limit - 1]
    if words[limit - 1] != " " and " " in cut:
        cut = cut[: cut.rfind(" ")]
    return cut.rstrip(" ,;:–—-") + "…"


def plain(text: str) -> str:
    """Words of a title or a heading as a reader sees them: on one line, without marks, links as their text."""
    return plain_text(f"# {' '.join(text.split())} #")  # the last mark closes the heading: any before it is text


def without_comments(text: str) -> str:
    """`text` with a space in place of each closed comment."""
    pieces = []
    end = 0
    # No regular expression: it would search to the end of the text from every comment that is not closed.
    while (start := text.find("<!--", end)) >= 0 and (stop := text.find("-->", start)) >= 0:
        pieces.append(text[end:start])
        end = stop + 3
    pieces.append(text[end:])
    return " ".join(pieces)


def is_comment(block: Block) -> bool:
    """Whether the block is comments and nothing else; also one that is never closed."""
    source = block.content if block.type == "html_block" else ""
    return source.startswith("<!--") and without_comments(source).lstrip()[:4] in ("", "<!--")


def is_blank(line: str) -> bool:
    return not line.strip(" \t\r\n")


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
    tails = [end, end + end]
    if after and not _end_of(lines[after - 1]):
        written, tails = written if first < after else end + written, [""]
    elif apart and after < len(lines) and not is_blank(lines[after]):
        tails.reverse()
    texts = (["".join(lines[:first]), written + tail, *lines[after:]] for tail in tails)
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
    above = Outline("".join(page.lines[:after]))
    line = after
    reason = "the file would not read as meant: the change would join, or separate, what is above and below it"
    if page.outline.is_dense:
        line = page.outline.root.children[-1].first
        reason = "from this line on, the file has too many marks to be read as Markdown; write the whole file"
    elif closing_line(above.text):
        line = above.root.children[-1].first
        reason = "this line opens a code fence, a comment or HTML that nothing closes; close it first"
    raise EditFailed(page.path, reason, line=page.line + line)


_ANY_EOL = re.compile(r"\r\n?")
_EOL = re.compile(r"(\r\n?|\n)")
_LAST_EOL = re.compile(r"(\r\n?|\n)[^\r\n]*\Z")
_TEXTS = frozenset(("paragraph", "heading", "row"))
# The begin of a task's line, up to what is in its box.
BOX = re.compile(r"(?:[ \t]*(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]))+[ \t]+\[(?=[ xX]\](?:\s|\Z))")
_ONLY_MARKS = re.compile(r"(?:(?:[-+*]|[0-9]{1,9}[.)])(?:\s+|\Z))?(?:\[[ xX]?\])?\s*")
_WORD = re.compile(r"\w+")
_MOST_CANDIDATES = 20
_MOST_COMPARED = 2_000
_LONGEST_COMPARED = 200


def _nearest_first(name: str, things: Sequence[_T], name_of: Callable[[_T], str]) -> Sequence[_T]:
    """The things, those with a name like `name` first."""
    from rapidfuzz import fuzz  # only a failure needs it

    wanted = name[:_LONGEST_COMPARED].casefold()
    return sorted(things, key=lambda thing: -fuzz.ratio(wanted, name_of(thing)[:_LONGEST_COMPARED].casefold()))


def _end_near(page: Page, at: int) -> str:
    """How the line above `at` ends, else the one above that, else the first of the file."""
    found = _LAST_EOL.search("".join(page.lines[max(at - 2, 0) : at])) or _EOL.search(page.text)
    return found[1] if found else "\n"


def _end_of(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]
