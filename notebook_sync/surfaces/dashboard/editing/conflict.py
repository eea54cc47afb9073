"""Three texts of a note made one: what it said, what somebody made of that meanwhile, and what the owner made of it.

Where both can stand, both do; where not, all three are there between marks, for the owner to choose. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from notebook_sync.files.comparing import Steps, opcodes
from notebook_sync.files.edit_lines import lines_of

Lines = Sequence[str]
NOW: Final = "<<<<<<< what the file says now"
BEFORE: Final = "||||||| what it said before"
MINE: Final = "======= what you wrote"
END: Final = ">>>>>>> choose, and take these marks out"
_MARKS = frozenset((NOW, BEFORE, MINE, END))


@dataclass(frozen=True, slots=True)
class Merged:
    """`choices` is how many places are marked in the text."""

    text: str
    choices: int


def merged(base: str, now: str, mine: str) -> Merged:
    """One text of three, whose lines end with `\\n`."""
    pieces: list[str] = []
    choices = 0
    for was, is_now, written in _stretches(lines_of(base), lines_of(now), lines_of(mine)):
        if is_now in (was, written):
            pieces += written
        elif written == was:
            pieces += is_now
        else:
            choices += 1
            pieces += _marked(was, is_now, written)
    return Merged("".join(pieces), choices)


def _stretches(base: Lines, now: Lines, mine: Lines) -> Iterator[tuple[Lines, Lines, Lines]]:
    """The three texts side by side, in turns: what stands between lines that all have, and those lines. As diff3 does
    it: S. Khanna, K. Kunal, B. C. Pierce, "A Formal Investigation of Diff3", 2007."""
    in_now, in_mine = _places(base, now), _places(base, mine)
    at = (0, 0, 0)
    for line in [line for line in range(len(base)) if line in in_now and line in in_mine]:
        there = (line, in_now[line], in_mine[line])
        if there != at:
            yield _between(at, there, base, now, mine)
        yield [base[line]], [now[there[1]]], [mine[there[2]]]
        at = (there[0] + 1, there[1] + 1, there[2] + 1)
    yield _between(at, (len(base), len(now), len(mine)), base, now, mine)


def _places(base: Lines, other: Lines) -> dict[int, int]:
    """Where the lines of `base` stand in the other text, of those that do."""
    same = [code for code in opcodes(base, other, Steps()) if code[0] == "equal"]
    return {start + offset: there + offset for _, start, end, there, _ in same for offset in range(end - start)}


def _between(
    start: tuple[int, int, int], end: tuple[int, int, int], base: Lines, now: Lines, mine: Lines
) -> tuple[Lines, Lines, Lines]:
    return base[start[0] : end[0]], now[start[1] : end[1]], mine[start[2] : end[2]]


def _marked(base: Lines, now: Lines, mine: Lines) -> Iterator[str]:
    for mark, lines in ((NOW, now), (BEFORE, base), (MINE, mine)):
        yield f"{mark}\n"
        yield from (line if line.endswith("\n") else f"{line}\n" for line in lines)
    yield f"{END}\n"


def marks_in(text: str) -> int:
    """How many lines are marks that were put there to choose between."""
    return sum(line in _MARKS for line in text.split("\n"))
