"""Where a block may end early so that what is left of it is read as its beginning: blocks are read from above."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prompt.blocks import Lines, Node
from prompt.ending import MORE, End, bare_ends, prose_ends, size_of

# In bytes. A paragraph beyond PROSE leaves sentence by sentence when its turn comes. A paragraph, or a line of code,
# beyond LONG is divided wherever it stands, and its end leaves before any rule does.
PROSE = 600
LONG = 2000

_NOT_QUOTE = re.compile(r"[^>\s]")
_SENTENCE = re.compile(r"""(?:[.!?…]["'”’)\]*_]*|[。！？])\Z""")
_MARKS = re.compile(r"(?:[ \t>]|\#{1,6}(?=\s)|[-+*](?=\s)|\d{1,9}[.)](?=\s))+")


def ends_within(node: Node | None, lines: Lines, start: int, end: int, *, finely: bool) -> list[End]:
    """Where `[start, end)`, which is `node` or, for None, a row of a table, may end; counted from `start`, in order.

    `finely` also within what is short: after every character.
    """
    if node is None:
        return [each for each in prose_ends(lines.text[start:end], finely=finely) if each.at < end - start]
    ends: list[End] = []
    for each in _ends(node, lines, finely):
        if start + (ends[-1].at if ends else 0) < each.at < end:
            ends.append(End(each.at - start, each.closing))
    return ends


def fence_closing(fence: Node, lines: Lines) -> tuple[str, bool]:
    """The line that closes a fence, and whether it is there."""
    first, last = lines.filled(fence)
    opening = lines.text[lines.start(first) : lines.start(first + 1)]
    if fence.closed:
        return lines.text[slice(*lines.span(last - 1, last))], True
    return _NOT_QUOTE.sub(" ", opening[: opening.find(fence.markup)]) + fence.markup, False


def _ends(node: Node, lines: Lines, finely: bool) -> Iterator[End]:
    start, end = lines.span_of(node)
    if node.type in ("paragraph", "heading"):
        yield from _prose(node, lines, start, end, finely)
    elif node.type == "fence":
        yield from _code(node, lines, finely)
    elif node.type == "code_block":
        for line in range(node.first + 1, node.last):
            yield End(lines.span(node.first, line)[1], "")
    elif node.type == "table":
        for line in range(node.first + 3, node.last):
            yield End(lines.span(node.first, line)[1], "")
    else:
        for child in node.children:
            yield from _ends(child, lines, finely)
    yield End(end, MORE if node.type == "paragraph" else "")


def _prose(node: Node, lines: Lines, start: int, end: int, finely: bool) -> Iterator[End]:
    text = lines.text[start:end]
    size = size_of(text)
    is_underlined = node.type == "heading" and not text.lstrip().startswith("#")  # cut, it would lose its underline
    if is_underlined or (size <= PROSE and not finely):
        return
    # What stands before the text itself, as an item's mark, shows nothing by itself.
    marks = _MARKS.match(text)
    least = marks.end() if marks else 0
    for each in prose_ends(text, finely=finely):
        if each.at > least and (finely or size > LONG or _SENTENCE.search(text, 0, each.at)):
            yield End(start + each.at, each.closing)


def _code(node: Node, lines: Lines, finely: bool) -> Iterator[End]:
    closing, closed = fence_closing(node, lines)
    newline = "\r\n" if "\r\n" in lines.text else "\n"
    for line in range(node.first + 1, lines.filled(node)[1] - closed):
        start = lines.start(line)
        end = start + len(lines.text[start : lines.start(line + 1)].rstrip("\r\n"))
        text = lines.text[start:end]
        if finely or size_of(text) > LONG:
            least = len(text) - len(text.lstrip(" \t>"))
            for at in bare_ends(text, finely=finely):
                if at > least:
                    yield End(start + at, newline + closing)
        if end > start:
            yield End(end, newline + closing)
