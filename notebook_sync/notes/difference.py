"""The difference between two texts of a note, unified, as people and git show it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import unified_diff

_CONTEXT = 3
_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")


def difference(path: str, before: bytes | None, after: bytes | None) -> str:
    """What changes from one text to the other; "" for nothing. A note that is not there is /dev/null.

    Bytes that are not UTF-8 are shown replaced.
    """
    if before == after:
        return ""
    old, new = _lines(before), _lines(after)
    # Only what lies between what is alike is compared: two long notes that differ in a line would take seconds.
    first = _alike(old, new)
    last = _alike(old[first:][::-1], new[first:][::-1])
    head, tail = max(first - _CONTEXT, 0), max(last - _CONTEXT, 0)
    hunks = list(unified_diff(old[head : len(old) - tail], new[head : len(new) - tail], n=_CONTEXT))[2:]
    names = (
        "--- " + (f"a/{path}" if before is not None else "/dev/null"),
        "+++ " + (f"b/{path}" if after is not None else "/dev/null"),
    )
    return "\n".join(names) + "\n" + "".join(_ended(_moved(line, head)) for line in hunks)


def _lines(raw: bytes | None) -> list[str]:
    """With their ends, which are `\\n` alone: nothing else that a text may hold ends a line of a diff."""
    return re.findall(r"[^\n]*\n|[^\n]+", (raw or b"").decode(errors="replace"))


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are the same from the start on."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _moved(line: str, by: int) -> str:
    found = _HUNK.match(line) if by else None
    if found is None:
        return line
    old, old_count, new, new_count = found.groups(default="")
    return f"@@ -{int(old) + by}{old_count} +{int(new) + by}{new_count} @@\n"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
