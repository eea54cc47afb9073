"""What makes a file unusable for readers: bytes that are no UTF-8 text, and the marks that git leaves where a merge
could not decide. Pure."""

from __future__ import annotations

import re

from notebook_sync.files.unfinished import why_not_text

_MARK = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
_LINE_END = re.compile(r"\r?\n")


def why_unusable(raw: bytes) -> str:
    """Why a prompt must not show these bytes, with the 1-based line; "" for text without merge marks."""
    reason = why_not_text(raw)
    if reason or not (lines := conflict_marks(raw.decode())):
        return reason
    return f"line {lines[0]}: a mark of a merge conflict; keep the right text and delete the marks"


def conflict_marks(text: str) -> tuple[int, ...]:
    """The lines, 1-based, on which such marks stand outside of code: where a conflict begins and ends, and what parts
    its sides between these."""
    if not _MARK.search(text):
        return ()
    found = []
    is_open = False
    code = _lines_of_code(text)
    for number, line in enumerate(_LINE_END.split(text), start=1):
        if number in code:
            continue
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            is_open = line[0] == "<"
        elif not is_open or not (line == "=======" or line.startswith("||||||| ")):
            continue
        found.append(number)
    return tuple(found)


def _lines_of_code(text: str) -> set[int]:
    from notebook_sync.files.frontmatter import read_frontmatter  # a prompt without marks needs neither
    from prompt.outline import Outline

    front = read_frontmatter(text)
    first = front.head.count("\n") + 1
    code = (block for block in Outline(front.content).root.walk() if block.type in ("fence", "code_block"))
    return {first + line for block in code for line in range(block.first, block.last)}
