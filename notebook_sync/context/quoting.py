"""A note's text as a part of a brief: headings below those of the brief, nothing open at its end, no comments. Pure.

Nothing it says can look like another part of the brief.
"""

from __future__ import annotations

import re
from datetime import date

from notebook_sync.files.commonmark import block_tokens
from notebook_sync.files.inline import plain, without_comments
from notebook_sync.files.outline import Outline, outline
from notebook_sync.files.prose import shorten
from prompt.comments import without_hidden
from prompt.open_end import closing_line

_DEEPEST = 6
_OPENING = "<!--"
_MAY_BE_WITHIN = re.compile(r"(?m)^[ \t]*(?:[-+*>]|\d{1,9}[.)])[^\n]*#|^[ \t>]+(?:#|[=-]+[ \t]*$)")
_TICKS = re.compile(r"`+")
# At the start of a line, what makes more of it than text.
_BLOCK_MARK = re.compile(r"\A(\d{0,9})(#{1,6}(?=\s|\Z)|[-+*>](?=\s|\Z)|>|[.)](?<=\d.)(?=\s|\Z)|`{3}|~{3})")


def quoted(text: str, *, level: int, title: str = "") -> str:
    """The text with its highest headings at `level`, and without the one that says what `title` does.

    What expires stays: a brief says the same on every day.
    """
    shown, structure = _shown(text)
    first = next(iter(structure.headings), None)
    is_said = first is not None and first.text == title and not shown[: first.start].strip()
    kept = [heading for heading in structure.headings if heading.text and not (is_said and heading is first)]
    highest = min((heading.level for heading in kept), default=1)
    pieces: list[str] = []
    at = 0
    for heading in structure.headings:
        pieces.append(shown[at : heading.start])
        if heading.text and not (is_said and heading is first):
            marks = "#" * min(level + heading.level - highest, _DEEPEST)
            pieces.append(f"{marks} {heading.text}\n")
        at = heading.body
    quotation = _demoted("".join([*pieces, shown[at:]]), level).strip("\r\n").rstrip()
    closing = closing_line(quotation)
    return f"{quotation}\n{closing}" if closing else quotation


def _demoted(text: str, level: int) -> str:
    """The text with the headings in its lists and quotes below `level`, too; an underlined one is none any more."""
    if not _MAY_BE_WITHIN.search(text):
        return text
    lines = re.split(r"\r\n?|\n", text)
    for token in block_tokens(text):
        if token.type == "heading_open" and token.level and token.map:
            first, last = token.map[0], token.map[1] - 1
            if token.markup.startswith("#"):
                marks = "#" * min(level + len(token.markup), _DEEPEST)
                lines[first] = re.sub(rf"{token.markup}(?=\s|\Z)", marks, lines[first], count=1)
            else:
                lines[last] = re.sub(r"([=-]+)\s*\Z", r"\\\1", lines[last])
    return "\n".join(lines)


def one_line(text: str, length: int) -> str:
    """What a title, a summary or a reason says, on one line, without marks."""
    return shorten(plain(without_comments(text)), length)


def at_start(line: str) -> str:
    """The same text, also where a line or the point of a list begins with it."""
    return _BLOCK_MARK.sub(r"\1\\\2", line)


def in_code(text: str) -> str:
    """A path or an id, to the letter, but on one line."""
    inside = text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)
    if "`" not in inside:
        return f"`{inside}`"
    mark = "`" * (1 + max(map(len, _TICKS.findall(inside))))
    space = " " if inside.startswith("`") or inside.endswith("`") else ""
    return f"{mark}{space}{inside}{space}{mark}"


def _shown(text: str) -> tuple[str, Outline]:
    """The text without comments, and its outline; of one that is never closed, its opening is text."""
    shown = without_hidden(text, keep_grammar=False, today=date.min).text
    structure = outline(shown)
    for start, _ in structure.hidden:
        if shown.startswith(_OPENING, start):
            shown = shown[:start] + shown[start:].replace(_OPENING, "&lt;!--")
            return shown, outline(shown)
    return shown, structure
