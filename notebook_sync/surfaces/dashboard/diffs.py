"""What changed in a note, word by word, for a page: from a unified diff, by git, and never more than a reader looks
at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from notebook_sync.errors import GitFailed
from notebook_sync.files.git import run_git

_MOST_LINES: Final = 400
_LONGEST_LINE: Final = 4_000
_SECONDS: Final = 3.0
# Both texts that git compares have such a line where the diff leaves lines out, and no note begins a line so.
_GAP: Final = "\x1e"
_HUNK = re.compile(r"@@ -\S+ \+(\d+)")
_SIGNS: Final = {" ": "", "-": "del", "+": "ins"}

Piece = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a difference in pieces, each "del", "ins" or "" and its words; a place has the words alone."""

    pieces: tuple[Piece, ...]
    is_place: bool = False

    @property
    def kind(self) -> str:
        """ "del" or "ins" for a line that is wholly so, "both" for one that is so in part, else ""."""
        kinds = {kind for kind, text in self.pieces if text.strip()}
        return next(iter(kinds)) if len(kinds) == 1 else "both" if kinds else ""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first lines of a difference; `is_cut` where lines, or ends of long ones, are left out."""

    lines: tuple[Line, ...]
    is_cut: bool


def difference_of(unified: str) -> Difference:
    """What a unified diff says, with the words that changed within a line."""
    given = [line.rstrip("\r") for line in unified.split("\n") if line and line[0] != "\\"]
    shown = [line[:_LONGEST_LINE] for line in given[:_MOST_LINES]]
    lines = list(_placed(shown))
    found: tuple[Line, ...] = ()
    with suppress(GitFailed):
        found = tuple(_by_words(lines)) if lines else ()
    # What git finds alike may differ in what was cut off.
    found = found or tuple(map(_line, lines))
    return Difference(found, shown != given)


def _placed(lines: list[str]) -> Iterator[str]:
    """The lines of a unified diff, with a gap for what each heading says: which of several files, or where in it."""
    files = {
        at: old[4:]
        for at, (old, new) in enumerate(pairwise(lines))
        if old.startswith("--- ") and new == f"+++ {old[4:]}"
    }
    for at, line in enumerate(lines):
        hunk = _HUNK.match(line)
        if at in files and len(files) > 1:
            yield f"{_GAP}{files[at]}"
        elif at not in files and at - 1 not in files:
            yield f"{_GAP}line {hunk[1]}" if hunk else line


def _line(line: str) -> Line:
    return Line(((_SIGNS.get(line[0], ""), line[1:]),), is_place=line.startswith(_GAP))


def _by_words(lines: list[str]) -> Iterator[Line]:
    """Raises GitFailed."""
    old, new = ("".join(f"{_own(line)}\n" for line in lines if line[0] != other) for other in "+-")
    with TemporaryDirectory(prefix="notebook-sync-") as folder:
        for name, text in (("old", old), ("new", new)):
            (Path(folder) / name).write_text(text, newline="")
        asked = ("diff", "--no-index", "--text", f"-U{len(lines)}", "--word-diff=porcelain", "--", "old", "new")
        said = run_git(Path(folder), *asked, fine=(0, 1), seconds=_SECONDS).decode(errors="replace")
    pieces: list[Piece] = []
    for each in said.partition("\n@@")[2].partition("\n")[2].split("\n"):
        if each == "~":
            is_place = bool(pieces) and pieces[0][1].startswith(_GAP)
            yield Line(tuple((kind, text.lstrip(_GAP)) for kind, text in pieces) or (("", ""),), is_place)
            pieces = []
        elif each:
            pieces.append((_SIGNS.get(each[0], ""), each[1:]))


def _own(line: str) -> str:
    return line if line.startswith(_GAP) else line[1:]
