"""What stands where in a file: its sections, their blocks, and the entries of their lists, each found by name. Pure.

A heading at top level ends whatever stands above it, so the part of a file from one heading to the next reads the
same alone as in the file. That is what lets an edit read one part and leave the others unread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from notebook_sync.errors import EditFailed
from notebook_sync.files.commonmark import block_tokens
from notebook_sync.files.edit_lines import is_blank, lines_of
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.inline import plain, without_comments
from notebook_sync.files.outline import Heading, outline
from notebook_sync.files.prose import shorten
from prompt.anchors import anchors_of

if TYPE_CHECKING:
    from markdown_it.token import Token


@dataclass(frozen=True, slots=True)
class Part:
    """A heading and what stands below it up to the next heading of any level; or, without one, what is above all.

    `start` and `end` are offsets in the page's content, `line` is that of its first line in the file, from 1.
    """

    heading: Heading | None
    anchor: str
    start: int
    end: int
    line: int

    @property
    def title(self) -> str:
        return self.heading.text if self.heading else ""

    @property
    def level(self) -> int:
        """1 to 6; 0 for what is above all headings."""
        return self.heading.level if self.heading else 0


@dataclass(frozen=True, slots=True)
class Page:
    """A file. `head` is its byte order mark and frontmatter; `parts[0]` is what stands above the first heading."""

    path: str
    head: str
    content: str
    parts: tuple[Part, ...]

    def text_of(self, part: Part) -> str:
        return self.content[part.start : part.end]

    def section(self, number: int) -> range:
        """The numbers of the parts that the section of a part is made of: its own and its child headings'."""
        if number == 0:
            return range(1)
        end = number + 1
        while end < len(self.parts) and self.parts[end].level > self.parts[number].level:
            end += 1
        return range(number, end)


def page_of(text: str, path: str) -> Page:
    """The page that `text` is; its sections have the anchors that `parse` gives them."""
    front = read_frontmatter(text)
    headings = outline(front.content).headings
    anchors = anchors_of([heading.text for heading in headings])
    starts = [*(heading.start for heading in headings), len(front.content)]
    above = front.head.count("\n")
    parts = [Part(None, "", 0, starts[0], above + 1)]
    for index, (heading, anchor) in enumerate(zip(headings, anchors, strict=True)):
        parts.append(Part(heading, anchor, starts[index], starts[index + 1], above + heading.line))
    return Page(path, front.head, front.content, tuple(parts))


@dataclass(frozen=True, slots=True)
class Block:
    """A top-level block: its lines in the part, without blank ones at its end, and its tokens."""

    kind: str
    first: int
    after: int
    opens: int
    closes: int


@dataclass(frozen=True, slots=True)
class Item:
    """A list item, with its continuation lines and children: its lines in the part, and its tokens.

    `mark` is as written (`-`, `2.`), `box` is `[ ]`, `[x]` or "", `source` the rest of its own text on one line,
    without comments. `level` is 1 in a list at top level. `ends_list`: no item of the same list follows.
    """

    first: int
    after: int
    opens: int
    closes: int
    level: int
    mark: str
    box: str
    source: str
    ends_list: bool

    @property
    def shown(self) -> str:
        return " ".join(filter(None, (self.mark, self.box, self.source)))


@dataclass(frozen=True, slots=True)
class Structure:
    """What stands in a part."""

    lines: Sequence[str]
    tokens: Sequence[Token]
    blocks: tuple[Block, ...]


def structure_of(text: str) -> Structure:
    """The structure of a part's text."""
    lines = lines_of(text)
    tokens = block_tokens(text)
    blocks: list[Block] = []
    opened = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting >= 0:
            opened = index
        if token.level == 0 and token.nesting <= 0:
            blocks.append(Block(tokens[opened].type, *_span(tokens[opened], lines), opened, index + 1))
    return Structure(lines, tokens, tuple(blocks))


def items_of(structure: Structure) -> list[Item]:
    """The items of all lists that are in no quote, nested ones too, in order."""
    lines, tokens = structure.lines, structure.tokens
    items: list[Item] = []
    words: dict[int, list[str]] = {}
    open_items: list[int] = []
    quotes = 0
    for index, token in enumerate(tokens):
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type == "inline" and open_items:
            words[open_items[-1]].append(token.content)
        elif token.type == "list_item_open" and not quotes:
            open_items.append(index)
            words[index] = []
        elif token.type == "list_item_close" and not quotes:
            start = open_items.pop()
            ends_list = tokens[index + 1].type != "list_item_open"
            items.append(_item(tokens, lines, (start, index + 1), words.pop(start), ends_list))
    return sorted(items, key=lambda item: item.opens)


def _span(token: Token, lines: Sequence[str]) -> tuple[int, int]:
    first, after = token.map or (0, 0)
    after = min(after, len(lines))
    while after > first + 1 and is_blank(lines[after - 1]):
        after -= 1
    return first, after


_BOX = re.compile(r"\[[ xX]\](?=\s|\Z)")


def _item(
    tokens: Sequence[Token], lines: Sequence[str], span: tuple[int, int], words: list[str], ends_list: bool
) -> Item:
    opens, closes = span
    token = tokens[opens]
    first, after = _span(token, lines)
    box = _BOX.match(words[0]) if words and tokens[opens + 1].type == "paragraph_open" else None
    if box and box_at(lines[first]) is None:
        box = None
    if box:
        words = [words[0][box.end() :], *words[1:]]
    source = " ".join(without_comments("\n".join(words)).split())
    return Item(
        first, after, opens, closes, token.level, token.info + token.markup, box[0] if box else "", source, ends_list
    )


_TO_THE_BOX = re.compile(r"(?:[ \t]*(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]))+[ \t]+\[(?=[ xX]\])")


def box_at(line: str) -> int | None:
    """Where, in the first line of an item, the inside of its box is."""
    found = _TO_THE_BOX.match(line)
    return found.end() if found else None


# Finding by name.

_MARKS = re.compile(r"#{1,6}[ \t]+")


def section_named(page: Page, name: str) -> int:
    """The number of the part whose section has this anchor or this heading. Raises EditFailed with what there is.

    In a file without headings, and only there, "" names all of it.
    """
    if not page.parts[1:] and not name.strip():
        return 0
    name = name.strip()
    if not name:
        raise EditFailed(page.path, "name the section; there is:", _sections(page.parts[1:]))
    wanted = name.removeprefix("#")
    for number, part in enumerate(page.parts[1:], 1):
        if part.anchor == wanted:
            return number
    texts = {" ".join(text.split()).casefold() for text in (name, plain(name), _MARKS.sub("", name, count=1))}
    found = [number for number, part in enumerate(page.parts) if part.heading and part.title.casefold() in texts]
    if len(found) == 1:
        return found[0]
    if found:
        reason = f"several sections are called {shorten(name)!r}; name one by its anchor:"
        raise EditFailed(page.path, reason, _sections([page.parts[number] for number in found]))
    near = _likeness_to(name)
    there = sorted(page.parts[1 : _MOST_COMPARED + 1], key=lambda part: -near(part.title))
    seen = "there is:" if there else "the file has no headings"
    raise EditFailed(page.path, f"no section is called {shorten(name)!r}; {seen}", _sections(there))


_MOST_CANDIDATES = 20
_MOST_COMPARED = 2_000
_LONGEST_COMPARED = 200


def _sections(parts: Sequence[Part]) -> tuple[str, ...]:
    return _at_most([f"#{part.anchor} (line {part.line}): {shorten(part.title)}" for part in parts])


def _at_most(candidates: Sequence[str]) -> tuple[str, ...]:
    more = len(candidates) - _MOST_CANDIDATES
    return (*candidates[:_MOST_CANDIDATES], *([f"… and {more:,} more"] if more > 0 else []))


def _likeness_to(wanted: str) -> Callable[[str], float]:
    """How near a name is to `wanted`: the share of letter pairs they have in common, from 0 to 1."""

    def pairs_of(text: str) -> set[str]:
        text = text[:_LONGEST_COMPARED].casefold()
        return {text[at : at + 2] for at in range(len(text) - 1)}

    pairs = pairs_of(wanted)

    def likeness(text: str) -> float:
        others = pairs_of(text)
        return 2 * len(pairs & others) / (len(pairs) + len(others) or 1)

    return likeness


@dataclass(frozen=True, slots=True)
class Found:
    """An item, and the part that it stands in."""

    part: int
    structure: Structure
    item: Item


def items_in(page: Page, numbers: Iterable[int]) -> Iterator[Found]:
    """Every item of these parts, in order."""
    for number in numbers:
        structure = structure_of(page.text_of(page.parts[number]))
        for item in items_of(structure):
            yield Found(number, structure, item)


_ONLY_MARKS = re.compile(r"(?:(?:[-+*]|[0-9]{1,9}[.)])(?:\s+|\Z))?(?:\[[ xX]?\])?\s*")


def item_matching(page: Page, words: str, section: str) -> Found:
    """The one item whose own text has `words` in it, in any case; or whose whole line they are, mark and all.

    `section` restricts the search to one section and its children. Raises EditFailed with what there is.
    """
    wanted = " ".join(without_comments(words).split()).casefold()
    if _ONLY_MARKS.fullmatch(wanted):
        raise EditFailed(page.path, "entry_match is empty; give some words of the entry")
    numbers = page.section(section_named(page, section)) if section.strip() else range(len(page.parts))
    # Only what has all the words in it is worth the reading of its lists, or of its marks.
    every_word = frozenset(_WORD.findall(wanted))
    likely = [number for number in numbers if _holds(page.text_of(page.parts[number]), every_word)]
    there = [each for each in items_in(page, likely) if _holds(each.item.shown, every_word)]
    found = [each for each in there if wanted in each.item.shown.casefold()]
    found = found or [each for each in there if wanted in _as_read(each.item).casefold()]
    whole = [each for each in found if each.item.shown.casefold() == wanted]
    if len(found) == 1 or len(whole) == 1:
        return (whole or found)[0]
    where = f" in {shorten(section.strip())!r}" if section.strip() else ""
    if found:
        reason = f"several entries{where} match {shorten(words)!r}; give the whole line of one, or its section:"
        raise EditFailed(page.path, reason, shown_items(page, found))
    near = _likeness_to(words)
    there = sorted(islice(items_in(page, numbers), _MOST_COMPARED), key=lambda each: -near(each.item.source))
    seen = "there is:" if there else "there is none"
    raise EditFailed(page.path, f"no entry{where} matches {shorten(words)!r}; {seen}", shown_items(page, there))


_WORD = re.compile(r"\w+")


def _holds(text: str, words: Iterable[str]) -> bool:
    text = text.casefold()
    return all(word in text for word in words)


def _as_read(item: Item) -> str:
    """The item without the marks between its words."""
    return " ".join(filter(None, (item.mark, item.box, plain(item.source))))


def shown_items(page: Page, found: Sequence[Found]) -> tuple[str, ...]:
    """A line for each, with its section's anchor, its line in the file, and its text."""
    return _at_most(
        [
            f"#{page.parts[each.part].anchor} (line {page.parts[each.part].line + each.item.first}): "
            f"{shorten(each.item.shown)}"
            for each in found
        ]
    )
