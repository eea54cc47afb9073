"""Edits of files of facts: any number of facts taken out at once, and facts put at the end of a section. Pure.

As with every edit, the result is read again before it is given back, and no other byte changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_lines import Stretch, is_blank
from notebook_sync.files.edit_places import Page, Structure, page_of
from notebook_sync.files.edit_reading import first_right
from notebook_sync.files.edit_sections import add_section, appended, checked
from notebook_sync.files.excerpt import plain, shorten
from notebook_sync.files.fact_comment import Told, comment_of
from notebook_sync.files.facts import ARCHIVE, Bullet, facts_in


def without_facts(text: str, facts: Collection[Bullet], path: str) -> str:
    """A file's text without these of its facts. Raises EditFailed where what stands around would read otherwise."""
    page = page_of(text, path)
    starts = frozenset(fact.start - len(page.head) for fact in facts)
    for number in reversed(range(len(page.parts))):  # from below: what is above a part stays where it is
        part = page.parts[number]
        if any(part.start <= start < part.end for start in starts):
            page = _without(page, number, starts)
    return page.text


def with_facts(text: str, section: str, sources: Sequence[str], path: str) -> str:
    """A file's text with list items at the end of the first section of this name, with its marks or as a reader sees
    it, at the end of the file where there is none; for "", above all headings. Raises EditFailed where they would read
    otherwise there."""
    page = page_of(text, path)
    content = "\n".join(sources)
    number = _section(page, section)
    if number is None:
        return add_section(page, section, content, "").text
    return appended(page, number, checked(page, number, _with_mark_of(page, number, content))).text


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


def _with_mark_of(page: Page, number: int, content: str) -> str:
    """The items with the mark of the list that they go on with."""
    marks = [block.markup for block in page.blocks_in(number) if block.type == "bullet_list"]
    if not marks or marks[-1] == content[:1]:
        return content
    return "\n".join(marks[-1] + line[1:] if line.startswith("- ") else line for line in content.split("\n"))


def _without(page: Page, number: int, starts: Collection[int]) -> Page:
    """The page without the items of a part that begin at these offsets of its content."""
    part = Structure(page, *page.lines_in(number))
    runs = list(_runs(page, part, starts))
    ways = dict.fromkeys(_taken_out(part.stretch, runs, gaps, blank) for gaps, blank in _WAYS)
    meant = [unit for unit, (_, at) in zip(part.units, part.places, strict=True) if at not in starts]
    return first_right(page, part, ways, meant)


def _runs(page: Page, part: Structure, starts: Collection[int]) -> Iterator[tuple[int, int, bool]]:
    """Items to be taken out that follow each other in one list, as one: their lines, whether they end their list."""
    begins = -1
    lines = page.outline.lines
    for (_, start), (_, below) in pairwise([*part.places, ("", lines.start(part.after))]):
        if start in starts:
            first = lines.at(start)
            after = first + Structure(page, first, lines.at(below)).outline.root.children[0].last
            ends_list = page.block_at(first).last <= after
            begins = first if begins < 0 else begins
            if ends_list or below not in starts:
                yield begins - part.first, after - part.first, ends_list
                begins = -1


# Whether blank lines go with the items that they part, and what is put in the place of those.
_WAYS = ((True, ""), (False, ""), (False, "\n"))


def _taken_out(stretch: Stretch, runs: Sequence[tuple[int, int, bool]], gaps: bool, blank: str) -> str:
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


def _at_the_margin(source: str) -> str:
    lines = source.rstrip().replace("\r\n", "\n").replace("\r", "\n").split("\n")
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))]
    return "\n".join(
        line[len(indent) :] if line.startswith(indent) else line[: len(indent)].lstrip(" \t") + line[len(indent) :]
        for line in lines
    )
