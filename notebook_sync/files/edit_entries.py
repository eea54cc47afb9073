"""Edits of one entry, which is a list item with its continuation lines and children: remove, tick, move. Pure."""

from __future__ import annotations

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_finding import Found, item_matching, section_named, shown_items
from notebook_sync.files.edit_lines import take_out
from notebook_sync.files.edit_places import Page, Structure, box_at, items_of
from notebook_sync.files.edit_reading import first_right
from notebook_sync.files.edit_sections import appended, checked
from notebook_sync.files.edit_shape import Shape, Unit, moved_out, shape_of_units


def remove_entry(page: Page, words: str, section: str) -> Page:
    """The page without the entry that `words` name."""
    return _without(page, item_matching(page, words, section))


def toggle_checkbox(page: Page, words: str, section: str) -> Page:
    """The page with the box of the entry that `words` name ticked, or no more."""
    found = item_matching(page, words, section)
    item, structure = found.item, found.structure
    line = structure.lines[item.first]
    at = box_at(line)
    if not item.box or at is None:
        raise EditFailed(
            page.path,
            "the entry has no box to tick; replace it by one that begins with [ ]:",
            shown_items(page, [found]),
        )
    mark = "x" if item.box == "[ ]" else " "
    window = page.around(structure.first, structure.after)
    way = [*window.lines]
    way[found.first - window.first] = line[:at] + mark + line[at + 1 :]
    shape, number = structure.shape, item.opens + 1  # of the paragraph that begins with the box
    source = shape[number].source
    ticked = shape[number]._replace(source=source[:1] + mark + source[2:])
    meant = (*shape[:number], ticked, *shape[number + 1 :])
    return first_right(page, window, ["".join(way)], _with(page, window, structure, meant))


def move_entry(page: Page, words: str, section: str, to: str) -> Page:
    """The page with the entry that `words` name at the end of the section `to`."""
    if not to.strip():
        raise EditFailed(page.path, "name the section to move the entry to")
    found = item_matching(page, words, section)
    number = section_named(page, to)
    if number == found.part:
        raise EditFailed(page.path, "the entry is in that section already:", shown_items(page, [found]))
    item = found.item
    content = checked(page, number, _at_the_margin(page, found))
    if shape_of_units(content.units) != moved_out(found.structure.shape[item.opens : item.closes], item.depth - 1):
        raise EditFailed(page.path, "the entry would not read the same elsewhere:", shown_items(page, [found]))
    return appended(_without(page, found), number, content)


def _without(page: Page, found: Found) -> Page:
    item, structure = found.item, found.structure
    _refuse_shared_line(page, found)
    window = page.around(structure.first, structure.after)
    first, after = found.first, structure.first + item.after
    ends_list = item.ends_list and (item.depth > 1 or page.block_at(first).last == after)
    ways = take_out(window.stretch, first - window.first, after - window.first, ends_list=ends_list)
    meant = structure.shape[: item.opens] + structure.shape[item.closes :]
    return first_right(page, window, ways, _with(page, window, structure, meant))


def _with(page: Page, window: Structure, unit: Structure, meant: Shape) -> list[Unit]:
    """What the lines of `window` hold with one unit in them changed to what is meant."""
    above, below = Structure(page, window.first, unit.first), Structure(page, unit.after, window.after)
    return [*above.units, Unit("", "", meant), *below.units]


def _refuse_shared_line(page: Page, found: Found) -> None:
    item = found.item
    if any(other.first == item.first and other.depth < item.depth for other in items_of(found.structure)):
        raise EditFailed(page.path, "the entry begins on the line of another:", shown_items(page, [found]))


def _at_the_margin(page: Page, found: Found) -> str:
    """The lines of the entry without the white space that its first line begins with."""
    _refuse_shared_line(page, found)
    lines = found.structure.lines[found.item.first : found.item.after]
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))]
    return "\n".join(_outdented(line.rstrip("\r\n"), indent) for line in lines)


def _outdented(line: str, indent: str) -> str:
    if line.startswith(indent):
        return line[len(indent) :]
    return line[: len(indent)].lstrip(" \t") + line[len(indent) :]
