"""The entries of a runtime file as a page lists them, and the file with one of them changed. Pure.

Only the lines of that entry change: where the file would not read as before around it, EditFailed says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from textwrap import dedent
from typing import Final

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_finding import items_in
from notebook_sync.files.edit_lines import lines_of
from notebook_sync.files.edit_places import Page, Structure, page_of, structure_of

_PIN = re.compile(r"<!--\s*pin\s*-->\s*", re.IGNORECASE)
_COMMENT = re.compile(r"\s*<!--")
_UNTIL = re.compile(r"[ \t]*\[until\b[^\[\]]{0,80}\]", re.IGNORECASE)
_EOL = re.compile(r"\r\n?|\n")
LIST_MARK = re.compile(r"[ \t]*(?:[-+*]|[0-9]{1,9}[.)])[ \t]+")
_PIN_LINE: Final = "<!-- pin -->"


@dataclass(frozen=True, slots=True)
class Item:
    """A list item at top level, with what is below it: its first line in the file, from 1, its lines as they are but
    for \\n at their ends, and the name by which an edit finds it. `said` is its own text on one line, `text` all of it
    without the mark. `done` is None where it has no box."""

    line: int
    anchor: str
    raw: str
    match: str
    said: str
    text: str
    done: bool | None


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it up to the next; above all headings, `title` is "" and `level` 0. `prose` is
    what is in no list and in no comment."""

    title: str
    anchor: str
    level: int
    line: int
    is_pinned: bool
    items: tuple[Item, ...]
    prose: str


def sections_of(text: str) -> tuple[Section, ...]:
    """All sections of a file, in order."""
    page = page_of(text, "")
    return tuple(_section(page, number) for number in range(len(page.parts)))


def item_at(text: str, line: int, raw: str) -> Item | None:
    """The item that is `raw`: the one at this line, or else the only one in the file."""
    same = [item for section in sections_of(text) for item in section.items if item.raw == raw]
    there = [item for item in same if item.line == line]
    return there[0] if there else same[0] if len(same) == 1 else None


def with_item(path: str, text: str, item: Item, raw: str) -> str:
    """The file with other lines in place of an item's. Raises EditFailed where they are not one item."""
    raw = raw.strip("\n").rstrip()
    if not raw.strip():
        raise EditFailed(path, "an entry says something; to take it out, remove it")
    lines = lines_of(text)
    first, count = item.line - 1, item.raw.count("\n") + 1
    last = lines[first + count - 1]
    ending = last[len(last.rstrip("\r\n")) :]
    eol = _eol_of(text)
    changed = "".join([*lines[:first], raw.replace("\n", eol) + ending, *lines[first + count :]])
    meant = [
        (
            section.title,
            section.level,
            section.prose,
            tuple(raw if each.line == item.line else each.raw for each in section.items),
        )
        for section in sections_of(text)
    ]
    found = [
        (section.title, section.level, section.prose, tuple(each.raw for each in section.items))
        for section in sections_of(changed)
    ]
    if meant != found:
        raise EditFailed(path, "it would not stand there as one entry; begin it with '- ', and indent its other lines")
    return changed


def with_pin(path: str, text: str, anchor: str, *, is_pinned: bool) -> str:
    """The file with a section pinned, or no more. Raises EditFailed for a section that is not there."""
    page = page_of(text, path)
    number = next((at for at, part in enumerate(page.parts) if part.heading and part.anchor == anchor), None)
    if number is None:
        raise EditFailed(path, "the section is not there any more")
    part = page.parts[number]
    structure = structure_of(page.text_of(part))
    if _is_pinned(structure) == is_pinned:
        return text
    lines = list(structure.lines)
    after = structure.blocks[0].after
    if is_pinned:
        eol = _eol_of(text)
        if not lines[after - 1].endswith(("\n", "\r")):
            lines[after - 1] += eol
        lines.insert(after, _PIN_LINE + eol)
    else:
        del lines[structure.blocks[1].first : structure.blocks[1].after]
    content = page.content[: part.start] + "".join(lines) + page.content[part.end :]
    changed = page.head + content
    before, now = sections_of(text), sections_of(changed)
    meant = [one.is_pinned for one in before]
    meant[number] = is_pinned
    if [one.is_pinned for one in now] != meant or [one.title for one in now] != [one.title for one in before]:
        raise EditFailed(path, "the section cannot be pinned by a line of its own; edit the file as a whole")
    return changed


def with_until(raw: str, until: date | None) -> str:
    """An entry with another last day, or with none."""
    mark = f"[until {until:%Y-%m-%d}]" if until else ""
    lines = raw.split("\n")
    # Only in its first paragraph, which is all that is read for it.
    own = next((at for at, line in enumerate(lines) if not line.strip()), len(lines))
    lines = [_UNTIL.sub("", line) if at < own else line for at, line in enumerate(lines)]
    lines[0] = f"{lines[0].rstrip()} {mark}".rstrip()
    return "\n".join(lines)


def until_in(raw: str) -> str:
    """The last day that an entry names, as it is written; "" for none."""
    found = re.findall(r"\[until:?\s+(\d{4}-\d{2}-\d{2})\]", raw, re.IGNORECASE)
    return found[-1] if found else ""


def moment_shown_in(when: datetime | None) -> tuple[str, str]:
    """The day and the time as forms have them; "" for none, and for midnight."""
    if when is None:
        return "", ""
    clock = f"{when:%H:%M}"
    return f"{when:%Y-%m-%d}", "" if clock == "00:00" else clock


def _section(page: Page, number: int) -> Section:
    part = page.parts[number]
    structure = structure_of(page.text_of(part))
    items: list[Item] = []
    for found in items_in(page, [number]):
        if found.item.level == 1:
            lines = structure.lines[found.item.first : found.item.after]
            raw = _plain("".join(lines)).rstrip("\n")
            done = found.item.box != "[ ]" if found.item.box else None
            line = part.line + found.item.first
            text = dedent(LIST_MARK.sub(lambda mark: " " * len(mark[0]), raw, count=1)).strip()
            items.append(Item(line, part.anchor, raw, found.item.shown, found.item.source, text, done))
    return Section(
        title=part.title,
        anchor=part.anchor,
        level=part.level,
        line=part.line,
        is_pinned=part.heading is not None and _is_pinned(structure),
        items=tuple(items),
        prose=_prose(structure),
    )


def _plain(text: str) -> str:
    """With line ends as a form sends them."""
    return _EOL.sub("\n", text)


def _eol_of(text: str) -> str:
    found = _EOL.search(text)
    return found[0] if found else "\n"


def _is_pinned(structure: Structure) -> bool:
    if len(structure.blocks) < 2:
        return False
    heading, below = structure.blocks[:2]
    said = "".join(structure.lines[below.first : below.after])
    return below.kind == "html_block" and heading.after == below.first and bool(_PIN.match(said))


def _prose(structure: Structure) -> str:
    kept: Sequence[str] = [
        _plain("".join(structure.lines[block.first : block.after])).strip("\n")
        for block in structure.blocks
        if block.kind not in ("bullet_list_open", "ordered_list_open", "heading_open")
        and not _COMMENT.match("".join(structure.lines[block.first : block.after]))
    ]
    return "\n\n".join(kept)
