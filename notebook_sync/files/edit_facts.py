"""Edits of files of facts: any number of facts taken out at once, and facts put at the end of a section. Pure.

As with every edit, the result is read again before it is given back, and no other byte changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_lines import Stretch, is_blank, lines_of, put
from notebook_sync.files.edit_places import Item, Page, Structure, items_of, page_of
from notebook_sync.files.edit_reading import first_right
from notebook_sync.files.edit_sections import add_section, appended, checked, stretch_of
from notebook_sync.files.edit_shape import Form, Shape
from notebook_sync.files.excerpt import plain, shorten
from notebook_sync.files.fact_comment import Told, comment_of
from notebook_sync.files.facts import ARCHIVE, Bullet, facts_in, is_plain_item


def without_facts(text: str, facts: Collection[Bullet], path: str) -> str:
    """A file's text without these of its facts. Raises EditFailed where what stands around would read otherwise."""
    page = page_of(text, path)
    starts = frozenset(fact.start - len(page.head) for fact in facts)
    for number in reversed(range(len(page.parts))):  # from below: what is above a part stays where it is
        part = page.parts[number]
        if any(part.start <= start < part.end for start in starts):
            page = page_of(_without(page, number, starts), path)
    return page.head + page.content


def with_facts(text: str, section: str, sources: Sequence[str], path: str) -> str:
    """A file's text with list items at the end of the first section of this name, with its marks or as a reader sees
    it, at the end of the file where there is none; for "", above all headings. Raises EditFailed where they would read
    otherwise there."""
    page = page_of(text, path)
    content = "\n".join(sources)
    number = _section(page, section)
    if number is None:
        return add_section(page, section, content, "")
    if (plain := _plainly_with(page, number, content)) is not None:
        return plain
    return appended(page, number, checked(page, number, _with_mark_of(page, number, content)))


def source_of(text: str, fact: Bullet, told: Told | None = None) -> str:
    """The lines of a fact as they would stand at the margin, \\n at their ends; with other comments for `told`.

    Raises EditFailed for a fact that can carry no comment.
    """
    if told is None:
        return _at_the_margin(text[fact.start : fact.end])
    bare = _at_the_margin(text[fact.start : fact.comment[0] if fact.comment else fact.end])
    comment = comment_of(told)
    if not comment:
        return bare
    indent = " " * (len(bare) - len(bare.lstrip("-+*0123456789.)").lstrip(" \t")))
    for way in (f"{bare} {comment}", f"{bare}\n{indent}{comment}", f"{bare}\n\n{indent}{comment}"):
        found = facts_in(ARCHIVE, way)
        if [(one.content, one.importance, one.archived) for one in found] == [
            (fact.content, told.importance, told.archived)
        ]:
            return way
    raise EditFailed(fact.path, f"line {fact.line}: nothing can be told of {shorten(fact.content)!r} in a comment")


def _section(page: Page, name: str) -> int | None:
    if not name.strip():
        return 0
    line = " ".join(name.split())
    titles = [part.title.casefold() for part in page.parts]
    ways = (line.casefold(), plain(line).casefold())
    return next((titles.index(one) for one in ways if one and one in titles), None)


@dataclass(frozen=True, slots=True)
class _Plain:
    """A part that has nothing below its heading but items of one line each, and blank lines. Whatever is done to whole
    lines of these, the others stay what they are, so nothing need be read again. `items` are the numbers of theirs."""

    lines: list[str]
    items: list[int]


def _plain(page: Page, number: int) -> _Plain | None:
    part = page.parts[number]
    above, below = lines_of(page.content[part.start : part.body]), lines_of(page.content[part.body : part.end])
    items = [at for at, line in enumerate(below, len(above)) if not is_blank(line)]
    is_plain = all(is_plain_item(line) for line in below if not is_blank(line))
    return _Plain(above + below, items) if items and is_plain else None


def _plainly_with(page: Page, number: int, content: str) -> str | None:
    """The page's text with more items of one line each behind those of a part; None where not all of them are such."""
    plain, part = _plain(page, number), page.parts[number]
    if plain is None or not all(is_plain_item(line) for line in content.split("\n")):
        return None
    end = plain.items[-1] + 1
    below = plain.lines[end : end + 1] or page.content[part.end : part.end + 1]
    if below and not (is_blank(below[0]) or below == "#"):
        return None  # a heading that is underlined would be the item's next line
    mark = plain.lines[end - 1][0]
    text = "\n".join(mark + line[1:] if line[0] == "-" else line for line in content.split("\n"))
    is_loose = plain.items[-2:] != [end - 2, end - 1] and len(plain.items) > 1
    stretch = stretch_of(page, number, plain.lines)
    return _replaced(page, number, put(stretch, end, end, text, gap=is_loose)[0])


def _plainly_without(page: Page, number: int, plain: _Plain, starts: Collection[int]) -> str:
    offsets = list(accumulate(map(len, plain.lines), initial=page.parts[number].start))
    marks = {at: plain.lines[at][0] for at in plain.items}
    spans = [(at, at + 1, marks.get(below) != marks[at]) for at, below in pairwise([*plain.items, -1])]
    runs = list(_runs(spans, [offsets[at] in starts for at in plain.items]))
    stretch = stretch_of(page, number, plain.lines)
    return _replaced(page, number, _taken_out(stretch, runs, True, ""))


def _replaced(page: Page, number: int, text: str) -> str:
    part = page.parts[number]
    return page.head + page.content[: part.start] + text + page.content[part.end :]


def _with_mark_of(page: Page, number: int, content: str) -> str:
    """The items with the mark of the list that they go on with."""
    blocks = Structure(page.text_of(page.parts[number])).blocks
    marks = [block.markup for block in blocks if block.type == "bullet_list"]
    if not marks or marks[-1] == content[:1]:
        return content
    return "\n".join(marks[-1] + line[1:] if line.startswith("- ") else line for line in content.split("\n"))


def _without(page: Page, number: int, starts: Collection[int]) -> str:
    """The page's text without the items of a part that begin at these offsets of its content."""
    part = page.parts[number]
    if (plain := _plain(page, number)) is not None:
        return _plainly_without(page, number, plain, starts)
    structure = Structure(page.text_of(part))
    offsets = list(accumulate(map(len, structure.lines), initial=part.start))
    items = [item for item in items_of(structure) if item.depth == 1]
    gone = [offsets[item.first] in starts for item in items]
    runs = list(_runs([(item.first, item.after, item.ends_list) for item in items], gone))
    stretch = stretch_of(page, number, structure.lines)
    ways = dict.fromkeys(_taken_out(stretch, runs, gaps, blank) for gaps, blank in _WAYS)
    meant = _shape_without(structure, [item for item, is_gone in zip(items, gone, strict=True) if is_gone])
    return first_right(page, number, ways, meant)


_Run = tuple[int, int, bool]


def _runs(items: Sequence[_Run], gone: Sequence[bool]) -> Iterator[_Run]:
    """Items to be taken out that follow each other in one list, as one: their lines, whether they end their list."""
    begins = -1
    for (first, after, ends_list), is_gone, next_is_gone in zip(items, gone, [*gone[1:], False], strict=True):
        if not is_gone:
            continue
        begins = first if begins < 0 else begins
        if ends_list or not next_is_gone:
            yield begins, after, ends_list
            begins = -1


# Whether blank lines go with the items that they part, and what is put in the place of those.
_WAYS = ((True, ""), (False, ""), (False, "\n"))


def _taken_out(stretch: Stretch, runs: Sequence[_Run], gaps: bool, blank: str) -> str:
    lines = list(stretch.lines)
    for first, after, ends_list in runs:
        start, stop = first, after
        above = next((at for at in range(first, 0, -1) if not is_blank(stretch.lines[at - 1])), 0)
        below = next((at for at in range(after, len(lines)) if not is_blank(lines[at])), len(lines))
        ends_file = below == len(lines) and stretch.ends_file
        if gaps:
            start = above if ends_list or below > after else first
            stop = below if first == 0 and not ends_file else after
        lines[start:stop] = [""] * (stop - start)
        lines[start] = blank and stretch.eol
    text = "".join(lines)
    ends_open = not stretch.lines[-1].endswith(("\n", "\r")) and not lines[-1]
    return text.removesuffix("\n").removesuffix("\r") if ends_open else text


def _shape_without(structure: Structure, gone: Sequence[Item]) -> Shape:
    kept: list[Form] = []
    at = 0
    for item in gone:
        kept += structure.shape[at : item.opens]
        at = item.closes
    return (*kept, *structure.shape[at:])


def _at_the_margin(source: str) -> str:
    lines = source.rstrip().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))]
    return "\n".join(
        line[len(indent) :] if line.startswith(indent) else line[: len(indent)].lstrip(" \t") + line[len(indent) :]
        for line in lines
    )
