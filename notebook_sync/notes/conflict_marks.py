"""The marks that git leaves in a file where a merge could not decide: readers take its two texts for one. Pure."""

from __future__ import annotations

import re

from notebook_sync.files.commonmark import block_tokens
from notebook_sync.files.frontmatter import read_frontmatter

_MARK = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)
_LINE_END = re.compile(r"\r?\n")


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
    front = read_frontmatter(text)
    first = front.head.count("\n") + 1
    blocks = (token.map for token in block_tokens(front.content) if token.type in {"fence", "code_block"} and token.map)
    return {first + line for start, end in blocks for line in range(start, end)}
