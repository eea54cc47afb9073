"""Reading the result of an edit before it is given back: it must be the old file with the edit in it, else the edit
fails. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_places import Page, Structure
from notebook_sync.files.edit_shape import END, Shape, is_closed, shape_of
from notebook_sync.files.frontmatter import read_frontmatter
from prompt.outline import Outline


def first_right(page: Page, number: int, ways: Iterable[str], meant: Shape) -> str:
    """The text of the page with its part `number` written in the first of `ways` that reads as `meant`.

    Raises EditFailed where none does: what stands around the place would take the edit in, or be taken in by it.
    """
    part = page.parts[number]
    head = _ended(page.head)
    for way in ways:
        content = page.content[: part.start] + way + page.content[part.end :]
        if shape_of(Outline(way)) == meant and _others_stay(page, number, head, content):
            return head + content
    text = page.text_of(part)
    if not is_closed(Outline(text + END)):
        line = part.line + Structure(text).blocks[-1].first
        raise EditFailed(
            page.path, f"line {line} opens a code fence, a comment or HTML that nothing closes; close it first"
        )
    reason = "the file would not read as meant: the change would join, or part, what stands above and below it"
    raise EditFailed(page.path, reason)


def _ended(head: str) -> str:
    """Frontmatter with an end to its last line, which it lacks where it is all that the file holds."""
    if head.endswith("\n") or "\n" not in head:
        return head
    return head + ("\r\n" if "\r\n" in head else "\n")


def _others_stay(page: Page, number: int, head: str, content: str) -> bool:
    """Whether the frontmatter ends where it did, and every part below begins where it did, by the same heading.

    What stands between those ends and the part's own heading cannot have changed.
    """
    if read_frontmatter(head + content).head != head:
        return False
    moved = len(content) - len(page.content)
    below = [(one.level, one.title, one.start + moved) for part in page.parts[number + 1 :] if (one := part.section)]
    sections = Outline(content).sections
    return [(one.level, one.title, one.start) for one in sections[len(sections) - len(below) :]] == below
