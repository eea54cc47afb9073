"""The difference between two texts of a note, unified, as people and git show it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from notebook_sync.files.comparing import Opcode, Steps, opcodes

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
    hunks = (_hunk(group, old, new) for group in _Known(opcodes(old, new, Steps())).get_grouped_opcodes(_CONTEXT))
    return "\n".join((*names, "".join(hunks)))


class _Known(SequenceMatcher[str]):
    """Groups what is known already."""

    def __init__(self, codes: list[Opcode]) -> None:
        super().__init__()
        self._known = codes

    def get_opcodes(self) -> list[Opcode]:
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


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
