"""Finding the section and the entry that an edit names. A name that fits nothing, or several places, is an error that
lists what there is; it never falls on the likeliest. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_places import Item, Page, Part, Structure, items_of
from notebook_sync.files.excerpt import plain, shorten, without_comments


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
    texts = {" ".join(text.split()).casefold() for text in (name, plain(name), plain(name.lstrip("#")))}
    found = [number for number, part in enumerate(page.parts) if part.section and part.title.casefold() in texts]
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
    """An item, the unit that it stands in, and the part that this stands in."""

    part: int
    structure: Structure
    item: Item

    @property
    def first(self) -> int:
        """Its first line, as one of the page's content."""
        return self.structure.first + self.item.first


def items_in(page: Page, numbers: Collection[int], words: Collection[str] = ()) -> Iterator[Found]:
    """Every item of these parts, in order; with `words`, only of lists' items in which all of them stand."""
    number = 0
    units = [*page.outline.units, ("", len(page.content))]
    for (name, start), (_, end) in pairwise(units):
        number += name == "Heading"
        if name == "Item" and number in numbers and _holds(page.content[start:end], words):
            structure = Structure(page, page.outline.lines.at(start), page.outline.lines.at(end - 1) + 1)
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
    # Only what has all the words in it is worth the reading of its marks.
    every_word = frozenset(_WORD.findall(wanted))
    there = [each for each in items_in(page, numbers, every_word) if _holds(each.item.shown, every_word)]
    found = [each for each in there if wanted in each.item.shown.casefold()]
    found = found or [each for each in there if wanted in each.item.as_read.casefold()]
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


def shown_items(page: Page, found: Sequence[Found]) -> tuple[str, ...]:
    """A line for each, with its section's anchor, its line in the file, and its text."""
    return _at_most(
        [
            f"#{page.parts[each.part].anchor} (line {page.line + each.first}): {shorten(each.item.shown)}"
            for each in found
        ]
    )
