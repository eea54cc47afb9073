"""Edits of a section as a whole: append to its own text, replace it, add another section. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_finding import section_named
from notebook_sync.files.edit_lines import Stretch, is_blank, put, take_out
from notebook_sync.files.edit_places import Page, Structure
from notebook_sync.files.edit_reading import first_right
from notebook_sync.files.edit_shape import Content, content_of
from notebook_sync.files.excerpt import plain, shorten, without_comments
from prompt.outline import Block

_LISTS = ("bullet_list", "ordered_list")
_DEEPEST = 6


def append_to_section(page: Page, section: str, content: str) -> str:
    """The page's text with `content` after the section's last own entry."""
    number = section_named(page, section)
    wanted = checked(page, number, content)
    if not wanted.text:
        raise EditFailed(page.path, "there is no content to append")
    return appended(page, number, wanted)


def checked(page: Page, number: int, text: str) -> Content:
    """`text` as content of the own text of a part. Raises EditFailed for what would break out of it."""
    content = content_of(text, page.parts[number].level or _DEEPEST)
    if isinstance(content, str):
        raise EditFailed(page.path, f"the content cannot stand there: {content}")
    return content


def appended(page: Page, number: int, content: Content) -> str:
    """The page's text with `content` in the part, directly below the list that it goes on with, else after a blank
    line; above a comment or a rule that ends the part."""
    own = _own_text(page, number)
    gap = own.end > 0
    if own.blocks and own.blocks[-1].type == content.kind and content.kind in _LISTS:
        gap = _is_loose(own.structure, own.blocks[-1])
    shape = own.structure.shape
    meant = shape[: own.closes] + content.shape + shape[own.closes :]
    return first_right(page, number, put(own.stretch, own.end, own.end, content.text, gap=gap), meant)


def replace_section(page: Page, section: str, content: str) -> str:
    """The page's text with `content` in place of the section's own text."""
    number = section_named(page, section)
    wanted = checked(page, number, content)
    own = _own_text(page, number)
    if own.first == own.after:
        return appended(page, number, wanted) if wanted.text else page.head + page.content
    if wanted.text:
        ways = put(own.stretch, own.first, own.after, wanted.text, gap=False)
    else:
        ways = take_out(own.stretch, own.first, own.after, ends_list=True)
    shape = own.structure.shape
    meant = shape[: own.opens] + wanted.shape + shape[own.closes :]
    return first_right(page, number, ways, meant)


def add_section(page: Page, heading: str, content: str, after: str) -> str:
    """The page's text with a new section below the section `after`, or at the end where that is ""."""
    level, last = 2, len(page.parts) - 1
    if after.strip():
        number = section_named(page, after)
        level, last = page.parts[number].level or 2, page.section(number)[-1]
    title = _new_title(page, heading)
    wanted = content_of(content, level)
    if isinstance(wanted, str):
        raise EditFailed(page.path, f"the content cannot stand there: {wanted}")
    written = content_of(f"{'#' * level} {title}" + (f"\n\n{wanted.text}" if wanted.text else ""), 0)
    if isinstance(written, str) or written.shape[1:] != wanted.shape or plain(written.shape[0].source) != plain(title):
        raise EditFailed(page.path, f"{shorten(title)!r} cannot be written as a heading; give its text without marks")
    part = page.parts[last]
    structure = Structure(page.text_of(part))
    stretch = stretch_of(page, last, structure.lines)
    at = len(structure.lines)
    while at and is_blank(structure.lines[at - 1]):
        at -= 1
    ways = put(stretch, at, at, written.text, gap=at > 0)
    return first_right(page, last, reversed(ways), structure.shape + written.shape)


_ANY_EOL = re.compile(r"\r\n?|\n")


def stretch_of(page: Page, number: int, lines: Sequence[str]) -> Stretch:
    """The lines of a part, to be edited."""
    found = _ANY_EOL.search(page.head + page.content)
    return Stretch(lines, found[0] if found else "\n", page.parts[number].end == len(page.content))


@dataclass(frozen=True, slots=True)
class _Own:
    """The own text of a part: its lines from `first` up to `after`, its forms in the shape from `opens` up to `closes`.

    Comments directly below the heading tell the section's format, or pin it; comments and a rule at the end belong to
    the place as well. They frame the own text. `end` is where the next entry goes.
    """

    structure: Structure
    stretch: Stretch
    blocks: Sequence[Block]
    first: int
    after: int
    end: int
    opens: int
    closes: int


def _own_text(page: Page, number: int) -> _Own:
    structure = Structure(page.text_of(page.parts[number]))
    blocks = list(structure.blocks)
    top, bottom = 0, len(structure.lines)
    while blocks and ((top == 0 and page.parts[number].section) or _is_comment(blocks[0])):
        top = blocks.pop(0).last
    while blocks and (blocks[-1].type == "hr" or _is_comment(blocks[-1])):
        bottom = blocks.pop().first
    # Definitions of links are no blocks.
    said = [line for line in range(top, bottom) if not is_blank(structure.lines[line])]
    first, after = (said[0], said[-1] + 1) if said else (top, top)
    end = blocks[-1].last if blocks else after
    opens, closes = structure.place_in_shape(top), structure.place_in_shape(end if blocks else top)
    return _Own(structure, stretch_of(page, number, structure.lines), blocks, first, after, end, opens, closes)


def _is_comment(block: Block) -> bool:
    """Whether the block is comments and nothing else; also one that is never closed."""
    source = block.content if block.type == "html_block" else ""
    return source.startswith("<!--") and without_comments(source).lstrip()[:4] in ("", "<!--")


def _is_loose(structure: Structure, block: Block) -> bool:
    """Whether a blank line stands between the last two items of a list."""
    return len(block.children) > 1 and is_blank(structure.lines[block.children[-1].first - 1])


def _new_title(page: Page, heading: str) -> str:
    title = " ".join(heading.split(" ")).strip()
    if not title or "\n" in title or "\r" in title:
        raise EditFailed(page.path, "name the section to add, on one line")
    for part in page.parts[1:]:
        if part.title.casefold() == plain(title).casefold():
            raise EditFailed(
                page.path, f"there is a section {shorten(title)!r} already, in line {part.line}; append to it"
            )
    return title
