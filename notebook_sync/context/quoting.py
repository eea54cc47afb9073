"""What notes say, as parts of a brief: their text without comments, and their titles and reasons on one line. Pure."""

from __future__ import annotations

import re

from notebook_sync.files.excerpt import plain, shorten, without_comments
from prompt.hidden import visible

_TICKS = re.compile(r"`+")
# At the start of a line, what makes more of it than text.
_BLOCK_MARK = re.compile(r"\A(\d{0,9})(#{1,6}(?=\s|\Z)|[-+*>](?=\s|\Z)|>|[.)](?<=\d.)(?=\s|\Z)|`{3}|~{3})")


def body_of(text: str, title: str = "") -> str:
    """What a note says: without frontmatter, comments and, at its top, the heading `title`. What expires stays: a brief
    says the same on every day."""
    shown = visible(text, now=None).text.strip("\r\n").rstrip()
    return shown.removeprefix(f"# {title}\n").lstrip("\r\n") if title else shown


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
