"""Facts: what the top-level list items of a file below facts/ say, and a text written as one. Pure.

Comments that end an item pin its importance, and say when and why it was archived:

    - The toll is ten crowns <!-- importance: 0.9 -->
    - The gate is red <!-- archived: 2026-03-01; reason: faded; from: facts/notes.md -->

Nothing in a text that is written as a fact can make another item, a heading or a comment of the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from urllib.parse import quote, unquote

from notebook_sync.errors import EditFailed, UsageError
from notebook_sync.files.page import Page, is_comment, page_of, plain, take_out, without_comments
from notebook_sync.model import CORE_FACTS, FactLine
from prompt.blocks import LISTS
from prompt.outline import Block

FOLDER = "facts"
ARCHIVE = "facts/archive.md"
LONGEST = 10_000  # characters; what is longer is a page
HINTS = {"core": 1.0, "high": 0.7, "medium": 0.4, "low": 0.2}  # importance by the words that may be in its place


def facts_in(path: str, text: str) -> tuple[FactLine, ...]:
    """The facts of a file, in its order; `text` is all of it. Items that say nothing, or only a comment, are none."""
    return facts_of(page_of(path, text))


def facts_of(page: Page) -> tuple[FactLine, ...]:
    """As `facts_in`, for a text that is read already."""
    return tuple(fact for fact, _ in _bullets(page))


def fact_text(text: str) -> str:
    r"""A text as facts have it: \n at line ends, no white space around it or at a line's end, spaces as indent.

    A text that is itself one item of a bullet list loses its mark: it is the same fact.
    """
    text = _tidied(text).strip()
    return _content(text) if _ONE_BULLET.match(text) and not _BULLET_BELOW.search(text) else text


def fact_id(text: str) -> str:
    """The first 16 hex digits of the SHA-256 of the text, stripped."""
    return hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def as_bullet(
    text: str, *, pin: float | None = None, archived: Mapping[str, str] | None = None, is_known: bool = False
) -> str:
    """`text` as one list item, without the end of its last line: it reads back as exactly this fact.

    `archived` is `{date, reason, from}`. `is_known`: a file has this fact already, maybe with comments in it. Raises
    UsageError for a text that no list item can hold: empty, too long, with control characters or the mark of a comment;
    and for a pin that is not from 0 to 1.
    """
    from notebook_sync.files.edits import characters_refused  # reading facts needs no edits

    content = _tidied(text).strip()
    if not content:
        raise UsageError("a fact needs a text")
    if len(content) > LONGEST:
        reason = f"a fact has at most {LONGEST:,} characters, and this text has {len(content):,}"
        raise UsageError(reason, next="make a page of it")
    reason = (
        "it holds a comment (<!--), which nobody sees"
        if "<!--" in content and not is_known
        else characters_refused(content)
    )
    if reason:
        raise UsageError(f"the text cannot be a fact: {reason}", next="leave it out")
    if pin is not None and not 0 <= pin <= 1:
        raise UsageError(f"an importance is a number from 0 to 1, not {pin}")
    lines = "\n".join(f"  {line}" if line else "" for line in content.split("\n"))
    bullet = f"- {lines[2:]} {_comments(pin, archived)}".rstrip(" ")
    # It must read as this fact between others, and they as what they are without it.
    path = ARCHIVE if archived else f"{FOLDER}/notes.md"
    found = facts_in(path, f"# A\n\n- above\n{bullet}\n- below\n\n## B\n\n- last\n")
    read = [(fact.text, fact.section, fact.pin, fact.archived) for fact in found]
    around = [("above", "A", None, None), ("below", "A", None, None), ("last", "B", None, None)]
    if read != [around[0], (content, "A", pin, archived), *around[1:]]:
        raise UsageError("as a list item of Markdown the text would say something else", next="reword it")
    return bullet


def with_facts(path: str, text: str, section: str, bullets: Sequence[str]) -> str:
    """A file's text with `bullets` at the end of the first section of this name, which is added at the end of the file
    if there is none; "" is above all headings. Raises EditFailed where they would read otherwise there."""
    from notebook_sync.files.edits import add_section, append

    page = page_of(path, text)
    content = "\n".join(bullets)
    names = (" ".join(section.split()).casefold(), plain(section).casefold())
    part = next((part for name in names for part in page.parts if part.title.casefold() == name), None)
    if part is None:
        return add_section(page, section, content).text
    # Another mark would begin another list.
    lists = [block for block in page.outline.root.children if block.type == "bullet_list"]
    mark = next((each.markup for each in reversed(lists) if part.first <= each.first < part.after), "-")
    return append(page, part, _ITEM.sub(f"{mark} ", content)).text


def without_facts(path: str, text: str, lines: Collection[int]) -> str:
    """A file's text without the facts that begin on these lines (as FactLine has them). Raises EditFailed where what is
    around them would read otherwise, or no fact begins on a line."""
    page = page_of(path, text)
    found = {fact.line: item for fact, item in _bullets(page)}
    if missing := set(lines) - set(found):
        raise EditFailed(path, "no fact begins on this line", line=min(missing))
    gone = {id(found[line]) for line in lines}
    runs = []
    ends_list = False
    for block in reversed(page.blocks):
        is_last = block.parent is None or block.parent.children[-1] is block
        ends_list = id(block) in gone and (is_last or ends_list)
        if id(block) in gone:
            runs.append((block.first, block.last, ends_list))
    meant = [unit for unit, block in zip(page.units, page.blocks, strict=True) if id(block) not in gone]
    return take_out(page, runs[::-1], lambda new: new.units == meant).text if runs else text


def order_of(path: str) -> tuple[int, str]:
    """Of several places of one fact, the one that counts has the least: core, then by path, then archive."""
    return (0 if path == CORE_FACTS else 2 if path == ARCHIVE else 1), path


def _bullets(page: Page) -> Iterator[tuple[FactLine, Block]]:
    """The facts of a file, each with the list item that states it."""
    outline, sections, section = page.outline, iter(page.outline.sections), ""
    for block in outline.root.children:
        if block.type == "heading":
            section = next(sections).title
        for item in block.children if block.type in LISTS else ():
            start, comments = outline.lines.start(item.first), _begin_of_comments(item)
            text = _content(outline.text[start:comments])
            if without_comments(text).strip() and not text.startswith("<!--"):
                pin, archived = _comments_read(outline.text[comments : item.end])
                shown = archived if page.path == ARCHIVE else None
                yield FactLine(fact_id(text), text, section, page.line + item.first, pin, shown), item


def _begin_of_comments(item: Block) -> int:
    """Where the comments begin that end an item; its end where none does."""
    begin = item.end
    for block in reversed([each for each in item.walk() if not each.children]):
        if is_comment(block):
            begin = block.start
            continue
        for span in reversed(block.spans):
            if span.kind == "html" and span.value.startswith("<!--"):
                begin = span.start
            elif span.value.strip():
                break
        break
    return begin


_MARK = re.compile(r"([ \t]*(?:[-+*]|[0-9]{1,9}[.)]))([ \t]*)")
_ITEM = re.compile(r"^- ", re.MULTILINE)
_ONE_BULLET = re.compile(r"[-+*][ \t]+(?=\S)")
_BULLET_BELOW = re.compile(r"\n[-+*](?:[ \t]|$)", re.MULTILINE)
_TABBED = re.compile(r"^[ \t]*\t[ \t]*", re.MULTILINE)
_WIDEST_GAP = 4
_TAB = 4


def _content(source: str) -> str:
    """The text of an item's lines: without its mark, and without the indent that makes the others part of it."""
    first, *others = _tidied(source).split("\n")
    found = _MARK.match(first)
    if found is None:
        return first
    width, text_at = (len(first[: found.end(group)].expandtabs(_TAB)) for group in (1, 2))
    width = text_at if found[2] and text_at - width <= _WIDEST_GAP else width + 1
    # A line that continues a paragraph may have a smaller indent.
    indents = (min(width, len(line) - len(line.lstrip(" "))) for line in others)
    lines = [first[found.end(1) :], *(line[indent:] for line, indent in zip(others, indents, strict=True))]
    return _tidied("\n".join(lines)).strip()


def _tidied(text: str) -> str:
    """Each line with spaces as its indent and no white space at its end."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    tidied = "\n".join(line.rstrip(" \t") for line in lines)
    return _TABBED.sub(lambda found: found[0].expandtabs(_TAB), tidied) if "\t" in tidied else tidied


_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
# What would end the comment or the field, or read as an escape of these.
_UNSAFE = re.compile(r"[;>%]")


def _comments(pin: float | None, archived: Mapping[str, str] | None) -> str:
    """The comments that say this, on one line; "" for nothing."""
    said = [] if pin is None else [f"<!-- importance: {float(pin)!r} -->"]
    if archived is not None:
        values = {"archived": archived["date"], "reason": archived["reason"], "from": archived["from"]}
        lines = {name: " ".join(value.split()) for name, value in values.items() if value}
        shown = (f"{name}: {_UNSAFE.sub(lambda found: quote(found[0]), line)}" for name, line in lines.items())
        said.append(f"<!-- {'; '.join(shown)} -->")
    return " ".join(said)


def _comments_read(comments: str) -> tuple[float | None, Mapping[str, str] | None]:
    """The importance that comments pin, None unless it is from 0 to 1; and what they say of archiving."""
    if not comments:  # most facts have none
        return None, None
    parts = (part.partition(":") for comment in _COMMENT.findall(comments) for part in comment.split(";"))
    fields = {name.strip().casefold(): unquote(value.strip()) for name, _, value in parts}
    importance = fields.get("importance", "").casefold()
    pin, archived = HINTS.get(importance), None
    with suppress(ValueError):
        number = float(importance)
        pin = number if 0 <= number <= 1 else None
    with suppress(ValueError):
        day = date.fromisoformat(fields.get("archived", "")[:10]).isoformat()
        archived = {"date": day, "reason": fields.get("reason", ""), "from": fields.get("from", "")}
    return pin, archived
