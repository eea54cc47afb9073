"""The difference of two texts as a unified diff, in bounded time: texts that repeat themselves could take minutes."""

from __future__ import annotations

import re
from collections import Counter
from difflib import unified_diff as diff_of
from io import StringIO
from itertools import takewhile

_CONTEXT = 3
# So many pairs of equal lines are compared; with more, the changed part is shown as one change.
_MOST_PAIRS = 200_000


def unified_diff(before: str, after: str, path: str) -> str:
    """What turns `before` into `after`, with three lines of context around each change; "" for equal texts."""
    old, new = list(StringIO(before, newline="\n")), list(StringIO(after, newline="\n"))
    start = max(_alike(old, new) - _CONTEXT, 0)
    end = max(_alike(old[start:][::-1], new[start:][::-1]) - _CONTEXT, 0)
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    counts = Counter(new)
    if sum(counts[line] for line in old) <= _MOST_PAIRS:
        shown = diff_of(old, new, path, path, n=_CONTEXT)
    else:
        whole = f"@@ -1,{len(old)} +1,{len(new)} @@\n"
        shown = iter(
            [f"--- {path}\n", f"+++ {path}\n", whole, *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
        )
    lines = (_shifted(line, start) for line in shown)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines are the same from the start on."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def _shifted(line: str, lines: int) -> str:
    """A line of a diff, its line numbers counted from `lines` lines further up."""
    if not line.startswith("@@"):
        return line
    return re.sub(r"([-+])(\d+)", lambda found: f"{found[1]}{int(found[2]) + lines}", line, count=2)
