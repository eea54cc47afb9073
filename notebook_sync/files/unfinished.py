"""Whether a file looks as if its writer were not done. Light, because every prompt asks it."""

from __future__ import annotations

import re

_BOM = b"\xef\xbb\xbf"
_OPENING_LINE = re.compile(rb"---[ \t]*(?:\r?\n|\r?\Z)")
_CLOSING_LINE = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)


def looks_unfinished(raw: bytes) -> bool:
    """Whether a writer seems not to be done: nothing yet, frontmatter still open, or half a character at the end."""
    if not raw or _ends_inside_a_character(raw):
        return True
    start = len(_BOM) if raw.startswith(_BOM) else 0
    opening = _OPENING_LINE.match(raw, start)
    return opening is not None and _CLOSING_LINE.search(raw, opening.end()) is None


def _ends_inside_a_character(raw: bytes) -> bool:
    tail = raw[-3:]
    for length in range(1, len(tail) + 1):
        byte = tail[-length]
        if byte >= 0xC2:
            wanted = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4 if byte < 0xF5 else 0
            return length < wanted
        if byte < 0x80:
            return False
    return False
