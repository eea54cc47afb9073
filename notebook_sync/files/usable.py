"""Whether a file is the whole UTF-8 text that a note is. Light, because every prompt asks."""

from __future__ import annotations

import re

from notebook_sync.model import Problem

MERGE_CONFLICT = "a mark of a merge conflict; keep the right text and delete the marks"
_BOM = b"\xef\xbb\xbf"
_BOMS_OF_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_OPENING_LINE = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*(?:\r?\n|\r?\Z)")
_CLOSING_LINE = re.compile(rb"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
_MERGE_MARKS = ("<<<<<<< ", ">>>>>>> ")  # found much faster than a pattern with the start of a line
_MERGE_MARK = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)


def looks_unfinished(raw: bytes) -> bool:
    """Whether a writer seems to be at work: nothing yet, frontmatter still open, or half a character at the end."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data":
            return True
    opening = _OPENING_LINE.match(raw)
    return not raw or (opening is not None and not _CLOSING_LINE.search(raw, opening.end()))


def fault_of(raw: bytes) -> Problem | None:
    """What is wrong with bytes that are not UTF-8 text; None for UTF-8 text."""
    if raw.startswith(_BOMS_OF_UTF16):
        return Problem(1, "it is UTF-16; save it as UTF-8", severe=True)
    at, what = raw.find(b"\0"), "a NUL byte, as in binary files and UTF-16"
    if at < 0:
        try:
            raw.decode()
            return None
        except UnicodeDecodeError as error:
            at, what = error.start, "not UTF-8"
    return Problem(raw.count(b"\n", 0, at) + 1, f"{what}; save it as UTF-8 text", severe=True)


def why_not_text(raw: bytes) -> str:
    """Why these bytes are not UTF-8 text, with the 1-based line; "" if they are."""
    return str(fault_of(raw) or "")


def why_unusable(raw: bytes) -> str:
    """Why a prompt must not show these bytes, with the 1-based line; "" for text that says something.

    Unusable are: nothing but white space, bytes that are not UTF-8 text, and marks of an unresolved merge.
    """
    if not raw.removeprefix(_BOM).strip():
        return "it is empty"
    reason = why_not_text(raw)
    if not reason and (marks := conflict_marks(raw.decode())):
        reason = f"line {marks[0]}: {MERGE_CONFLICT}"
    return reason


def conflict_marks(text: str) -> tuple[int, ...]:
    """The 1-based lines outside of code on which a side of a merge conflict begins or ends."""
    if not any(mark in text for mark in _MERGE_MARKS):
        return ()
    from prompt.hidden import end_of_frontmatter  # most texts have no mark, and need no Markdown reader
    from prompt.outline import Outline

    start = end_of_frontmatter(text)
    blocks = Outline(text[start:]).root.walk()
    code = {line for each in blocks if each.type in ("fence", "code_block") for line in range(each.first, each.last)}
    above = text.count("\n", 0, start)
    lines = enumerate(text.split("\n"), 1)
    return tuple(line for line, words in lines if _MERGE_MARK.match(words) and line - above - 1 not in code)
