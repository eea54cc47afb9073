"""Where a long block may end early, and what has to be written there so that nothing stays open.

An end never breaks a character that a reader sees as one, a link, a tag, an entity or a bracket, and what is left of
the block is read as its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from prompt.outline import Block, Outline, Span

# Tells a reader that the sentence goes on where it is not shown.
MORE = "…"
# An anchor longer than this costs more than it helps; the call then names the file.
LONGEST_ANCHOR = 80
# About how many bytes of a long text leave together.
STRETCH = 160
# A stretch is looked for in so much of a block; what is longer has one last stretch.
_READ = 256 * 1024
_SENTENCE = re.compile(r"""[.!?…:;]["'”’)\]*_]*(?=\s)|[。！？；]|(?=\r?\n)""")
_SPACE = re.compile(r"\s+")
_BRACKET = re.compile(r"\[[^\[\]]*\Z|&[#\w]*\Z")
# A line that opens a fence once its end is gone; a mark that could join with what closes the marks around it.
_OPENS_FENCE = re.compile(r"[ \t>]*(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)*`{3}")
_MARKS = frozenset("\\`*_~<!")
_NOT_QUOTE = re.compile(r"[^>\s]")
# CommonMark's blocks of HTML that a blank line does not end: how they begin, and what ends them.
_HTML_ENDS = (("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>"), ("<!", ">"))
_HTML_TAG = re.compile(r"<(script|pre|style|textarea)(?=[\s>]|\Z)", re.IGNORECASE)


def size_of(text: str) -> int:
    """How large a text is, in bytes: for every script nearer to its tokens than a number of characters."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def stretches_of(outline: Outline, block: Block) -> list[int]:
    """Where a long block may end early, in order: after lines of code, after about 160 bytes of prose."""
    lines = outline.lines
    if block.type in ("fence", "code_block"):
        last = (
            block.last - 1 - (block.type == "fence" and block.closed)
        )  # the last line of code has the closing one along
        return [lines.span(line, line + 1)[1] for line in range(block.first + 1, last) if not lines.is_blank(line)]
    return [at for at in _prose_stretches(outline.text, block.start, block.end) if at < block.end]


def closing_at(outline: Outline, block: Block, at: int) -> str | None:
    """What is written below or behind a block that ends early at `at`; None where it cannot end there."""
    if block.type == "fence":
        return _fence_end(outline, block)
    if block.type == "code_block":
        return ""
    text = outline.text
    line = text.rfind("\n", 0, at) + 1
    if _BRACKET.search(text, max(block.start, at - 200), at) or _OPENS_FENCE.match(text, line, at):
        return None
    closing = ""
    for span in _around(block.spans, at):
        if span.kind not in ("emphasis", "strong", "strike", "code"):
            return None
        if not span.start + span.width < at <= span.end - span.width:
            return None
        if span.kind == "code" and text[span.start + span.width].isspace():
            return None  # a space at both ends is not shown, one at a single end is
        closing = text[span.start : span.start + span.width] + closing
    if text[at - 1] in _MARKS and (closing or not any(span.end == at for span in block.spans if span.kind != "text")):
        return None
    return closing + MORE


def open_end(outline: Outline, block: Block) -> str:
    """The line that closes a fence or a block of HTML that the text leaves open; "" where nothing is."""
    if block.type == "fence" and not block.closed:
        return _fence_end(outline, block)
    if block.type == "html_block":
        source = outline.text[block.start : block.end]
        tag = _HTML_TAG.match(source)
        ends = [f"</{tag[1].lower()}>"] if tag else [end for begin, end in _HTML_ENDS if source.startswith(begin)]
        if ends and ends[0] not in source.lower():
            return f"\n{ends[0]}"
    return ""


def closing_line(text: str) -> str:
    """The line that closes the fence or the HTML block in which `text` ends; "" where nothing is open.

    What is open inside a list or a quote ends with it.
    """
    if "```" not in text and "~~~" not in text and "<" not in text:
        return ""
    outline = Outline(text)
    return open_end(outline, outline.root.children[-1]).strip() if outline.root.children else ""


def omission_line(entries: int, path: str = "", anchor: str = "") -> str:
    """The line that says that something is left out; with a path, a call that reads it follows the colon."""
    amount = f"{entries} more" if entries else "more"
    if not path:
        return f"[{MORE} {amount}]"
    place = f"{path}#{anchor}" if anchor and len(anchor) <= LONGEST_ANCHOR else path
    return f"[{MORE} {amount}: notebook_read {place}]"


def _fence_end(outline: Outline, fence: Block) -> str:
    margin = outline.text[outline.lines.start(fence.first) : fence.start]
    return "\n" + _NOT_QUOTE.sub(" ", margin) + fence.markup


def _around(spans: list[Span], at: int) -> Iterator[Span]:
    return (span for span in spans if span.start < at < span.end and span.kind != "text")


def _prose_stretches(text: str, start: int, end: int) -> Iterator[int]:
    step = max(STRETCH // 4, STRETCH * (end - start) // max(size_of(text[start:end]), 1))
    last = min(end, start + _READ)
    while last - start > step:
        window = text[start + step // 2 : start + step]
        ends = [match.end() for match in _SENTENCE.finditer(window) if match.end()] or [
            match.start() for match in _SPACE.finditer(window) if match.start()
        ]
        if ends:
            start += step // 2 + ends[-1]
        else:
            start = next((at for at in _characters(text, start, last) if at >= start + step), last)
        yield start


def _characters(text: str, start: int, end: int) -> Iterator[int]:
    """After each character that a reader sees as one, from `start`, where one begins.

    Looked for in windows: in a long run of flags, each would be looked for from the run's beginning.
    """
    import regex  # 20 ms, and rarely needed

    width = 64
    while start < end:
        window = text[start : start + width]
        ends = [match.end() for match in regex.finditer(r"\X", window)]
        if start + width < end:
            ends.pop()  # it may go on behind the window
        if not ends:
            width *= 2
            continue
        yield from (start + at for at in ends if start + at <= end)
        start += ends[-1]
