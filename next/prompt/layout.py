"""The layout of the prompt: the order and the frame of every text.

Each file is between `<file>` and `</file>`, below a heading of the layout; a file without a heading has its path in the
tag. If a text has such a tag itself, all tags of that prompt are `file-2`, or the next free number. What follows the
files is quoted: no line of it begins with a tag or a heading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

from prompt.fence import quote
from prompt.values import Part

# A tag with other spaces or capitals could still be mistaken for one.
_TAG = re.compile(r"<\s*+/?\s*+file(?:-(\d+))?(?![\w-])", re.IGNORECASE)

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def stable_text(parts: Sequence[Part], directive: str, system: frozenset[str], tag: str = "file") -> str:
    """The part of the prompt that depends on files and session alone. System files come before the directive."""
    files = [_file(part, tag, named=part.name != part.path and part.path not in system) for part in parts]
    before = sum(part.path in system for part in parts)
    blocks = [*files[:before], f"{directive.strip()}\n" if directive.strip() else "", *files[before:]]
    return "\n".join(filter(None, blocks))


def _file(part: Part, tag: str, *, named: bool) -> str:
    heading, opening = (f"## {part.name}\n\n", tag) if named else ("", f'{tag} path="{part.path.translate(_ESCAPES)}"')
    lines = [text if text.endswith("\n") else f"{text}\n" for text in (part.text, part.closing) if text]
    # The empty line ends the block of HTML that the tag begins: a code fence on the first line must be one.
    return f"{heading}<{opening}>\n\n{''.join(lines)}</{tag}>\n"


def tag_for(texts: Sequence[str]) -> str:
    """The name of the tags around files: `file`, or the first of `file-2`, `file-3`, … that none of `texts` has."""
    taken = {match[1] or "" for text in texts if "<" in text for match in _TAG.finditer(text)}
    return "file" if "" not in taken else next(f"file-{number}" for number in count(2) if str(number) not in taken)


def volatile_text(today: str, sections: Sequence[tuple[str, str]], after: str = "") -> str:
    """The day, then texts under their headings, quoted; "" for nothing. `after` is the text before them."""
    day = [f"Today is {today}.\n"] if today else []
    blocks = [*day, *(f"## {heading}\n\n{quote(text)}\n" for heading, text in sections)]
    return ("\n" if after and blocks else "") + "\n".join(blocks)
