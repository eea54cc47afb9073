"""One Markdown file as edits see it: its lines, parts, units and list items, and what a name in an edit means. Pure.

A *part* is a heading with the text up to the next heading, or the text above the first one. A *unit* is a block at top
level, or an item of a list there. A name that fits nothing, or several places, is an error that lists what there is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple, TypeVar

from notebook_sync.errors import EditFailed
from prompt.hidden import end_of_frontmatter
from prompt.outline import Block, Outline, plain_text

LISTS = ("bullet_list", "ordered_list")
_T = TypeVar("_T")


class Part(NamedTuple):
    """Lines are 0-based in the body: `first` is its first, `body` the one below its heading, `after` below its last.

    The part above all headings has level 0.
    """

    level: int
    title: str
    anchor: str
    first: int
    body: int
    after: int


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
        line_of = self.outline.lines.at
        sections = self.outline.sections
        firsts = [*(line_of(section.start) for section in sections), len(self.lines)]
        return [Part(0, "", "", 0, 0, firsts[0])] + [
            Part(each.level, each.title, each.anchor, first, line_of(each.body), after)
            for each, (first, after) in zip(sections, pairwise(firsts), strict=True)
        ]

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

    def parts_of(self, part: Part) -> Sequence[Part]:
        """A part and the parts of its child headings."""
        number = self.parts.index(part)
        below = (n for n in range(number + 1, len(self.parts)) if self.parts[n].level <= part.level)
        return self.parts[number : next(below, len(self.parts)) if number else 1]

    def items(self, parts: Collection[Part] = (), words: Collection[str] = ()) -> Iterator[Item]:
        """The list items in these parts (all, for none), nested ones too, in order; those in quotes are none.

        With `words`, only those of units in which all of them are: finding words is faster than telling items apart.
        """
        numbered = iter(self.parts)
        part = next(numbered)
        for unit, (name, source) in enumerate(self.units):
            if name == "heading":
                part = next(numbered)
            elif name == "list_item" and (not parts or part in parts) and _has_all(source, words):
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
        found = [part for part in headed if part.anchor == name.removeprefix("#")]
        found = found or [part for part in headed if name and part.title.casefold() in texts]
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
        parts = frozenset(self.parts_of(self.section(section)) if section.strip() else ())
        items = [*self.items(parts, frozenset(_WORD.findall(wanted)))]
        found = [item for item in items if wanted in item.shown.casefold()]
        found = found or [item for item in items if wanted in item.as_read.casefold()]
        whole = [item for item in found if item.shown.casefold() == wanted]
        if len(found) == 1 or len(whole) == 1:
            return (whole or found)[0]
        there = found or _nearest_first(match, [*islice(self.items(parts), _MOST_COMPARED)], lambda item: item.text)
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


_ANY_EOL = re.compile(r"\r\n?")
_TEXTS = frozenset(("paragraph", "heading", "row"))
# The begin of a task's line, up to what is in its box.
BOX = re.compile(r"(?:[ \t]*(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]))+[ \t]+\[(?=[ xX]\](?:\s|\Z))")
_ONLY_MARKS = re.compile(r"(?:(?:[-+*]|[0-9]{1,9}[.)])(?:\s+|\Z))?(?:\[[ xX]?\])?\s*")
_WORD = re.compile(r"\w+")
_MOST_CANDIDATES = 20
_MOST_COMPARED = 2_000
_LONGEST_COMPARED = 200


def _has_all(text: str, words: Collection[str]) -> bool:
    folded = text.casefold() if words else ""
    return all(word in folded for word in words)


def _nearest_first(name: str, things: Sequence[_T], name_of: Callable[[_T], str]) -> Sequence[_T]:
    """The things, those with a name like `name` first."""
    from rapidfuzz import fuzz  # only a failure needs it

    wanted = name[:_LONGEST_COMPARED].casefold()
    return sorted(things, key=lambda thing: -fuzz.ratio(wanted, name_of(thing)[:_LONGEST_COMPARED].casefold()))
