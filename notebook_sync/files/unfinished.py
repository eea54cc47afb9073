"""Whether a file is the whole UTF-8 text that a note is. Light, because every prompt asks."""

from __future__ import annotations

import re

_BOM = b"\xef\xbb\xbf"
_BOMS_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_OPENING_LINE = re.compile(rb"---[ \t]*(?:\r?\n|\r?\Z)")
_CLOSING_LINE = re.compile(rb"^---[ \t]*\r?$", re.MULTILINE)


def looks_unfinished(raw: bytes) -> bool:
    """Whether a writer seems not to be done: nothing yet, frontmatter still open, or half a character at the end."""
    if not raw or _ends_inside_a_character(raw):
        return True
    start = len(_BOM) if raw.startswith(_BOM) else 0
    opening = _OPENING_LINE.match(raw, start)
    return opening is not None and _CLOSING_LINE.search(raw, opening.end()) is None


def why_not_text(raw: bytes) -> str:
    """Why these bytes are not UTF-8 text, with the 1-based line; "" when they are."""
    if raw.startswith(_BOMS_OF_UTF16):
        return "it is UTF-16; save it as UTF-8"
    at, what = raw.find(b"\0"), "a NUL byte, as in binary files and UTF-16"
    if at < 0:
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            at, what = error.start, "not UTF-8"
        else:
            return ""
    return f"line {raw.count(10, 0, at) + 1}: {what}; save it as UTF-8 text"


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
