"""Section edits over Markdown: bytes and an edit → bytes. Pure; never changes a byte that the edit does not mean to.

Every result is read again before it is given back. Where the file would not read as the old one with the edit in it
(an open fence above takes the entry in, a line below becomes a heading), the edit fails and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from notebook_sync.errors import EditFailed
from notebook_sync.files.edit_entries import move_entry, remove_entry, toggle_checkbox
from notebook_sync.files.edit_fields import set_frontmatter
from notebook_sync.files.edit_finding import items_in
from notebook_sync.files.edit_places import Page, page_of
from notebook_sync.files.edit_sections import add_section, append_to_section, replace_section
from notebook_sync.files.edit_shape import characters_refused

Action = Literal[
    "append_to_section",
    "replace_section",
    "remove_entry",
    "toggle_checkbox",
    "add_section",
    "move_entry",
    "set_frontmatter",
    "write",
]
ACTIONS: tuple[Action, ...] = get_args(Action)


@dataclass(frozen=True, slots=True)
class Edit:
    """What to change in one file. A section is named by its heading or its anchor.

    append_to_section   `content` after the last own entry of `section`, above its child headings
    replace_section     `content` in place of the own text of `section`; "" empties it. The comments that the text is
                        framed by, a rule below it and child headings stay
    remove_entry        the list item that `entry_match` names, with its children; `section` restricts the search
    toggle_checkbox     the box of that item, ticked or not
    add_section         the heading `section` with `content` below: after the section `to` and at its level, else at
                        the end of the file and at level 2
    move_entry          the item that `entry_match` names, to the end of the section `to`
    set_frontmatter     the fields in `content`, a YAML mapping; null removes one
    write               `content` is the whole file, to the byte: neither the byte order mark nor the line ends of the
                        file that was there are kept

    `section` and `to` may be "" in a file without headings, which is then one section. `reason` changes nothing here.
    """

    action: Action
    section: str = ""
    content: str = ""
    entry_match: str = ""
    to: str = ""
    reason: str = ""


def edited(raw: bytes, edit: Edit, path: str = "") -> bytes:
    """`raw` after `edit`. Raises EditFailed, which names `path`, the reason and what else could have been meant."""
    if edit.action not in ACTIONS:
        raise EditFailed(path, f"there is no action {edit.action!r}; use one of {', '.join(ACTIONS)}")
    # A whole file may go on holding what it held before.
    held = raw.decode(errors="replace") if edit.action == "write" else ""
    for name, text, there in (("content", edit.content, held), ("section", edit.section, "")):
        if refused := characters_refused(text, there):
            raise EditFailed(path, f"the {name} cannot be written: {refused}")
    if edit.action == "write":
        return edit.content.encode()
    return _text_after(edit, page_of(_decoded(raw, path), path)).encode()


def _text_after(edit: Edit, page: Page) -> str:
    if edit.action == "set_frontmatter":
        return set_frontmatter(page, edit.content)
    section, content, words = edit.section, edit.content, edit.entry_match
    change: dict[str, Callable[[], Page]] = {
        "append_to_section": lambda: append_to_section(page, section, content),
        "replace_section": lambda: replace_section(page, section, content),
        "remove_entry": lambda: remove_entry(page, words, section),
        "toggle_checkbox": lambda: toggle_checkbox(page, words, section),
        "add_section": lambda: add_section(page, section, content, edit.to),
        "move_entry": lambda: move_entry(page, words, section, edit.to),
    }
    return change[edit.action]().text


def edited_by_all(raw: bytes, edits: Iterable[Edit], path: str = "") -> bytes:
    """`raw` after each of `edits` in turn. The first that fails fails all; of several, the message gives its number."""
    every = tuple(edits)
    for number, edit in enumerate(every, 1):
        try:
            raw = edited(raw, edit, path)
        except EditFailed as failed:
            if len(every) == 1:
                raise
            raise EditFailed(path, f"edit {number} ({edit.action}): {failed.reason}", failed.candidates) from failed
    return raw


@dataclass(frozen=True, slots=True)
class Entry:
    """A list item. `anchor` and `heading` are its section's, "" above all headings; `line` is 1-based in the file.

    `text` is its own text as written, on one line, without comments and box; `done` is None where it has no box.
    """

    anchor: str
    heading: str
    line: int
    text: str
    done: bool | None


def entries_of(raw: bytes) -> tuple[Entry, ...]:
    """The list items of a file, nested ones too, in order; what stands in code, comments and quotes is none."""
    page = page_of(_decoded(raw, ""), "")
    return tuple(
        Entry(
            page.parts[found.part].anchor,
            page.parts[found.part].title,
            page.line + found.first,
            found.item.source,
            found.item.box != "[ ]" if found.item.box else None,
        )
        for found in items_in(page, range(len(page.parts)))
    )


def _decoded(raw: bytes, path: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 at byte {error.start:,}; mend that first, or write the whole file"
        raise EditFailed(path, reason) from error
