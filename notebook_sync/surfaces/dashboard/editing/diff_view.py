"""The difference between two texts as lines of a page, with the words that changed within them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from notebook_sync.files.comparing import Steps, opcodes

Kind = Literal["place", "same", "del", "ins"]
MOST_LINES: Final = 200
LONGEST_LINE: Final = 2_000
_LEAST_ALIKE: Final = 0.4
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_RETURN = "\u240d"
_PLACES = "@\\"
_KINDS: dict[str, Kind] = {"@": "place", " ": "same", "-": "del", "+": "ins", "\\": "place"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a line, and whether it is what changed in it."""

    text: str
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a difference; of the kind `place`, where in the text the next ones are."""

    kind: Kind
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Difference:
    """`lines` are the first of `count`; `added` and `removed` count all lines."""

    lines: tuple[Line, ...]
    count: int
    added: int
    removed: int


def difference_in(unified: str, most: int = MOST_LINES) -> Difference:
    """What a unified difference says, without the names of its files."""
    told = [line for line in unified.split("\n")[2:] if line]
    # A carriage return is shown where it is not the end of every line: then it may be all that differs.
    end = "" if all(line.endswith("\r") for line in told if line[0] not in _PLACES) else _RETURN
    found = [(_KINDS[line[0]], _said(line, end)) for line in told]
    kinds = [kind for kind, _ in found]
    return Difference(tuple(_with_words(found[:most])), len(found), kinds.count("ins"), kinds.count("del"))


_HUNK = re.compile(r"@@ -\S+ \+(\d+)")


def _said(line: str, end: str) -> str:
    if line[0] not in _PLACES:
        text = line[1:-1] + end if line.endswith("\r") else line[1:]
        return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"
    hunk = _HUNK.match(line)
    return f"line {int(hunk[1]):,}" if hunk else "no line end here"


def _with_words(found: Sequence[tuple[Kind, str]]) -> Iterable[Line]:
    at, steps = 0, Steps()
    while at < len(found):
        removed = _run(found, at, "del")
        added = _run(found, at + len(removed), "ins") if removed else []
        if not added:
            yield Line(found[at][0], (Piece(found[at][1]),))
            at += 1
            continue
        pairs = [_compared(old, new, steps) for old, new in zip(removed, added, strict=False)]
        for kind, side, texts in (("del", 0, removed), ("ins", 1, added)):
            for number, text in enumerate(texts):
                pieces = pairs[number][side] if number < len(pairs) else (Piece(text),)
                yield Line("del" if kind == "del" else "ins", pieces)
        at += len(removed) + len(added)


def _run(found: Sequence[tuple[Kind, str]], start: int, kind: Kind) -> list[str]:
    texts = []
    for each, text in found[start:]:
        if each != kind:
            break
        texts.append(text)
    return texts


def _compared(old: str, new: str, steps: Steps) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Two lines, of which the second is the first changed; nothing is marked where they have little in common, or
    no steps are left to find it."""
    whole = (Piece(old),), (Piece(new),)
    words, others = _WORD.findall(old), _WORD.findall(new)
    codes = opcodes(words, others, steps, autojunk=False)
    same = sum(end - start for tag, start, end, _, _ in codes if tag == "equal")
    if 2 * same < _LEAST_ALIKE * (len(words) + len(others)):
        return whole
    before: list[Piece] = []
    after: list[Piece] = []
    for tag, start, end, new_start, new_end in codes:
        for pieces, text in ((before, words[start:end]), (after, others[new_start:new_end])):
            if text:
                pieces.append(Piece("".join(text), tag != "equal"))
    return tuple(before), tuple(after)
