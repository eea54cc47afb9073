"""Reading the result of an edit before it is given back: it must be the old file with the edit in it, else the edit
fails. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_places import Page, Structure
from notebook_sync.files.edit_shape import END, Unit, is_closed, read_the_same
from notebook_sync.files.frontmatter import read_frontmatter
from prompt.outline import Outline


def first_right(page: Page, old: Structure, ways: Iterable[str], meant: Sequence[Unit]) -> Page:
    """The page with its lines `old` written in the first of `ways` that reads as `meant`.

    Raises EditFailed where none does: what stands around the place would take the edit in, or be taken in by it.
    """
    head = _ended(page.head)
    above, below = "".join(page.lines[: old.first]), "".join(page.lines[old.after :])
    for way in ways:
        new = Page(page.path, head, Outline(above + way + below))
        written = Structure(new, old.first, old.after + len(new.lines) - len(page.lines))
        if (
            read_the_same(written.units, meant)
            and _units_stay(page, old, new)
            and _titles_stay(page, old, new)
            and read_frontmatter(new.text).head == head
        ):
            return new
    text = "".join(page.lines[: old.after])
    if not is_closed(Outline(text + END)):
        line = page.line + Outline(text).root.children[-1].first
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


def _units_stay(page: Page, old: Structure, new: Page) -> bool:
    """Whether every unit above and below the lines `old` begins where it did."""
    units, after = page.outline.units, new.outline.units
    low = page.outline.first_unit(page.outline.lines.start(old.first))
    moved = len(new.content) - len(page.content)
    below = [(name, at + moved) for name, at in units[low + len(old.places) :]]
    return after[:low] == units[:low] and after[len(after) - len(below) :] == below


def _titles_stay(page: Page, old: Structure, new: Page) -> bool:
    """Whether every heading below is called what it was: a link definition that comes or goes can change that."""
    if "]:" not in page.content and "]:" not in new.content:
        return True
    below = [part.title for part in page.parts if part.section and part.start >= old.below]
    return [part.title for part in new.parts[len(new.parts) - len(below) :]] == below
