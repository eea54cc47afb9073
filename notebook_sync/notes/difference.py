"""The difference between two texts of a note, unified, as people and git show it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

_CONTEXT = 3


def difference(path: str, before: bytes | None, after: bytes | None) -> str:
    """What changes from one text to the other; "" for nothing. A note that is not there is /dev/null.

    Bytes that are not UTF-8 are shown replaced.
    """
    if before == after:
        return ""
    old, new = _lines(before), _lines(after)
    names = (
        "--- " + (f"a/{path}" if before is not None else "/dev/null"),
        "+++ " + (f"b/{path}" if after is not None else "/dev/null"),
    )
    hunks = (_hunk(group, old, new) for group in _compared(old, new).get_grouped_opcodes(_CONTEXT))
    return "\n".join((*names, "".join(hunks)))


def _compared(old: list[str], new: list[str]) -> SequenceMatcher[str]:
    """Only what lies between what is alike is compared: two long notes that differ in a line would take seconds."""
    first = _alike(old, new)
    last = _alike(old[first:][::-1], new[first:][::-1])
    old_end, new_end = len(old) - last, len(new) - last
    between = SequenceMatcher(None, old[first:old_end], new[first:new_end]).get_opcodes()
    codes: list[Any] = [(tag, i + first, j + first, k + first, m + first) for tag, i, j, k, m in between]
    before: list[Any] = [("equal", 0, first, 0, first)] if first else []
    behind: list[Any] = [("equal", old_end, len(old), new_end, len(new))] if last else []
    return _Known([*before, *codes, *behind])


class _Known(SequenceMatcher[str]):
    """Groups what is known already."""

    def __init__(self, opcodes: list[Any]) -> None:
        super().__init__()
        self._known = opcodes

    def get_opcodes(self) -> list[Any]:
        return self._known


def _hunk(group: Sequence[tuple[str, int, int, int, int]], old: Sequence[str], new: Sequence[str]) -> str:
    lines = [f"@@ -{_range(group[0][1], group[-1][2])} +{_range(group[0][3], group[-1][4])} @@\n"]
    for tag, old_start, old_end, new_start, new_end in group:
        if tag == "equal":
            lines += (_ended(f" {line}") for line in old[old_start:old_end])
        else:
            lines += (_ended(f"-{line}") for line in old[old_start:old_end])
            lines += (_ended(f"+{line}") for line in new[new_start:new_end])
    return "".join(lines)


def _range(start: int, end: int) -> str:
    """As a hunk has it: the first line's number, and how many there are unless there is one."""
    first = start + 1 if end > start else start
    return f"{first}" if end - start == 1 else f"{first},{end - start}"


def _lines(raw: bytes | None) -> list[str]:
    """With their ends, which are `\\n` alone: nothing else that a text may hold ends a line of a diff."""
    return re.findall(r"[^\n]*\n|[^\n]+", (raw or b"").decode(errors="replace"))


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are the same from the start on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
