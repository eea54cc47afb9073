"""Edits of a section as a whole: append to its own text, replace it, add another section. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_finding import section_named
from notebook_sync.files.edit_lines import is_blank, put, take_out
from notebook_sync.files.edit_places import Page, Structure
from notebook_sync.files.edit_reading import first_right
from notebook_sync.files.edit_shape import Content, content_of
from notebook_sync.files.excerpt import plain, shorten, without_comments
from prompt.outline import Block

_LISTS = ("bullet_list", "ordered_list")
_DEEPEST = 6


def append_to_section(page: Page, section: str, content: str) -> Page:
    """The page with `content` after the section's last own entry."""
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


def appended(page: Page, number: int, content: Content) -> Page:
    """The page with `content` in the part, directly below the list that it goes on with, else after a blank line; above
    a comment or a rule that ends the part."""
    own = _own_text(page, number)
    gap = own.end > 0
    if own.last and own.last.type == content.kind and content.kind in _LISTS:
        gap = _is_loose(page, own.last)
    return _put(page, own.end, own.end, content, gap=gap)


def replace_section(page: Page, section: str, content: str) -> Page:
    """The page with `content` in place of the section's own text."""
    number = section_named(page, section)
    wanted = checked(page, number, content)
    own = _own_text(page, number)
    if own.first == own.after:
        return appended(page, number, wanted) if wanted.text else page
    return _put(page, own.first, own.after, wanted, gap=False)


def add_section(page: Page, heading: str, content: str, after: str) -> Page:
    """The page with a new section below the section `after`, or at the end where that is ""."""
    level, last = 2, len(page.parts) - 1
    if after.strip():
        number = section_named(page, after)
        level, last = page.parts[number].level or 2, page.section(number)[-1]
    title = _new_title(page, heading)
    wanted = content_of(content, level)
    if isinstance(wanted, str):
        raise EditFailed(page.path, f"the content cannot stand there: {wanted}")
    written = content_of(f"{'#' * level} {title}" + (f"\n\n{wanted.text}" if wanted.text else ""), 0)
    if (
        isinstance(written, str)
        or written.units[1:] != [*wanted.units]
        or plain(written.units[0].shape[0].source) != plain(title)
    ):
        raise EditFailed(page.path, f"{shorten(title)!r} cannot be written as a heading; give its text without marks")
    at = page.lines_in(last)[1]
    while at and is_blank(page.lines[at - 1]):
        at -= 1
    return _put(page, at, at, written, gap=at > 0, apart=True)


def _put(page: Page, first: int, after: int, content: Content, *, gap: bool, apart: bool = False) -> Page:
    """The page with `content` in place of the lines from `first` up to `after`; `apart` prefers a blank line below."""
    old = page.around(first, after)
    at, until = first - old.first, after - old.first
    if content.text:
        ways = put(old.stretch, at, until, content.text, gap=gap)
    else:
        ways = take_out(old.stretch, at, until, ends_list=True)
    above, below = Structure(page, old.first, first), Structure(page, after, old.after)
    meant = [*above.units, *content.units, *below.units]
    return first_right(page, old, ways[::-1] if apart else ways, meant)


@dataclass(frozen=True, slots=True)
class _Own:
    """The own text of a part: its lines from `first` up to `after`, and the last of its blocks.

    Comments directly below the heading tell the section's format, or pin it; comments and a rule at the end belong to
    the place as well. They frame the own text. `end` is where the next entry goes.
    """

    last: Block | None
    first: int
    after: int
    end: int


def _own_text(page: Page, number: int) -> _Own:
    top, bottom = page.lines_in(number)
    blocks = page.blocks_in(number)
    low, high = 0, len(blocks)
    while low < high and ((low == 0 and page.parts[number].section) or _is_comment(blocks[low])):
        top = blocks[low].last
        low += 1
    while low < high and (blocks[high - 1].type == "hr" or _is_comment(blocks[high - 1])):
        high -= 1
        bottom = blocks[high].first
    # Definitions of links are no blocks.
    first = next((line for line in range(top, bottom) if not is_blank(page.lines[line])), bottom)
    after = next((line for line in range(bottom, first, -1) if not is_blank(page.lines[line - 1])), top)
    last = blocks[high - 1] if low < high else None
    return _Own(last, first if after > top else top, after, last.last if last else after)


def _is_comment(block: Block) -> bool:
    """Whether the block is comments and nothing else; also one that is never closed."""
    source = block.content if block.type == "html_block" else ""
    return source.startswith("<!--") and without_comments(source).lstrip()[:4] in ("", "<!--")


def _is_loose(page: Page, block: Block) -> bool:
    """Whether a blank line stands between the last two items of a list."""
    outline = page.outline
    last = outline.lines.at(outline.units[outline.first_unit(outline.lines.start(block.last)) - 1][1])
    return last > block.first and is_blank(page.lines[last - 1])


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
