"""Facts: what each top-level list item of a file below facts/ says, and a text written as one. Pure.

Task items and numbered ones are facts too, as they are entries for every edit; what is nested belongs to its parent.
Nothing in a text that is written as a fact can make another item, a heading or a comment of the file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from notebook_sync.errors import UsageError
from notebook_sync.files.edit_shape import characters_refused
from notebook_sync.files.excerpt import without_comments
from notebook_sync.files.fact_comment import Archived, Told, begin_of_comments, comment_of, told_in
from notebook_sync.files.frontmatter import read_frontmatter
from notebook_sync.permissions import CORE_FACTS
from prompt.outline import Block, Outline

FOLDER = "facts"
CORE = CORE_FACTS
ARCHIVE = "facts/archive.md"
# What is longer is a page, in characters.
LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class Bullet:
    """One fact as a file says it.

    `content` is its Markdown: without the item's mark and indent, without the comments that end it, and with a task's
    box. `section` is the nearest heading above it, "" for none; `line` is 1-based in the file.
    `text[start:end]` are its lines in the file's text, the end of the last one included; `comment` is where in that
    text the comments stand that end it. `importance` is what such a comment pins. `archived` is told in archive.md.
    """

    note_id: str
    content: str
    path: str
    section: str
    line: int
    start: int
    end: int
    comment: tuple[int, int] | None = None
    importance: float | None = None
    archived: Archived | None = None


def facts_in(path: str, text: str) -> list[Bullet]:
    """The facts of a file, in its order. `text` is all of the file: a byte order mark and frontmatter are no facts.

    An item that says nothing, or nothing but a comment, is none.
    """
    return list(_facts_kept(path, text)) if len(text) >= _WORTH_KEEPING else _facts_in(path, text)


_WORTH_KEEPING = 10_000


# Whoever changes a file reads it, and who follows behind reads it again; the next change is made on the same text.
@lru_cache(maxsize=4)
def _facts_kept(path: str, text: str) -> tuple[Bullet, ...]:
    return tuple(_facts_in(path, text))


def _facts_in(path: str, text: str) -> list[Bullet]:
    front = read_frontmatter(text)
    outline = Outline(front.content)
    line = front.head.count("\n") + 1
    sections = iter(outline.sections)
    section = ""
    found = []
    for block in outline.root.children:
        if block.type == "heading":
            section = next(sections).title
        elif block.type in ("bullet_list", "ordered_list"):
            for item in block.children:
                start, end = outline.lines.start(item.first), outline.lines.start(item.last)
                source = front.content[start:end]
                begin = begin_of_comments(source, _last_in(item))
                content = _content(source[:begin])
                said = without_comments(content).strip()
                if said and not said.startswith("<!--"):
                    found.append(
                        _bullet(path, section, source, content, line + item.first, len(front.head) + start, begin)
                    )
    return found


def _last_in(block: Block) -> Block:
    while block.children:
        block = block.children[-1]
    return block


def as_bullet(text: str, importance: float | None = None, archived: Archived | None = None) -> str:
    """`text` as one list item, without the end of its last line: `facts_in` reads `fact_text(text)` out of it, and
    what it pins and tells of its archiving. Newlines become continuation lines.

    Raises UsageError for a text that no list item can hold: empty, too long, with control characters or a comment.
    """
    content = fact_text(text)
    if not content:
        raise UsageError("a fact needs a text")
    if len(content) > LONGEST:
        raise UsageError(f"a fact has at most {LONGEST:,} characters, and this text has {len(content):,}; make a page")
    if reason := characters_refused(content):
        raise UsageError(f"the text cannot be a fact: {reason}")
    if "<!--" in content and _hides_something(next(_ways(content, ""))):
        raise UsageError("the text cannot be a fact: it holds a comment (<!--), which would not be seen; leave it out")
    comment = comment_of(Told(importance, archived))
    path = ARCHIVE if archived else f"{FOLDER}/notes.md"
    for bullet in _ways(content, comment):
        found = _between_others(path, bullet)
        if found is not None and (found.content, found.importance, found.archived) == (content, importance, archived):
            return bullet
    raise UsageError("the text cannot be a fact: as a list item of Markdown it would say something else; reword it")


def fact_text(text: str) -> str:
    """A text as facts have it: \\n at the ends of lines, no white space around it or at the end of a line, no tab that
    indents one."""
    return "\n".join(_indented_by_spaces(line) for line in _ANY_EOL.sub("\n", text).split("\n")).strip()


def id_of(content: str) -> str:
    """The id of the fact that says this: the first 16 hex digits of the sha256 of its text, stripped."""
    return hashlib.sha256(content.strip().encode("utf-8", "surrogatepass")).hexdigest()[:16]


def order_of(path: str) -> tuple[int, str]:
    """Of several places where one fact stands, the one that counts has the least: core, then by path, then archive."""
    return (0 if path == CORE else 2 if path == ARCHIVE else 1), path


def _bullet(path: str, section: str, source: str, content: str, line: int, start: int, begin: int) -> Bullet:
    """The fact that the lines `source` of an item state; its comments begin at `begin` in them."""
    end = len(source.rstrip())
    told = told_in(source[begin:end]) if begin < end else Told()
    return Bullet(
        note_id=id_of(content),
        content=content,
        path=path,
        section=section,
        line=line,
        start=start,
        end=start + len(source),
        comment=(start + begin, start + end) if begin < end else None,
        importance=told.importance,
        archived=told.archived if path == ARCHIVE else None,
    )


_ANY_EOL = re.compile(r"\r\n?")
_MARK = re.compile(r"[ \t]*(?:[-+*]|[0-9]{1,9}[.)])")
_WIDEST_GAP = 4
_TAB = 4


def _content(source: str) -> str:
    """The text of an item's lines: without its mark, and without the indent that makes the others part of it."""
    first, *others = _ANY_EOL.sub("\n", source).split("\n")
    found = _MARK.match(first)
    mark = found[0] if found else ""
    said = first[len(mark) :]
    width = _columns(mark) + 1
    text_at = _columns(first[: len(first) - len(said.lstrip(" \t"))])
    if said.strip() and text_at - _columns(mark) <= _WIDEST_GAP:
        width = text_at
    return fact_text("\n".join([said, *(_outdented(line, width) for line in others)]))


def _indented_by_spaces(line: str) -> str:
    said = line.strip(" \t")
    return line[: line.index(said)].expandtabs(_TAB) + said if said else ""


def _columns(text: str) -> int:
    return len(text.expandtabs(_TAB))


def _outdented(line: str, width: int) -> str:
    """The line without so many columns of white space, of which a line that goes on with a paragraph may have fewer."""
    said = line.lstrip(" \t")
    return " " * (_columns(line[: len(line) - len(said)]) - width) + said


def _ways(content: str, comment: str) -> Iterator[str]:
    """The content as an item, the way that is usual first: a text of marks needs another mark than its own, and behind
    code a comment needs a line of its own."""
    for mark in "-*+":
        item = f"{mark} " + content.replace("\n", "\n  ").replace("\n  \n", "\n\n").replace("\n  \n", "\n\n")
        if not comment:
            yield item
        else:
            yield from (item + parted + comment for parted in (" ", "\n  ", "\n\n  "))


def _between_others(path: str, bullet: str) -> Bullet | None:
    """What the bullet reads as between others, None where it changes what these are."""
    found = facts_in(path, f"# Above\n\n- above\n{bullet}\n- below\n\n## Below\n\n- last\n")
    if [(other.content, other.section) for other in (*found[:1], *found[2:])] != _OTHERS:
        return None
    return found[1] if found[1].section == "Above" else None


_OTHERS = [("above", "Above"), ("below", "Above"), ("last", "Below")]


def _hides_something(item: str) -> bool:
    """Whether a part of the item is a comment, or would be with what may come to stand below."""
    return any(
        "<!--" in block.content
        if block.type == "html_block"
        else any("<!--" in span.value for span in block.spans if span.kind in ("text", "html"))
        for block in Outline(item).root.walk()
        if block.type not in ("fence", "code_block")
    )
