"""Edits of one Markdown file: bytes and edits → bytes. Pure; never changes a byte that no edit means to change.

Every result is read again before it is returned. Where the file would not read as the old one with the edit in it, the
edit fails and nothing is lost. What an edit changed is shown as a unified diff, in bounded time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff as diff_of
from io import StringIO
from itertools import takewhile
from typing import Any, get_args

from notebook_sync.errors import EditFailed
from notebook_sync.files.compose import set_frontmatter
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.files.page import (
    BOX,
    Item,
    Page,
    Part,
    first_right,
    is_blank,
    is_comment,
    page_of,
    plain,
    put,
    shorten,
    shown,
    take_out,
)
from notebook_sync.model import Action
from prompt.blocks import CODE, LISTS
from prompt.ends import closing_line
from prompt.outline import Block, Outline

ACTIONS: tuple[Action, ...] = get_args(Action)
# Of a diff: lines around each change.
_CONTEXT = 3
# So many pairs of equal lines are compared; texts that repeat themselves have more, and could take minutes.
_MOST_PAIRS = 200_000


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of one file. A section is named by its heading or its anchor.

    append_to_section   `content` after the last own entry of `section`, above its child headings
    replace_section     `content` in place of the own text of `section`; "" empties it. Comments that frame the text, a
                        rule below it and child headings stay
    remove_entry        the list item that `match` names, with its children; `section` restricts the search
    toggle_checkbox     the box of that item, ticked or not
    add_section         the heading `section` with `content` below: after the section `to` and at its level, else at
                        the end of the file and at level 2
    move_entry          the item that `match` names, to the end of the section `to`
    set_frontmatter     the fields in `content`, a YAML mapping, and those in `fields`; null (None) removes one
    write               `content` is the whole file, to the byte

    `section` and `to` may be "" in a file without headings, which is then one section.
    """

    action: Action
    section: str = ""
    content: str = ""
    match: str = ""
    to: str = ""
    fields: Mapping[str, Any] | None = None


def apply_edits(path: str, raw: bytes, edits: Sequence[Edit]) -> bytes:
    """`raw` after all of `edits`, in order. The first that fails fails all; of several, the message gives its number.

    Raises EditFailed, which names `path`, the reason and, as candidates, what else could have been meant.
    """
    page: Page | None = None
    for number, edit in enumerate(edits, 1):
        try:
            page = _page_after(edit, path, raw, page)
        except EditFailed as failed:
            if len(edits) == 1:
                raise
            reason = f"edit {number} ({edit.action}): {failed.reason}"
            raise EditFailed(path, reason, line=failed.line, candidates=failed.candidates) from failed
    return page.text.encode() if page else raw


def entries_of(raw: bytes) -> tuple[Item, ...]:
    """The list items of a file, nested ones too, in order, without those in code, comments and quotes."""
    return tuple(page_of("", _decoded("", raw)).items())


def characters_refused(text: str, there: str = "") -> str:
    """Why `text` cannot be in a Markdown file, or ""; what is `there` already can."""
    text, known = (each.replace("\r\n", "\n") for each in (text, there))
    found = next((each for each in _NO_TEXT.finditer(text) if each[0] not in known), None)
    return f"it holds a control character (U+{ord(found[0]):04X}) at position {found.start()}" if found else ""


def append(page: Page, part: Part, content: str) -> Page:
    """The page with `content` in a part, directly below the list that it goes on with, else after a blank line; above a
    comment or a rule that ends the part."""
    text = _checked(page, content, part.level or _DEEPEST)
    if not text:
        raise page.error("there is no content to append")
    _, end, last = _own_text(page, part)
    end = last.last if last else end
    gap = end > 0
    begins = Outline(text).root.children
    if last and last.type in LISTS and begins and last.type == begins[0].type:
        last_item = last.children[-1].first
        gap = last_item > last.first and is_blank(page.lines[last_item - 1])
    return put(page, end, end, text, gap=gap)


def add_section(page: Page, heading: str, content: str, to: str = "") -> Page:
    """The page with a new section below the section `to` and its children, or at the end where that is ""."""
    level, at = 2, len(page.lines)
    if to.strip():
        part = page.section(to)
        level, at = part.level or 2, part.below
    title = heading.strip()
    if not title or "\n" in title or "\r" in title:
        raise page.error("name the section to add, on one line")
    for part in page.parts[1:]:
        if part.title.casefold() == plain(title).casefold():
            raise page.error(
                f"there is a section {shorten(title)!r} already, in line {page.line + part.first}; append to it"
            )
    text = f"{'#' * level} {title}\n\n{_checked(page, content, level)}".rstrip("\n")
    written = Outline(text).root.children[0]
    if written.level != level or plain(written.content) != plain(title):
        raise page.error(f"{shorten(title)!r} cannot be written as a heading; give its text without marks")
    while at and is_blank(page.lines[at - 1]):
        at -= 1
    return put(page, at, at, text, gap=at > 0, apart=True)


_NO_TEXT = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BLANK_START = re.compile(r"\A(?:[ \t]*\n)+")
_DEEPEST = 6


def _page_after(edit: Edit, path: str, raw: bytes, page: Page | None) -> Page:
    """The page after one edit of `page`, None for `raw` as it is."""
    # A whole file may go on holding what it held before.
    held = (page.text if page else raw.decode(errors="replace")) if edit.action == "write" else ""
    for name, text, there in (("content", edit.content, held), ("section", edit.section, "")):
        if refused := characters_refused(text, there):
            raise EditFailed(path, f"the {name} cannot be written: {refused}")
    if edit.action == "write":
        return _written(path, edit.content)
    page = page or page_of(path, _decoded(path, raw))
    match edit.action:
        case "append_to_section":
            return append(page, page.section(edit.section), edit.content)
        case "replace_section":
            return _replace_section(page, page.section(edit.section), edit.content)
        case "add_section":
            return add_section(page, edit.section, edit.content, edit.to)
        case "set_frontmatter":
            return page_of(path, set_frontmatter(page, edit.content, edit.fields or {}))
        case "remove_entry":
            return _without(page, page.item(edit.match, edit.section))
        case "toggle_checkbox":
            return _toggle(page, page.item(edit.match, edit.section))
        case "move_entry":
            return _move(page, page.item(edit.match, edit.section), edit.to)
    raise EditFailed(path, f"there is no action {edit.action!r}; use one of {', '.join(ACTIONS)}")


def _decoded(path: str, raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise EditFailed(path, "it is not UTF-8; fix that first, or write the whole file", line=line) from error


def _written(path: str, content: str) -> Page:
    """The whole file, unless its frontmatter could not be read: what that says would be lost."""
    for problem in read_frontmatter(content).problems:
        if problem.severe:
            raise EditFailed(path, f"the content cannot be written: {problem.message}", line=problem.line)
    return page_of(path, content)


def _checked(page: Page, content: str, level: int) -> str:
    """`content` for the own text of a section of `level`: no blank lines around it, \\n at its line ends.

    Raises EditFailed for what would break out of the section.
    """
    text = _BLANK_START.sub("", content.replace("\r\n", "\n").rstrip(" \t\n"))
    outline = Outline(text)
    texts = (block for block in outline.root.walk() if block.type not in CODE)
    refusal = ""
    if closing_line(text) or (
        "<!--" in text and any("<!--" in span.value for block in texts for span in block.spans if span.kind == "text")
    ):
        refusal = "it opens a code fence, a comment or HTML that it does not close"
    elif heading := next((block for block in outline.headings if block.level <= level), None):
        refusal = (
            f"its heading {shorten(heading.content)!r} would begin another section; "
            "use add_section, or a heading of a lower level"
        )
    if refusal:
        raise page.error(f"the content cannot be put there: {refusal}")
    return text


def _own_text(page: Page, part: Part) -> tuple[int, int, Block | None]:
    """The own text of a part: its first line, the line below its last, and the last of its blocks.

    Comments directly below the heading explain the section's format, or pin it; comments and a rule at the end belong
    to the place as well. They frame the own text.
    """
    top, bottom = part.body, part.after
    blocks = [
        block
        for block in page.outline.root.children
        if part.body <= block.first < part.after and block.type != "definition"
    ]
    while blocks and is_comment(blocks[0]):
        top = blocks.pop(0).last
    while blocks and (blocks[-1].type == "hr" or is_comment(blocks[-1])):
        bottom = blocks.pop().first
    # Definitions of links are no blocks.
    said = [line for line in range(top, bottom) if not is_blank(page.lines[line])]
    return (said[0], said[-1] + 1, blocks[-1] if blocks else None) if said else (top, top, None)


def _replace_section(page: Page, part: Part, content: str) -> Page:
    text = _checked(page, content, part.level or _DEEPEST)
    first, after, _ = _own_text(page, part)
    if first == after:
        return append(page, part, text) if text else page
    return put(page, first, after, text, gap=False)


def _without(page: Page, item: Item) -> Page:
    block = item.block
    siblings = block.parent.children if block.parent else [block]
    around = [each for each in page.items_in(item.unit, item.part) if not block.start <= each.block.start < block.end]
    if any(each.block.first == block.first and each.depth < item.depth for each in around):
        raise page.error("the entry begins on the line of another:", [shown(item)])
    return take_out(page, [(block.first, block.last, siblings[-1] is block)], _is_rest(page, item, around))


def _is_rest(page: Page, item: Item, items: Sequence[Item]) -> Callable[[Page], bool]:
    """Whether a page has these items in place of the unit of `item`, and all other units of `page`."""
    forms = [(each.depth, each.shown) for each in items]
    first, after = item.unit, item.unit + bool(items)
    others = [*page.units[:first], *page.units[first + 1 :]]

    def is_right(new: Page) -> bool:
        if [*new.units[:first], *new.units[after:]] != others or len(new.units) < after:
            return False
        return [
            (each.depth, each.shown) for unit in range(first, after) for each in new.items_in(unit, item.part)
        ] == forms

    return is_right


def _toggle(page: Page, item: Item) -> Page:
    number = item.block.first
    found = BOX.match(page.lines[number]) if item.box else None
    if found is None:
        raise page.error("the entry has no box to tick; replace it by one that begins with [ ]:", [shown(item)])
    mark = "x" if item.box == "[ ]" else " "
    lines = [*page.lines]
    lines[number] = found[0] + mark + lines[number][found.end() + 1 :]
    items = page.items_in(item.unit, item.part)
    ticked = [each._replace(box=f"[{mark}]") if each.block is item.block else each for each in items]
    return first_right(page, number, [lines], _is_rest(page, item, ticked))


def _move(page: Page, item: Item, to: str) -> Page:
    part = page.section(to)
    if part == item.part:
        raise page.error("the entry is in that section already:", [shown(item)])
    rest = _without(page, item)
    lines = [line.rstrip("\r\n") for line in page.lines[item.block.first : item.block.last]]
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))]
    text = "\n".join(line[len(indent) :] if line.startswith(indent) else line.lstrip(" \t") for line in lines)
    moved = append(rest, rest.parts[page.parts.index(part)], text)
    if _said_in(moved) != _said_in(page):
        raise page.error("the entry would not read the same elsewhere:", [shown(item)])
    return moved


def _said_in(page: Page) -> list[str]:
    """What the items and the code of a page say, in whatever order."""
    code = (block.content for block in page.outline.root.walk() if block.type in CODE)
    return sorted([*(item.shown for item in page.items()), *code])


def unified_diff(before: str, after: str, path: str) -> str:
    """What turns `before` into `after`, with three lines of context around each change; "" for equal texts."""
    old, new = list(StringIO(before, newline="\n")), list(StringIO(after, newline="\n"))
    start = max(_alike(old, new) - _CONTEXT, 0)
    end = max(_alike(old[start:][::-1], new[start:][::-1]) - _CONTEXT, 0)
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    counts = Counter(new)
    if sum(counts[line] for line in old) <= _MOST_PAIRS:
        shown = diff_of(old, new, path, path, n=_CONTEXT)
    else:
        whole = f"@@ -1,{len(old)} +1,{len(new)} @@\n"
        shown = iter(
            [f"--- {path}\n", f"+++ {path}\n", whole, *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
        )
    lines = (_shifted(line, start) for line in shown)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines are the same from the start on."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def _shifted(line: str, lines: int) -> str:
    """A line of a diff, its line numbers counted from `lines` lines further up."""
    if not line.startswith("@@"):
        return line
    return re.sub(r"([-+])(\d+)", lambda found: f"{found[1]}{int(found[2]) + lines}", line, count=2)
