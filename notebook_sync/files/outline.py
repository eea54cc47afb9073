"""Where the headings, the code and the comments of a Markdown text are.

`scan` reads plain files in one pass and gives up where it is not sure; `read` asks markdown-it and is always right.
A heading inside a list, a quote, a comment, an HTML block or code is not a heading here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from notebook_sync.files.commonmark import block_tokens
from notebook_sync.files.inline import heading_text


@dataclass(frozen=True, slots=True)
class Heading:
    """`line` is 1-based in the text; `start` is where its line begins, `body` where the text after it does."""

    level: int
    text: str
    line: int
    start: int
    body: int


@dataclass(frozen=True, slots=True)
class Fence:
    """Fenced code; `info` is what follows the opening marks, `code` has \\n at its line ends."""

    info: str
    code: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Outline:
    """`hidden` are the ranges of code and of comment blocks, in order and apart.

    `paragraphs` are the sources of the top-level paragraphs, or None where `scan` had no need to find them.
    """

    headings: tuple[Heading, ...]
    fences: tuple[Fence, ...]
    hidden: tuple[tuple[int, int], ...]
    paragraphs: tuple[str, ...] | None = None


def outline(text: str) -> Outline:
    """Headings, code and comments of `text`; all offsets are in `text`."""
    return scan(text) or read(text)


# Lines whose first character could open a block that matters here; each match stays within its line. What stands
# at column 0 closes every list and quote, so there a heading, a fence or a comment is surely at top level.
_LINE = re.compile(
    r"\n(?:(#{1,6})(?![^ \t\r\n])"
    r"|(`{3,}|~{3,})"
    r"|(<)"
    r"|(?![-*+>] [\w\[])([ \t>*+=0-9.)-]++)(#{1,6}(?![^ \t\r\n])|`{3}|~{3}|<)?)"
)
_INDENTS = frozenset((" ", "  ", "   "))
_UNDERLINE = re.compile(r" {0,3}(?:=++|-++)[ \t]*+\r?")
# Inside what may be indented code, these decide whether a tag, a link, a code span or a comment is there.
_MEANS_SOMETHING = re.compile(r"[#\[`<]")
_BLANK_LINE = re.compile(r"\n[ \t\r]*+(?=\n|\Z)")
_OPENS_A_BLOCK = re.compile(r"\n {0,3}(?:#{1,6}(?![^ \t\r\n])|`{3}|~{3}|<!--)")
_LONE_RETURN = re.compile(r"\r(?!\n)")
_HTML_TO_ITS_OWN_END = re.compile(r"<(?:script|pre|style|textarea|\?|!)", re.IGNORECASE)


def scan(text: str) -> Outline | None:
    """The outline of a text whose structure plain rules decide, or None where markdown-it must be asked."""
    if "\r" in text and _LONE_RETURN.search(text):
        return None
    # Every line, the first too, begins after a \n; an offset in `source` is that in `text` plus 1, which makes
    # the end of a line in `source` the start of the next one in `text`.
    source = "\n" + text.replace("\0", "\ufffd")
    headings: list[Heading] = []
    fences: list[Fence] = []
    hidden: list[tuple[int, int]] = []
    resume = settled = 0
    line = counted = 0
    for match in _LINE.finditer(source):
        start = match.start()
        if start < resume:
            continue
        marks, ticks, tag, lead, opener = match.groups()
        end = _line_end(source, start + 1)
        if marks:
            line += source.count("\n", counted, start + 1)
            counted = start + 1
            title = heading_text(_without_closing_marks(source[match.end() : end]))
            headings.append(Heading(len(marks), title, line, start, min(end, len(text))))
        elif ticks:
            info = source[match.end() : end]
            if ticks[0] == "`" and "`" in info:
                continue
            code_end, resume = _fence_end(source, ticks, end)
            fences.append(Fence(info.strip(), _code(source[end + 1 : code_end]), start, min(resume, len(text))))
            hidden.append((start, min(resume, len(text))))
        elif tag and source.startswith("<!--", start + 1):
            # The block goes on to the end of the line that closes it, but what stands there is not hidden.
            closing = source.find("-->", start + 1)
            resume = _line_end(source, closing) if closing >= 0 else len(source)
            hidden.append((start, closing + 2 if closing >= 0 else len(text)))
        elif tag or (opener == "<" and lead in _INDENTS):
            if _HTML_TO_ITS_OWN_END.match(source, match.end() - 1):
                return None
            # An HTML block ends at a blank line: it matters only if it would swallow the start of something else.
            if start >= settled:
                blank = _BLANK_LINE.search(source, end)
                settled = blank.start() if blank else len(source)
                if _OPENS_A_BLOCK.search(source, end, settled):
                    return None
        elif _may_matter(source, start, end, lead, opener):
            before = source.rfind("\n", 0, start)
            if opener or not _is_alone(source, before, start):
                return None
            line += source.count("\n", counted, start + 1)
            counted = start + 1
            level = 1 if "=" in lead else 2
            title = heading_text(source[before + 1 : start])
            headings.append(Heading(level, title, line - 1, before, min(end, len(text))))
        if lead and ("    " in lead or "\t" in lead) and _MEANS_SOMETHING.search(source, match.start(4), end):
            return None
    return Outline(tuple(headings), tuple(fences), tuple(hidden))


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _without_closing_marks(rest: str) -> str:
    rest = rest.rstrip(" \t\r")
    stripped = rest.rstrip("#")
    return rest if stripped and stripped[-1] not in " \t" else stripped


@cache
def _closing(mark: str) -> re.Pattern[str]:
    return re.compile(rf"\n {{0,3}}({mark}{{3,}})[ \t]*\r?(?=\n|\Z)")


def _fence_end(source: str, ticks: str, opening_end: int) -> tuple[int, int]:
    """Where the code ends, and where the fence's last line ends; both the end of the text when it never closes."""
    for match in _closing(ticks[0]).finditer(source, opening_end):
        if len(match[1]) >= len(ticks):
            return match.start() + 1, match.end()
    return len(source), len(source)


_BLANK_END = re.compile(r"(?:^|(?<=\n))[ \t]+\Z")


def _code(lines: str) -> str:
    """As markdown-it gives it: a last line of spaces alone, without an end of line, is none."""
    return _BLANK_END.sub("", lines.replace("\r\n", "\n"))


def _may_matter(source: str, start: int, end: int, lead: str, opener: str | None) -> bool:
    """Whether a line that begins with spaces, list or quote marks could be a heading, its underline, or a fence."""
    if opener:
        return opener[0] in "`~" or (opener[0] == "#" and lead in _INDENTS)
    if lead[-1] not in "=- \t" or not _UNDERLINE.fullmatch(source, start + 1, end):
        return False
    before = source.rfind("\n", 0, start)
    return bool(source[before + 1 : start].strip(" \t\r"))


def _is_alone(source: str, before: int, start: int) -> bool:
    """Whether the line from `before` to `start` is surely a paragraph of its own: a letter at column 0, below a blank
    line or nothing, which also ends any list, and no table's head."""
    above = source.rfind("\n", 0, before) if before > 0 else 0
    first = source[before + 1 : before + 2]
    return first.isalpha() and not source[above:before].strip(" \t\r\n") and source.find("|", before, start) < 0


def read(text: str) -> Outline:
    """The outline of `text`, as markdown-it sees it."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n?|\n", text)), len(text), len(text)]
    headings: list[Heading] = []
    fences: list[Fence] = []
    hidden: list[tuple[int, int]] = []
    paragraphs: list[str] = []
    tokens = block_tokens(text)
    for index, token in enumerate(tokens):
        if token.map is None:
            continue
        first, after = token.map
        start, end = starts[first], starts[after]
        if token.type == "heading_open" and token.level == 0:
            title = heading_text(tokens[index + 1].content)
            headings.append(Heading(int(token.tag[1]), title, first + 1, start, end))
        elif token.type == "paragraph_open" and token.level == 0:
            paragraphs.append(tokens[index + 1].content)
        elif token.type in ("fence", "code_block"):
            hidden.append((start, end))
            if token.type == "fence":
                fences.append(Fence(token.info.strip(), token.content, start, end))
        elif token.type == "html_block" and token.content.lstrip().startswith("<!--"):
            closing = text.find("-->", start, end)
            hidden.append((start, closing + 3 if closing >= 0 else end))
    return Outline(tuple(headings), tuple(fences), tuple(hidden), tuple(paragraphs))
