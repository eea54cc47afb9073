"""What a text holds that no model is shown: frontmatter, comments, payloads, and list items that do not hold today.

One `visible` for all: the prompt, briefs, reads, snippets and vectors. An unclosed comment is text: half-typed, it must
not hide the rest of a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from prompt.dates import Validity, validity_of
from prompt.gaps import Positions, without, without_overlaps
from prompt.outline import Block, Lines, Outline, Span
from prompt.values import Expired, Gap

LARGEST_FRONTMATTER = 64 * 1024  # bytes
# Spans in which a date or a comment mark is no date and no comment mark.
QUOTED = frozenset(("code", "html", "link", "image"))
# YAML between `---` lines, which `...` may end as well, or TOML between `+++` lines; a blank line may be above.
HEAD = re.compile(
    r"\ufeff?(?:[ \t]*\r?\n)*+(?:---[ \t]*\r?\n(?P<yaml>.*?)^(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n(?P<toml>.*?)^\+\+\+)"
    r"[ \t]*(?:\r?\n|\r?\Z)",
    re.DOTALL | re.MULTILINE,
)
_SKIPPED = r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*"
_FIELDS = {
    "yaml": re.compile(rf"{_SKIPPED}(?:[^\s:#-][^\n]*?:(?:\s|\Z)|\Z)"),
    "toml": re.compile(rf"{_SKIPPED}(?:\[|[^\s=#-][^\n=]*=|\Z)"),
}
_COMMENT = re.compile(r"<!--(?:-?>|.*?-->)", re.DOTALL)
_COMMENT_MARK = re.compile("<!--|%%")
_PIN = re.compile(r"<!--\s*pin\s*-->", re.IGNORECASE)
_DATED = re.compile(r"[\[(]\s*(?:until|from)\b", re.IGNORECASE)
# Obsidian's comment marks. One right behind a word only closes: "100%% sure" opens nothing.
_PERCENT = re.compile(r"(?<![\w%])%%(?!%)|(?<!%)%%(?![\w%])")
# A picture or a file as text, and the fences in which plugins keep compressed data.
_DATA_URI = re.compile(r"data:[\w.+/-]*[;,][^\s\"'<>]{24,}", re.IGNORECASE)
_COMPRESSED = "compressed-json"
_PAYLOAD = re.compile(f"{_DATA_URI.pattern}|{_COMPRESSED}", re.IGNORECASE)
_SPACE = re.compile(r"\s*")
_TEXT_HOLDERS = frozenset(("paragraph", "heading", "row", "definition"))
_Range = tuple[int, int]


class Visible(NamedTuple):
    """A text as a model may see it, before any cut.

    `gaps` are in characters of the source, in order; `pinned` are where, in `text`, pinned headings begin. `lost_pins`
    are the 1-based lines of the pin comments that pin nothing.
    """

    text: str
    gaps: tuple[Gap, ...] = ()
    expired: tuple[Expired, ...] = ()
    pinned: frozenset[int] = frozenset()
    lost_pins: tuple[int, ...] = ()


def visible(source: str, *, now: datetime | None) -> Visible:
    """`source` without frontmatter, comments, payloads, and list items that do not hold at `now`, a local time.

    With `now` None, dated items stay. Comments and data: addresses in code stay; elsewhere a data: address is shown as
    `…`. A byte order mark counts as frontmatter. What is left is unchanged, to the character; a comment alone on its
    lines takes the lines with it.
    """
    begin = end_of_frontmatter(source)
    body = source[begin:]
    may_expire = now is not None and _DATED.search(body) is not None
    has_payload = "data:" in body or _COMPRESSED in body
    has_comment = "<!--" in body or "%%" in body
    frontmatter = [Gap(0, begin, "frontmatter")] if begin else []
    if not (may_expire or has_comment or has_payload):
        return Visible(body, tuple(frontmatter))
    outline = Outline(body)
    lines = outline.lines
    gaps = [*_payloads(outline)] if has_payload else []
    expired: list[Expired] = []
    above = source.count("\n", 0, begin)
    gone = 0
    for item, validity in _dated_items(outline) if may_expire else ():
        if now is None or item.first < gone or validity.holds_at(now):
            continue
        gone = item.last
        is_past = validity.is_past(now)
        gaps.append(Gap(*_whole_lines(lines, item.first, item.last), "expired" if is_past else "upcoming"))
        if is_past:
            expired.append(Expired(above + item.first + 1, lines.line(item.first).strip(), validity.until))
    comments = sorted(_comments(outline)) if has_comment else []
    gaps += [Gap(start, end, "comment") for start, end in _with_their_space(lines, comments)]
    pinned, lost = _pins(outline, comments)
    taken = without_overlaps(gaps)
    after = Positions(taken).after
    return Visible(
        without(body, taken),
        (*frontmatter, *(Gap(begin + gap.start, begin + gap.end, gap.reason, gap.shown) for gap in taken)),
        tuple(expired),
        frozenset(after(start) for start in pinned),
        tuple(above + line + 1 for line in lost),
    )


def end_of_frontmatter(text: str) -> int:
    """Where the frontmatter, or a byte order mark alone, ends; 0 if there is neither."""
    head = HEAD.match(text)
    if head and has_fields(head) and len(head[head.lastgroup or 0].encode(errors="replace")) <= LARGEST_FRONTMATTER:
        return head.end()
    return 1 if text.startswith("\ufeff") else 0


def has_fields(head: re.Match[str]) -> bool:
    """Whether what `HEAD` found looks like `name: value`. Other text between two rules is prose."""
    mark = head.lastgroup or "yaml"
    return _FIELDS[mark].match(head[mark]) is not None


def _dated_items(outline: Outline) -> Iterator[tuple[Block, Validity]]:
    """List items whose first paragraph says when they hold."""
    for item in _blocks_with(outline, _DATED):
        opening = item.children[0] if item.type == "list_item" and item.children else None
        if opening is None or opening.type != "paragraph":
            continue
        outer = item.parent.parent if item.parent else None
        if outer is not None and outer.type == "list_item" and outer.first == item.first:
            continue  # on the line of the item around it
        text = outline.text[opening.start : opening.end]
        if not _DATED.search(text):
            continue
        start = opening.start
        quoted = [(span.start - start, span.end - start) for span in opening.spans if span.kind in QUOTED]
        if validity := validity_of(text, quoted):
            yield item, validity


def _payloads(outline: Outline) -> Iterator[Gap]:
    """data: addresses outside of code, and fences of compressed data."""
    for block in _blocks_with(outline, _PAYLOAD):
        if block.type == "fence" and block.info == _COMPRESSED:
            yield Gap(*_whole_lines(outline.lines, block.first, block.last), "payload")
        elif block.type in _TEXT_HOLDERS or block.type == "html_block":
            matches = list(_DATA_URI.finditer(outline.text, block.start, block.end))
            around = [span for span in (block.spans if matches else ()) if span.kind in ("code", "link", "image")]
            for match, span in zip(matches, _innermost(around, [match.start() for match in matches]), strict=True):
                if span is None or span.kind != "code":
                    # The bracket that ends an inline link may be right behind the address.
                    end = min(match.end(), span.end - 1) if span else match.end()
                    yield Gap(match.start(), end, "payload", "…")


def _innermost(spans: Sequence[Span], positions: Sequence[int]) -> Iterator[Span | None]:
    """The smallest of `spans` around each position; both in order."""
    open_spans: list[Span] = []
    waiting = iter(spans)
    following = next(waiting, None)
    for at in positions:
        while following and following.start <= at:
            while open_spans and open_spans[-1].end <= following.start:
                open_spans.pop()
            open_spans.append(following)
            following = next(waiting, None)
        while open_spans and open_spans[-1].end <= at:
            open_spans.pop()
        yield open_spans[-1] if open_spans else None


def _comments(outline: Outline) -> Iterator[_Range]:
    """HTML comments, and what is between `%%` marks: of one block, or of several if the first mark starts its line."""
    text = outline.text
    marks: list[tuple[int, Block]] = []
    for block in _blocks_with(outline, _COMMENT_MARK):
        if block.type == "html_block":
            source = text[block.start : block.end]
            for match in _COMMENT.finditer(source[: source.rfind("-->") + 3]):
                yield block.start + match.start(), block.start + match.end()
        elif block.type in _TEXT_HOLDERS and _COMMENT_MARK.search(text, block.start, block.end):
            quoted = [span for span in block.spans if span.kind in ("code", "html")]
            yield from (
                (span.start, span.end) for span in quoted if span.value.startswith("<!--") and span.kind == "html"
            )
            places = [match.start() for match in _PERCENT.finditer(text, block.start, block.end)]
            inside = _innermost(quoted, places)
            marks += [(at, block) for at, span in zip(places, inside, strict=True) if span is None]
    opened: tuple[int, Block] | None = None
    for at, block in marks:
        if opened and (opened[1] is block or not text[outline.lines.start(opened[1].first) : opened[0]].strip(" \t>")):
            yield opened[0], at + 2
            opened = None
        elif not text[at - 1 : at].isalnum():
            opened = at, block


def _blocks_with(outline: Outline, pattern: re.Pattern[str]) -> Iterator[Block]:
    """Every block in those at top level in which `pattern` is found."""
    for block in outline.root.children:
        if pattern.search(outline.text, block.start, block.end):
            yield block
            yield from block.walk()


def _with_their_space(lines: Lines, comments: Iterable[_Range]) -> Iterator[_Range]:
    """Each comment with the space or the lines that only it needs; neighbours on a line are joined first."""
    text = lines.text
    joined: list[_Range] = []
    for start, end in comments:
        if joined and not text[joined[-1][1] : start].strip(" \t"):
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    for start, end in joined:
        first, last = lines.at(start), lines.at(end - 1) + 1
        begins, ends = _is_at_edge(lines, start, end)
        if begins and ends:
            yield _whole_lines(lines, first, last, keep_apart=True)
        elif ends:
            yield lines.start(first) + len(text[lines.start(first) : start].rstrip()), end
        else:
            yield start, end


def _is_at_edge(lines: Lines, start: int, end: int) -> tuple[bool, bool]:
    """Whether `[start, end)` begins its line, and whether it ends it, but for white space."""
    after = _SPACE.match(lines.text, end)
    before = _SPACE.match(lines.text, lines.start(lines.at(start)))
    return not before or before.end() >= start, not after or after.end() >= lines.start(lines.at(end - 1) + 1)


def _whole_lines(lines: Lines, first: int, last: int, *, keep_apart: bool = False) -> _Range:
    """The lines `[first, last)`, and the blank line below them if there is one above as well.

    `keep_apart` leaves an empty line between two lines of prose, which would otherwise become one paragraph.
    """
    start, end = lines.start(first), lines.start(last)
    if lines.is_blank(first - 1) and lines.is_blank(last):
        return start, lines.start(last + 1)
    if keep_apart and not lines.is_blank(first - 1) and not lines.is_blank(last):
        heading_above = lines.text.startswith("#", lines.start(first - 1))
        return start, end if heading_above else start + len(lines.text[start:end].rstrip("\r\n"))
    return start, end


def _pins(outline: Outline, comments: Sequence[_Range]) -> tuple[list[int], list[int]]:
    """Where pinned headings begin, and the lines of pins that pin none.

    A pin is on the heading's line, or alone right below or above it, with or without one blank line between.
    """
    pinned, lost = [], []
    lines, text = outline.lines, outline.text
    pins = [comment for comment in comments if _PIN.fullmatch(text, *comment)]
    headings = {line: block for block in (outline.headings if pins else ()) for line in (block.last - 1, block.first)}
    for start, end in pins:
        first, last = lines.at(start), lines.at(end - 1)
        near = [first] if first in headings else [first - 1, last + 1]
        near += [at + step for at, step in ((first - 1, -1), (last + 1, 1)) if lines.is_blank(at)]
        heading = next((headings[line] for line in near if line in headings), None)
        if heading and (first in headings or all(_is_at_edge(lines, start, end))):
            pinned.append(lines.start(heading.first))
        else:
            lost.append(first)
    return pinned, lost
