"""What a file holds that a model is not shown: frontmatter, comments, expired rules. Never touches what it leaves.

A comment that is never closed is text: half-typed, it must not hide the rest of a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from prompt.blocks import Lines, Node, parse_blocks, walk_blocks
from prompt.gaps import Positions, apart, without
from prompt.inline import comments_in_html, inline_spans
from prompt.values import Expired, Gap

_UNTIL = re.compile(r"\[until:?\s+(\d{4}-\d{2}-\d{2})\]", re.IGNORECASE)
_FRONTMATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_MAPPING = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*(?:[^\s:#-][^:\n]*:(?:\s|\Z)|\Z)")
_LEADING_COMMENT = re.compile(r"(?:[ \t]*\r?\n)* {0,3}<!--(?:-?>|.*?-->)[ \t]*(?:\r?\n(?:[ \t]*\r?\n)*)?", re.DOTALL)
_PIN = re.compile(r"<!--\s*pin\s*-->", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Shown:
    """A file as a session may see it, before any cut.

    `gaps` are in characters of the file, in order and apart; `pinned` are where, in `text`, pinned headings begin.
    """

    text: str
    gaps: tuple[Gap, ...] = ()
    expired: tuple[Expired, ...] = ()
    pinned: frozenset[int] = frozenset()


def without_hidden(source: str, *, keep_grammar: bool, today: date) -> Shown:
    """`source` without frontmatter, comments, and list items whose `[until DATE]` lies before `today`.

    `keep_grammar` leaves the comment that the file opens with. Comments in code stay. A byte order mark counts as
    frontmatter. What is left is as it was, to the character; a comment alone on its lines takes the lines along.
    """
    begin = end_of_frontmatter(source)
    grammar = end_of_grammar(source[begin:])
    gaps = [Gap(0, begin, "frontmatter")] if begin else []
    if grammar and not keep_grammar:
        gaps.append(Gap(begin, begin + grammar, "comment"))
    expired: list[Expired] = []
    pins: list[int] = []
    rest = source[begin + grammar :]
    may_expire = _names_a_past_day(rest, today)
    if may_expire or "<!--" in rest:
        body = source[begin:]
        tree, lines = parse_blocks(body), Lines(body)
        line = source.count("\n", 0, begin)
        for node, until in _expired_items(tree, lines, today) if may_expire else ():
            start, end = _whole_lines(lines, *lines.filled(node))
            gaps.append(Gap(begin + start, begin + end, "expired"))
            first_line = body[start:end].strip().splitlines()[0]
            expired.append(Expired(line + node.first + 1, first_line, until))
        comments = (span for span in _comments(tree, lines) if span[0] >= grammar)
        for start, end in _with_their_space(lines, comments):
            gaps.append(Gap(begin + start, begin + end, "comment"))
        pins = [begin + start for start in _pinned_headings(tree, lines)]
    taken = apart(gaps)
    positions = Positions(taken)
    return Shown(without(source, taken), taken, tuple(expired), frozenset(positions.after(pin) for pin in pins))


def end_of_frontmatter(text: str) -> int:
    """Where the frontmatter, or a byte order mark alone, ends; 0 where there is neither."""
    match = _FRONTMATTER.match(text)
    # Text between two rules is an owner's text; only what looks like `name: value` is frontmatter.
    if match and _MAPPING.match(match[1]):
        return match.end()
    return 1 if text.startswith("\ufeff") else 0


def end_of_grammar(text: str) -> int:
    """Where the comment that `text` opens with ends, with the blank lines after it; 0 where there is none."""
    if not text.lstrip().startswith("<!--"):
        return 0
    match = _LEADING_COMMENT.match(text)
    return match.end() if match else 0


def _names_a_past_day(text: str, today: date) -> bool:
    return any(_is_past(match[1], today) for match in _UNTIL.finditer(text))


def _is_past(day: str, today: date) -> bool:
    try:
        return date.fromisoformat(day) < today
    except ValueError:
        return False


def _expired_items(tree: Node, lines: Lines, today: date) -> Iterator[tuple[Node, str]]:
    """List items whose first paragraph names a past day. An item on the line of an item around it is left alone."""
    taken = -1
    for node in walk_blocks(tree):
        if node.type != "list_item" or node.first < taken or not node.children:
            continue
        opening = node.children[0]
        outer = node.parent.parent if node.parent else None
        if outer is not None and outer.type == "list_item" and outer.first == node.first:
            continue
        if opening.type == "paragraph" and (until := _until(lines, opening)) and _is_past(until, today):
            taken = node.last
            yield node, until


def _until(lines: Lines, paragraph: Node) -> str:
    start, end = lines.span_of(paragraph)
    text = lines.text[start:end]
    if not _UNTIL.search(text):
        return ""
    quoted = [span for span in inline_spans(text) if span.kind != "emphasis"]
    found = [
        match[1]
        for match in _UNTIL.finditer(text)
        if not any(span.start <= match.start() < span.end for span in quoted)
    ]
    return found[-1] if found else ""


def _comments(tree: Node, lines: Lines) -> Iterator[tuple[int, int]]:
    for node in walk_blocks(tree):
        if node.type not in ("html_block", "paragraph", "heading", "tr"):
            continue
        start, end = lines.span_of(node)
        text = lines.text[start:end]
        if "<!--" not in text:
            continue
        if node.type == "html_block":
            found = comments_in_html(text)
        else:
            spans = inline_spans(text, in_row=node.type == "tr")
            found = ((span.start, span.end) for span in spans if span.kind == "comment")
        for left, right in found:
            yield start + left, start + right


def _with_their_space(lines: Lines, spans: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Each span with the space or the lines that only it was there for; neighbours on a line first become one."""
    text = lines.text
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and not text[joined[-1][1] : start].strip(" \t"):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    for start, end in joined:
        first, last = lines.at(start), lines.at(end - 1) + 1
        before, after = text[lines.start(first) : start], text[end : lines.start(last)]
        if not before.strip() and not after.strip():
            yield _whole_lines(lines, first, last, keep_apart=True)
        elif not after.strip():
            yield start - (len(before) - len(before.rstrip())), end
        else:
            yield start, end


def _whole_lines(lines: Lines, first: int, last: int, *, keep_apart: bool = False) -> tuple[int, int]:
    """The lines `[first, last)`, and the blank line below them where there is one above as well.

    `keep_apart` leaves an empty line between two lines of prose, which would else become one paragraph.
    """
    start, end = lines.start(first), lines.start(last)
    if lines.is_blank(first - 1) and lines.is_blank(last):
        return start, lines.start(last + 1)
    if keep_apart and not lines.is_blank(first - 1) and not lines.is_blank(last):
        heading_above = lines.text.startswith("#", lines.start(first - 1))
        return start, end if heading_above else start + len(lines.text[start:end].rstrip("\r\n"))
    return start, end


def _pinned_headings(tree: Node, lines: Lines) -> Iterator[int]:
    for heading, below in zip(tree.children, tree.children[1:], strict=False):
        if heading.type != "heading" or below.type != "html_block" or heading.last != below.first:
            continue
        start, end = lines.span_of(below)
        if _PIN.match(lines.text[start:end]):
            yield lines.start(heading.first)
