"""What a text holds that no model is shown: frontmatter, comments, payloads, and list items that do not hold today.

One `visible` for all: the prompt, briefs, reads, snippets and vectors. An unclosed comment is text: half-typed, it must
not hide the rest of a file.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from typing import NamedTuple

from prompt.dates import Validity, blanked, validity_of
from prompt.outline import Block, Lines, Outline
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
_DATA_URI = re.compile(
    r"data:[\w.+/-]*[;,](?=[^\s\"'<>]{24})(?:[^\s\"'<>()]++|\([^\s\"'<>()]*+\))++",  # less a bracket that ends a link
    re.IGNORECASE,
)
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
    taken = _without_overlaps(gaps)
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
        dated = _DATED.search(outline.text, opening.start, opening.end)
        if dated and (validity := validity_of(_unquoted(outline, opening, QUOTED))):
            yield item, validity


def _payloads(outline: Outline) -> Iterator[Gap]:
    """data: addresses outside of code, and fences of compressed data."""
    for block in _blocks_with(outline, _PAYLOAD):
        if block.type == "fence" and block.info == _COMPRESSED:
            yield Gap(*_whole_lines(outline.lines, block.first, block.last), "payload")
        elif block.type in _TEXT_HOLDERS or block.type == "html_block":
            for match in _DATA_URI.finditer(_unquoted(outline, block, ("code",))):
                yield Gap(block.start + match.start(), block.start + match.end(), "payload", "…")


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
            html = (span for span in block.spans if span.kind == "html")
            yield from ((span.start, span.end) for span in html if span.value.startswith("<!--"))
            places = _PERCENT.finditer(_unquoted(outline, block, ("code", "html")))
            marks += [(block.start + place.start(), block) for place in places]
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


def _unquoted(outline: Outline, block: Block, kinds: Collection[str]) -> str:
    """The source of a block, with spaces for its spans of these kinds."""
    ranges = [(span.start - block.start, span.end - block.start) for span in block.spans if span.kind in kinds]
    return blanked(outline.text[block.start : block.end], ranges)


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


def _without_overlaps(gaps: Iterable[Gap]) -> tuple[Gap, ...]:
    """`gaps` in order; each less what an earlier one covers."""
    found: list[Gap] = []
    for gap in sorted(gaps, key=lambda gap: (gap.start, -gap.end)):
        start = max(gap.start, found[-1].end) if found else gap.start
        if start < gap.end:
            found.append(gap if start == gap.start else gap._replace(start=start, shown=""))
    return tuple(found)


def without(text: str, gaps: Sequence[Gap]) -> str:
    """`text` with what each gap shows in its place, usually nothing."""
    pieces, at = [], 0
    for gap in gaps:
        pieces += [text[at : gap.start], gap.shown]
        at = gap.end
    return "".join([*pieces, text[at:]])


def first_touching(gaps: Sequence[Gap], start: int, end: int) -> Gap | None:
    """The first of `gaps` that takes anything of `[start, end)`."""
    index = bisect_right(gaps, start, key=lambda gap: gap.end)
    return gaps[index] if index < len(gaps) and gaps[index].start < end else None


class Positions:
    """Maps positions between a text and what is left of it without `gaps`. A gap shows no more than it takes."""

    def __init__(self, gaps: Sequence[Gap]) -> None:
        self._gaps = gaps
        self._taken = [0, *accumulate(gap.end - gap.start - len(gap.shown) for gap in gaps)]
        # Where each gap ends, as a position of what is left.
        self._ends = [gap.end - taken for gap, taken in zip(gaps, self._taken[1:], strict=True)]

    def before(self, position: int) -> int:
        """Where a position of what is left is in the text; at the end of a gap, the position behind it."""
        return position + self._taken[bisect_right(self._ends, position)]

    def after(self, position: int) -> int:
        """Where a position of the text is in what is left; for one in a gap, the position behind it."""
        index = bisect_left(self._gaps, position, key=lambda gap: gap.start)
        inside = max(self._gaps[index - 1].end - position, 0) if index else 0
        return position + inside - self._taken[index]
